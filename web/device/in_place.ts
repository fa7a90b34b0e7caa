// Updates a page in place to match another document: reactions, hiding, more stories, and which cards were seen.
//
// After a reader's action the device draws the page again; only the state of its cards is copied from that drawing.
import { keepUpToDate } from "../static/js/alike.js";
import { replace, takeOver } from "../static/js/still.js";
import type { Asking } from "./link";

const SEEN_AFTER_MS = 1_000;
const REPORT_EVERY_MS = 2_000;
const COMING_MS = 1_000;
/** Actions that take longer than this are announced. */
export const SLOW_MS = 400;
const STEPS = [0, 0.1, 0.2, 0.3, 0.4, 0.5];
const OPPOSITE: Readonly<Record<string, string>> = { like: "less", less: "like" };
type Form = NonNullable<Asking["form"]>;

/** What this module needs from the app. */
export interface Host {
  /** Performs an action; returns whether the device has done it. */
  action(address: string, form: Form): Promise<boolean>;
  page(address: string): Promise<Document | null>;
  own(address: string): string | null;
  say(words: string): void;
}

export class InPlace {
  private stop: () => void = () => {};
  private observe: (cards: readonly Element[]) => void = () => {};
  private requests = 0;

  constructor(private readonly host: Host) {}

  /** Called when a page has been shown. */
  begin(): void {
    this.stop();
    const feed = document.querySelector("main")?.dataset["feed"];
    if (feed !== undefined) this.watch(feed);
    else this.observe = () => {};
    const coming = document.querySelector("[data-coming]");
    if (coming) void this.await(coming);
    keepUpToDate(() => this.here());
  }

  /** Fills a placeholder of the page once its content has arrived. */
  private async await(place: Element): Promise<void> {
    await new Promise((done) => setTimeout(done, COMING_MS));
    if (!place.isConnected) return;
    if (document.hidden) return this.await(place);
    const now = (await this.here())?.getElementById(place.id) ?? null;
    if (!place.isConnected) return;
    const come = now !== null && !now.matches("[data-coming]");
    replace(place, now);
    if (come) {
      place.removeAttribute("data-coming");
      this.host.say("The sections are here");
    } else return this.await(place);
  }

  /** Returns what handles a form on its own page; null if another page answers it. */
  answerTo(form: HTMLFormElement, submitter: HTMLElement | null, address: string, fields: Form): (() => Promise<void>) | null {
    const button = form.matches("[data-undo]") ? lessOf(form) : form.matches("[data-react]") ? submitter : null;
    if (button instanceof HTMLButtonElement) return () => this.slowly(this.react(form, button, address, fields), "Done");
    if (form.matches("[data-hide]")) return () => this.slowly(this.hide(form, address, fields));
    if (form.matches("[data-more]")) return () => this.slowly(this.more(address, fields));
    return null;
  }

  /** Announces a slow action to screen readers. done: what to announce afterwards, if no page does. */
  private async slowly(action: Promise<boolean>, done?: string): Promise<void> {
    let isSaid = false;
    const slow = setTimeout(() => {
      isSaid = true;
      this.host.say("Waiting for an answer");
    }, SLOW_MS);
    const isDone = await action.finally(() => clearTimeout(slow));
    if (isSaid && isDone && done) this.host.say(done);
  }

  private async react(form: HTMLFormElement, button: HTMLButtonElement, address: string, fields: Form): Promise<boolean> {
    const [kind, moveOn] = [button.value, focusHeld()];
    // the state when pressed: another page may be shown when it is done
    const on = button.getAttribute("aria-pressed") !== "true";
    // shown once it is stored, not before: the device dies with its tab
    if (!(await this.host.action(address, fields))) return false;
    for (const one of document.querySelectorAll<HTMLButtonElement>("form[data-react] button[name=kind]")) {
      if (one.form?.action !== form.action) continue;
      if (one.value === kind) one.setAttribute("aria-pressed", String(on));
      else if (on && one.value === OPPOSITE[kind]) one.setAttribute("aria-pressed", "false");
    }
    if (form.matches("[data-undo]")) moveOn(button); // its own button disappears
    void this.catchUp();
    return true;
  }

