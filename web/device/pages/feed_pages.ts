// For you, Popular now, Fresh, saved stories and the first visit.
import type { Device } from "../device";
import { FOLLOWING_LIMIT } from "../feed/following";
import { ADDED } from "../feed/more";
import { type Feed, type FeedItem, inSlot } from "../feed/item";
import type { Offer } from "../feed/offer";
import { HOUR_MS, msOf } from "../moments";
import { type PrivacySettings, privacySettings } from "../privacy/settings";
import { mechanismFacts, worthOf } from "../view_models/privacy";
import { STANCE_KINDS } from "../store/opinions";
import { todayView } from "../view_models/today";
import type { NewsCard } from "../wire/news";
import { type PageAnswer, type PageRenderer, type PageRequest, WORDS, lookup } from "./renderer";
import { Nowhere, type Route, pageNumber, seeOther } from "./routes";

const FRESH_SHOWN = 120;
/** Cards of one page of Fresh, whose HTML stays below 80 kB so. */
const FRESH_PAGE = 40;
const LIST_PAGE = 30;
const LIST_PAGES = 1_000;
/** The first visit waits so long for the sections that there are. */
const SECTIONS_WAIT_MS = 1_500;
const SAVED_HELD_MS = HOUR_MS / 4;
/** The shapes of a page's cards in turn, so that a long page reads like a newspaper and not like a wall of tiles. */
const RHYTHM = ["", "", "", "brief", "brief", "brief", "wide", "", "", "", "half", "half", "brief", "brief", "brief"] as const;
const SIXTHS: Readonly<Record<string, number>> = { wide: 6, half: 3 };
const RENEWED = /^(?:fresh|explore|popular|following|saved|(?:topic|section|publisher)\/[\s\S]{1,120}|search\/[\s\S]{1,200})$/;
/** What taking part allows a day where nothing was allowed: one round of the usual kind is charged 4.3. */
const ONE_ROUND_EPSILON = 5;

type Allowance = "reports" | "counting" | "training";

