// Which page answers which address, as on the Python device. Addresses are those below the device's own place.
import { hasErased } from "../asking";
import { BackendUnreachable, DeviceError, NewsNotHere } from "../errors";
import { WireError } from "../wire/forms";
import { feedPages } from "./feed_pages";
import { WORDS, type PageAnswer, type PageRenderer, type PageRequest } from "./renderer";
import { interestPages } from "./interest_pages";
import { latencyPages } from "./latency_pages";
import { listPages } from "./list_pages";
import { privacyPages } from "./privacy_pages";
import { searchPages } from "./search_pages";
import { settingsPages } from "./settings_pages";
import { storyPages } from "./story_pages";
import { trainingPages } from "./training_pages";

/** A form as it was sent; null: the page is only looked at. quietly: a script that wants no page back. */
export interface Asked {
  readonly address: string;
  readonly form: readonly (readonly [string, string])[] | null;
  /** Whether the reader followed a link to it, rather than coming back or loading it again. */
  readonly followed: boolean;
  readonly quietly: boolean;
}

/** What a handler is given: named parts of its path, decoded. */
export interface Call extends PageRequest {
  readonly parts: readonly string[];
  readonly form: FormFields;
  readonly followed: boolean;
}

/** The fields of a form, by name. */
export class FormFields {
  constructor(private readonly fields: readonly (readonly [string, string])[]) {}

  one(name: string): string {
    return this.all(name).at(-1) ?? "";
  }

  all(name: string): string[] {
    return this.fields.filter(([key]) => key === name).map(([, value]) => value);
  }
}

export interface Route {
  readonly method: "GET" | "POST";
  /** Of the whole path; its groups are the call's parts. */
  readonly path: RegExp;
  answer(call: Call): PageAnswer | Promise<PageAnswer>;
}

/** Nothing is at this address, or no longer. */
export class Nowhere extends Error {}

/** What was typed can't be taken; the message says why. */
export class NotTaken extends Error {}

const BACK_CHARS = 3_000;

/** Answer a form: go and look at `path`, which may say one of [said] in words.toml. */
export function seeOther(path: string, said?: string): PageAnswer {
  const local = /^\/(?![/\\])[^\\\s\x00-\x1f]*$/.test(path) && path.length <= BACK_CHARS ? path : "/";
  if (said === undefined) return { kind: "see_other", path: local };
  const [before = "", anchor] = local.split("#", 2);
  const joined = `${before}${before.includes("?") ? "&" : "?"}said=${said}`;
  return { kind: "see_other", path: anchor === undefined ? joined : `${joined}#${anchor}` };
}

/** A whole number of an address, from 1; throws Nowhere. */
export function pageNumber(request: PageRequest, most: number): number {
  const text = request.query.get("page") ?? "1";
  const page = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (page < 1 || page > most) throw new Nowhere();
  return page;
}

/** Answers addresses; errors become a page: what happened, and the way back. */
export class Pages {
  private readonly routes: readonly Route[];

  constructor(private readonly renderer: PageRenderer) {
    const reading = [feedPages, listPages, storyPages, searchPages, interestPages];
    const own = [privacyPages, settingsPages, trainingPages, latencyPages];
    this.routes = [...reading, ...own].flatMap((pages) => pages(renderer));
  }

  /** Whether this browser has promised to keep what is stored. */
  set persisted(promised: boolean) {
    this.renderer.lasts = promised ? "promised" : "refused";
  }

  /** Nothing is shown that was made of what the reader has erased meanwhile. */
  async answer(asked: Asked): Promise<PageAnswer> {
    const { serving } = this.renderer.device.parts;
    const { erasures } = serving;
    const answer = await this.made(asked);
    return serving.erasures === erasures || hasErased(answer) ? answer : seeOther("/welcome");
  }

  private async made(asked: Asked): Promise<PageAnswer> {
    const { pathname, searchParams } = new URL(asked.address, "http://device.invalid");
    const request = { path: pathname, query: searchParams };
    const method = asked.form === null ? "GET" : "POST";
    try {
      for (const route of this.routes) {
        const found = route.method === method && route.path.exec(pathname);
        if (!found) continue;
        const parts = found.slice(1).map((part) => decodeURIComponent(part ?? ""));
        const call = { ...request, parts, form: new FormFields(asked.form ?? []), followed: asked.followed };
        const answer = await route.answer(call);
        return asked.quietly && answer.kind === "see_other" ? { kind: "done" } : answer;
      }
      throw new Nowhere();
    } catch (failed) {
      return this.problem(request, failed);
    }
  }

  private problem(request: PageRequest, failed: unknown): PageAnswer {
    const say = (status: number, title: string, words: string) =>
      this.renderer.problem(request, status, WORDS.say(title), words);
    if (failed instanceof Nowhere || failed instanceof URIError) return say(404, "nowhere_title", WORDS.say("nowhere"));
    if (failed instanceof NewsNotHere) return say(404, "story_gone_title", failed.message);
    if (failed instanceof BackendUnreachable) return say(503, "not_now_title", WORDS.say("unanswered"));
    if (failed instanceof DeviceError) return say(503, "not_now_title", failed.message);
    if (failed instanceof WireError || failed instanceof NotTaken) return say(422, "not_taken_title", failed.message);
    console.error(failed);
    return say(500, "fault_title", WORDS.say("fault"));
  }
}