  private async hide(form: HTMLFormElement, address: string, fields: Form): Promise<boolean> {
    const [story, moveOn] = [form.closest("[data-story]")?.id, focusHeld()];
    if (!(await this.host.action(address, fields))) return false;
    await this.catchUp();
    const now = story ? document.getElementById(story) : null;
    moveOn(now?.querySelector(".veil button, form[data-react] button"));
    return true;
  }

  private async more(address: string, fields: Form): Promise<boolean> {
    const moveOn = focusHeld();
    const fresh = (await this.host.action(address, fields)) ? await this.here() : null;
    const now = fresh?.querySelector("[data-more-place]");
    if (!fresh || !now) return false;
    const batches = [...fresh.querySelectorAll("[data-batch]")].filter((batch) => !document.getElementById(batch.id));
    document.querySelector("[data-list]")?.append(...batches);
    document.querySelector("[data-more-place]")?.replaceChildren(...now.childNodes);
    const cards = batches.flatMap((batch) => [...batch.querySelectorAll("[data-story]")]);
    this.observe(cards);
    moveOn(cards[0]?.querySelector(".headline a"));
    this.host.say(cards.length === 1 ? "1 more story" : `${cards.length} more stories`);
    return true;
  }

  private here(): Promise<Document | null> {
    const address = document.querySelector("main")?.dataset["page"] ?? this.host.own(location.href);
    return this.host.page(address ?? "/");
  }

  private async catchUp(): Promise<void> {
    const mine = ++this.requests;
    const fresh = await this.here();
    if (!fresh || mine !== this.requests) return;
    for (const card of document.querySelectorAll("[data-story][id]")) {
      const now = fresh.getElementById(card.id);
      if (now) takeOver(card, now, (words) => this.host.say(words));
    }
    replace(document.querySelector("[data-offer]"), fresh.querySelector("[data-offer]"));
  }

  /**
   * Reports cards as seen once half of a card, or half a window of it, was visible for a second; sent only to the
   * device.
   */
  private watch(feed: string): void {
    const timers = new Map<Element, number>();
    const unreported = new Set<string>();
    const report = () => {
      const news = [...unreported].map((id) => ["news", id] as const);
      unreported.clear();
      if (news.length) void this.host.action("/seen", [["feed", feed], ...news]);
    };
    const halt = (card: Element) => {
      clearTimeout(timers.get(card));
      timers.delete(card);
    };
    const observer = new IntersectionObserver(
      (entries) => {
        for (const { target, intersectionRatio, intersectionRect } of entries) {
          const half = intersectionRatio >= 0.5 || intersectionRect.height >= innerHeight / 2;
          if (!half || document.visibilityState !== "visible") halt(target);
          else if (!timers.has(target)) {
            const seen = () => {
              observer.unobserve(target);
              timers.delete(target);
              unreported.add(target.id.replace(/^n-/, ""));
            };
            timers.set(target, setTimeout(seen, SEEN_AFTER_MS));
          }
        }
      },
      { threshold: STEPS },
    );
    // from now on, stories above an opened one aren't assumed to be seen
    void this.host.action("/seen", [["feed", feed]]);
    this.observe = (cards) => cards.forEach((card) => observer.observe(card));
    this.observe([...document.querySelectorAll("main [data-story][id]")]);
    const reporting = setInterval(report, REPORT_EVERY_MS);
    addEventListener("pagehide", report);
    this.stop = () => {
      report();
      clearInterval(reporting);
      removeEventListener("pagehide", report);
      observer.disconnect();
      for (const timer of timers.values()) clearTimeout(timer);
    };
  }
}

/** The "less" button on a form's card. */
function lessOf(form: HTMLFormElement): HTMLButtonElement | null {
  return form.closest("[data-story]")?.querySelector<HTMLButtonElement>('form[data-react] button[value="less"]') ?? null;
}

/** Returns a function that moves the focus, unless the reader has moved it in the meantime. */
function focusHeld(): (next: Element | null | undefined) => void {
  const held = document.activeElement;
  return (next) => {
    const stays = document.activeElement !== held && document.activeElement !== document.body;
    if (!stays && next instanceof HTMLElement) next.focus({ preventScroll: true });
  };
}