export function feedPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  const { stores, serving, ledger } = device.parts;

  const pageOf = (request: PageRequest, feed: Feed) => feedPage(renderer, request, feed, device.offer(feed));
  const listed = (request: PageRequest, name: string, cards: readonly NewsCard[], more: object) => {
    const held = device.lists.hold(name, cards);
    const page = pageNumber(request, LIST_PAGES);
    return renderer.cards(request, name, { held, came: held.came, ...part(held.cards, page), ...more });
  };

  return [
    {
      method: "GET",
      path: /^\/$/,
      async answer(call) {
        return isFirstVisit(device) ? seeOther("/welcome") : pageOf(call, await device.feed());
      },
    },
    {
      method: "GET",
      path: /^\/page\/([^/]+)$/,
      answer(call) {
        const feed = serving.page(call.parts[0] ?? "");
        if (!feed) throw new Nowhere();
        return pageOf(call, feed);
      },
    },
    {
      method: "POST",
      path: /^\/seen$/,
      answer({ form }) {
        device.view(form.one("feed"), form.all("news"));
        return { kind: "done" };
      },
    },
    {
      method: "POST",
      path: /^\/feed\/refresh$/,
      async answer() {
        const feed = await device.feed(true);
        return seeOther("/", feed.mode === "offline" ? undefined : "refreshed");
      },
    },
    {
      method: "POST",
      path: /^\/feed\/more$/,
      async answer({ form }) {
        const longer = await device.more(form.one("feed"));
        if (!longer) throw new Nowhere();
        const [first] = inSlot(longer, "more").slice(-ADDED);
        return seeOther(device.pagePath(longer.feed_id) + (first ? `#n-${first.card.id}` : ""));
      },
    },
    {
      method: "GET",
      path: /^\/fresh$/,
      answer(call) {
        const cards = device.explore().flatMap((each) => (each.stance === "block" ? [] : each.cards));
        const newest = [...cards].sort((one, other) => msOf(other.published_at) - msOf(one.published_at));
        const held = device.lists.hold("fresh", newest.slice(0, FRESH_SHOWN));
        const page = pageNumber(call, FRESH_SHOWN / FRESH_PAGE);
        const upto = page * FRESH_PAGE;
        const spans = bySpan(held.cards.slice(upto - FRESH_PAGE, upto), msOf(held.made_at));
        const older = held.cards.length > upto ? page + 1 : null;
        return renderer.cards(call, "fresh", { spans, held, came: held.came, page, older });
      },
    },
    {
      method: "GET",
      path: /^\/popular$/,
      answer: async (call) => listed(call, "popular", await device.popular(), { counted_at: serving.context.popular.countedAt() }),
    },
    {
      method: "GET",
      path: /^\/following$/,
      async answer(call) {
        const items = await device.following();
        const held = device.lists.hold("following", items.map((item) => item.card));
        const reasons = lookup(new Map(items.map((item) => [item.card.id, item])));
        // What is no longer among the newest keeps its place; what is no longer followed doesn't.
        const followed = new Set(stores.stances.followed().map(({ kind, name }) => `${kind}/${name}`));
        const cards = held.cards.filter((card) => STANCE_KINDS.some((kind) => followed.has(`${kind}/${card[kind]}`)));
        const page = pageNumber(call, FOLLOWING_LIMIT / LIST_PAGE);
        const values = { follows: followed.size > 0, reasons, held, came: held.came };
        return renderer.cards(call, "following", { ...values, ...part(cards, page) });
      },
    },
    {
      method: "GET",
      path: /^\/saved$/,
      answer(call) {
        const cards = device.saved();
        const held = device.lists.hold("saved", cards);
        const old = renderer.now() - msOf(held.made_at) > SAVED_HELD_MS;
        if (pageNumber(call, LIST_PAGES) === 1 && (held.new || old)) device.lists.renew("saved");
        return listed(call, "saved", cards, { count: cards.length });
      },
    },
    {
      method: "POST",
      path: /^\/list\/refresh$/,
      answer({ form }) {
        const name = form.one("name");
        if (!RENEWED.test(name)) throw new Nowhere();
        device.lists.renew(name);
        return seeOther(form.one("back"));
      },
    },
    {
      method: "GET",
      path: /^\/welcome$/,
      async answer(call) {
        const before = device.status();
        // at first alone: the page asks again and again, and what failed is tried again at the device's own intervals
        const isComing = before.online === null && !before.alerts.length && !serving.context.defaultList.known();
        if (isComing) await soon(device.syncForFeed());
        const { chosen_sections, clicks } = device.status();
        const first = chosen_sections === null && clicks === 0;
        const sections = new Set([...device.explore().map(({ section }) => section), ...(chosen_sections ?? [])]);
        const release = serving.manifest() ?? null;
        const mechanism = mechanismFacts(device, release?.recall ?? null);
        const privacy = { today: todayView(stores, ledger), mechanism };
        return renderer.page(call, "welcome", {
          sections: [...sections].sort(),
          chosen: chosen_sections ?? [],
          first,
          allowed: first ? [...allowedBy(device.settings)] : [],
          worth: worthOf(device, release),
          privacy,
        });
      },
    },
    {
      method: "POST",
      path: /^\/welcome$/,
      async answer({ form }) {
        if (form.one("first")) device.setPrivacy(allowing(new Set(form.all("allow") as Allowance[]), device.settings));
        device.chooseSections(form.one("skip") ? [] : form.all("section"));
        await device.feed(true);
        return seeOther("/");
      },
    },
  ];
}

/** The page of a feed in use, as its address answers; null where the reader would be welcomed first. */
export function frontPage(renderer: PageRenderer, feed: Feed, offer: Offer): PageAnswer | null {
  if (isFirstVisit(renderer.device)) return null;
  return feedPage(renderer, { path: "/", query: new URLSearchParams() }, feed, offer);
}

function isFirstVisit(device: Device): boolean {
  const { chosen_sections, clicks } = device.status();
  return chosen_sections === null && clicks === 0;
}

function feedPage(renderer: PageRenderer, request: PageRequest, feed: Feed, offer: Offer): PageAnswer {
  const path = renderer.device.pagePath(feed.feed_id || null);
  return renderer.cards(request, "for_you", { feed, offer, path, came: offer.came, ...columns(feed) });
}

/** Wait for what is under way, but not so long that its reader sees nothing. */
function soon(work: Promise<void>): Promise<void> {
  return Promise.race([work, new Promise<void>((done) => setTimeout(done, SECTIONS_WAIT_MS))]);
}

/** The thirty cards of one page of a list, its number, and that of the page below it where there is one. */
function part(cards: readonly NewsCard[], page: number): object {
  const upto = page * LIST_PAGE;
  return { cards: cards.slice(upto - LIST_PAGE, upto), page, older: cards.length > upto ? page + 1 : null };
}

/** Where the items of a feed stand on the page. */
function columns(feed: Feed): object {
  const following = inSlot(feed, "following");
  const beside = following.length <= 4;
  const main = feed.items.filter((item) => item.slot === "for_you" || (item.slot === "following" && !beside));
  const more = inSlot(feed, "more");
  const batches = Array.from({ length: Math.ceil(more.length / ADDED) }, (_, at) => more.slice(at * ADDED, (at + 1) * ADDED));
  return {
    lead: inSlot(feed, "lead")[0] ?? null,
    cards: withShapes(main),
    threads: threads(inSlot(feed, "developing")),
    fresh: inSlot(feed, "fresh"),
    explore: inSlot(feed, "explore"),
    following: beside ? following : [],
    batches,
  };
}

/** Each item with the shape of its card; the last row is filled out where a lone card would leave a hole. */
function withShapes(items: readonly FeedItem[]): (readonly [FeedItem, string])[] {
  const shapes: string[] = items.map((_, at) => RHYTHM[at % RHYTHM.length] ?? "");
  const over = shapes.reduce((sum, shape) => sum + (SIXTHS[shape] ?? 2), 0) % 6;
  if (over === 2 || over === 3) shapes.splice(-1, 1, "wide");
  else if (over === 4) shapes.splice(-2, 2, "half", "half");
  return items.map((item, at) => [item, shapes[at] ?? ""] as const);
}

/** Runs of one key, in order. */
function runs<T>(items: readonly T[], key: (item: T) => string): (readonly [string, T[]])[] {
  const found: [string, T[]][] = [];
  for (const item of items) {
    const last = found.at(-1);
    if (last?.[0] === key(item)) last[1].push(item);
    else found.push([key(item), [item]]);
  }
  return found;
}

/** Developing stories, each with its items, in feed order. */
function threads(items: readonly FeedItem[]): FeedItem[][] {
  return runs(items, ({ card }) => card.story || card.id).map(([, thread]) => thread);
}

/** Cards (newest first) under 'The last hour', 'The last six hours', 'The last day', 'Before that'. */
function bySpan(cards: readonly NewsCard[], now: number): (readonly [string, NewsCard[]])[] {
  const spans = WORDS.table("spans");
  return runs(cards, (card) => {
    const hours = (now - msOf(card.published_at)) / HOUR_MS;
    const name = hours < 1 ? "hour" : hours < 6 ? "six_hours" : hours < 24 ? "day" : "before";
    return spans[name] ?? "";
  });
}

/** What these settings let leave. */
export function allowedBy(settings: PrivacySettings): Set<Allowance> {
  const allowed = new Set<Allowance>();
  if (settings.mode !== "none" && settings.mode !== "broadcast") allowed.add("reports");
  if (settings.counting) allowed.add("counting");
  if (settings.training) allowed.add("training");
  return allowed;
}

/** The changes that let these leave and nothing else; a switch that stands so already is left alone. */
export function allowing(allowed: ReadonlySet<Allowance>, before: PrivacySettings): Partial<PrivacySettings> {
  const stands = allowedBy(before);
  const changed = (name: Allowance) => allowed.has(name) !== stands.has(name);
  const training = allowed.has("training");
  return {
    ...(changed("reports") && { mode: allowed.has("reports") ? privacySettings.make({}).mode : "none" }),
    ...(changed("counting") && { counting: allowed.has("counting") }),
    ...(changed("training") && { training }),
    ...(changed("training") && training && !before.epsilon_per_day_training && { epsilon_per_day_training: ONE_ROUND_EPSILON }),
  };
}
