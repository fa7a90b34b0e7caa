// Pages with lists of stories: For you, Popular, Fresh, Saved, Explore, Following, the first visit, and all stories of a
// topic, section or publisher. None sends a request, so nobody learns which one was opened.
import type { Device } from "../device";
import { inSlot, type Feed, type FeedItem } from "../feed/item";
import { ADDED, type Offer } from "../feed/offer";
import { namesIn } from "../feed/preference_reader";
import { followReason } from "../feed/reasons";
import { HOUR_MS, msOf } from "../protocol/moments";
import { privacySettings, type PrivacySettings } from "../privacy/settings";
import { type NewsCard, countedMs } from "../protocol/news";
import type { StanceKind } from "../store/opinions";
import { regrouped } from "../view_models/explore";
import { mechanismFacts, worthOf } from "../view_models/privacy";
import { todayView } from "../view_models/traffic";
import { WORDS, lookup, type PageAnswer, type PageRenderer, type PageRequest } from "./renderer";
import { get, Nowhere, pageNumber, post, seeOther, type Route } from "./route";
import { ONE_ROUND_EPSILON } from "./training_pages";

const FRESH_SHOWN = 120;
/** Cards on one page of Fresh, which keeps its HTML below 80 kB. */
const FRESH_PAGE = 30;
const LIST_PAGE = 30;
const LIST_PAGES = 10_000;
/** The first visit waits this long for the list of sections to arrive. */
const SECTIONS_WAIT_MS = 1_500;
const SAVED_HELD_MS = HOUR_MS / 4;
/** The cycle of card shapes, so that a long page looks like a newspaper rather than a grid of tiles. */
const RHYTHM = ["", "", "", "brief", "brief", "brief", "wide", "", "", "", "half", "half", "brief", "brief", "brief"] as const;
const SIXTHS: Readonly<Record<string, number>> = { wide: 6, half: 3 };
const RENEWED = /^(?:fresh|explore|popular|following|saved|(?:topic|section|publisher)\/[\s\S]{1,120}|search\/[\s\S]{1,200})$/;

type Allowance = "reports" | "counting" | "training";

export function feedPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  const { stores, serving, policy, ledger } = device.parts;

  const pageOf = async (request: PageRequest, feed: Feed) => {
    await device.reading.prepareOffer(feed);
    return feedPage(renderer, request, feed, device.reading.offer(feed));
  };
  const listed = (request: PageRequest, name: string, found: readonly NewsCard[], more: object) => {
    const held = device.lists.hold(name, found);
    const { shown: cards, page, older } = part(held.cards, pageNumber(request, LIST_PAGES), LIST_PAGE);
    return renderer.cards(request, name, { held, came: held.came, cards, page, older, ...more });
  };

  return [
    get(/^\/$/, async (call) => {
      return isFirstVisit(device) ? seeOther("/welcome") : pageOf(call, await device.reading.feed());
    }),
    get(/^\/page\/([^/]+)$/, (call) => {
      const feed = serving.page(call.parts[0] ?? "");
      if (!feed) throw new Nowhere();
      return pageOf(call, feed);
    }),
    post(/^\/seen$/, ({ form }) => {
      device.reading.view(form.one("feed"), form.all("news"));
      return { kind: "done" };
    }),
    post(/^\/feed\/refresh$/, async () => {
      const feed = await device.reading.feed(true);
      return seeOther("/", feed.mode === "offline" ? undefined : "refreshed");
    }),
    post(/^\/feed\/more$/, async ({ form }) => {
      const longer = await device.reading.more(form.one("feed"));
      if (!longer) throw new Nowhere();
      const [first] = inSlot(longer, "more").slice(-ADDED);
      return seeOther(device.reading.pagePath(longer.feed_id) + (first ? `#n-${first.card.id}` : ""));
    }),
    get(/^\/fresh$/, (call) => {
      const cards = device.reading.explore().flatMap((each) => (each.stance === "block" ? [] : each.cards));
      const newest = [...cards].sort((one, other) => +other.dated - +one.dated || msOf(other.published_at) - msOf(one.published_at));
      const held = device.lists.hold("fresh", onePerEvent(newest).slice(0, FRESH_SHOWN));
      const list = part(held.cards, pageNumber(call, FRESH_SHOWN / FRESH_PAGE), FRESH_PAGE);
      const spans = bySpan(list.shown, msOf(held.made_at));
      return renderer.cards(call, "fresh", { spans, held, came: held.came, ...list });
    }),
    get(/^\/popular$/, async (call) => listed(call, "popular", await device.reading.popular(), { counted_at: serving.context.popular.countedAt() })),
    get(/^\/following$/, (call) => {
      const follows = stores.stances.followed();
      const followed = namesIn(follows);
      const held = device.lists.holdIds("following", device.wholePool.following());
      const { shown, page, older } = part(held.ids, pageNumber(call, LIST_PAGES), LIST_PAGE);
      const listed = device.wholePool.cardsOf(shown);
      device.wholePool.show(listed);
      // A story whose name is no longer followed leaves the list at once.
      const whys = new Map(listed.flatMap((card) => [[card.id, followReason(card, followed)] as const]));
      const cards = listed.filter((card) => whys.get(card.id));
      const arrived = device.lists.came(held, listed);
      return renderer.cards(call, "following", { follows: follows.length > 0, reasons: lookup(whys), held, came: arrived, cards, page, older });
    }),
    get(/^\/saved$/, (call) => {
      const cards = device.library.saved();
      const held = device.lists.hold("saved", cards);
      const old = renderer.now() - msOf(held.made_at) > SAVED_HELD_MS;
      if (pageNumber(call, LIST_PAGES) === 1 && (held.new || old)) device.lists.renew("saved");
      return listed(call, "saved", cards, { count: cards.length });
    }),
    post(/^\/list\/refresh$/, ({ form }) => {
      const name = form.one("name");
      if (!RENEWED.test(name)) throw new Nowhere();
      device.lists.renew(name);
      return seeOther(form.one("back"));
    }),
    get(/^\/welcome$/, async (call) => {
      const before = device.status();
      // only at first: the page polls, and failures are retried at the device's own intervals
      const isComing = before.online === null && !before.alerts.length && !serving.context.defaultList.known();
      if (isComing) await soon(device.syncForFeed());
      const { chosen_sections, clicks } = device.status();
      const first = chosen_sections === null && clicks === 0;
      const sections = new Set([...device.reading.explore().map(({ section }) => section), ...(chosen_sections ?? [])]);
      const release = serving.manifest() ?? null;
      const mechanism = mechanismFacts(device, release?.recall ?? null);
      const privacy = { today: todayView(stores, policy, ledger), mechanism };
      return renderer.page(call, "welcome", {
        sections: [...sections].sort(),
        chosen: chosen_sections ?? [],
        first,
        allowed: first ? [...allowedBy(device.privacy.settings)] : [],
        worth: worthOf(device, release),
        privacy,
        first_use: stores.firstUse.question,
      });
    }),
    post(/^\/welcome$/, async ({ form }) => {
      const isBefore = form.one("before") !== "";
      if (form.one("first_use") && !isBefore) device.privacy.beginFirstUse();
      if (form.one("first")) device.privacy.change(allowing(new Set(form.all("allow") as Allowance[]), device.privacy.settings));
      if (isBefore) stores.firstUse.signFound();
      device.interests.chooseSections(form.one("skip") ? [] : form.all("section"));
      await device.reading.feed(true);
      return seeOther(isBefore ? "/settings#first-use" : "/");
    }),
  ];
}

/** The page of the current feed; null if the reader should see the first visit instead. */
export function frontPage(renderer: PageRenderer, feed: Feed, offer: Offer): PageAnswer | null {
  if (isFirstVisit(renderer.device)) return null;
  return feedPage(renderer, { path: "/", query: new URLSearchParams() }, feed, offer);
}

function isFirstVisit(device: Device): boolean {
  const { chosen_sections, clicks } = device.status();
  return chosen_sections === null && clicks === 0;
}

function feedPage(renderer: PageRenderer, request: PageRequest, feed: Feed, offer: Offer): PageAnswer {
  const path = renderer.device.reading.pagePath(feed.feed_id || null);
  return renderer.cards(request, "for_you", { feed, offer, path, came: offer.came, ...columns(feed) });
}

/** Waits for work under way, but not so long that the reader sees nothing. */
function soon(work: Promise<void>): Promise<void> {
  return Promise.race([work, new Promise<void>((done) => setTimeout(done, SECTIONS_WAIT_MS))]);
}

/** The cards without later ones that report the event of an earlier one. */
function onePerEvent(cards: readonly NewsCard[]): NewsCard[] {
  const first = new Map([...cards].reverse().flatMap((card) => (card.story ? [[card.story, card.id] as const] : [])));
  return cards.filter((card) => !card.story || first.get(card.story) === card.id);
}

/** One page of a list, its number, and the next page's number if there is one. */
function part<T>(all: readonly T[], page: number, size: number) {
  const upto = page * size;
  return { shown: all.slice(upto - size, upto), page, older: all.length > upto ? page + 1 : null };
}

/** The feed's items by place on the page. */
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

/** Each item with its card's shape; fills the last row if a lone card would leave a gap. */
function withShapes(items: readonly FeedItem[]): (readonly [FeedItem, string])[] {
  const shapes: string[] = items.map((_, at) => RHYTHM[at % RHYTHM.length] ?? "");
  const over = shapes.reduce((sum, shape) => sum + (SIXTHS[shape] ?? 2), 0) % 6;
  if (over === 2 || over === 3) shapes.splice(-1, 1, "wide");
  else if (over === 4) shapes.splice(-2, 2, "half", "half");
  return items.map((item, at) => [item, shapes[at] ?? ""] as const);
}

/** Runs of consecutive items with the same key. */
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
    const hours = (now - countedMs(card)) / HOUR_MS;
    const name = hours < 1 ? "hour" : hours < 6 ? "six_hours" : hours < 24 ? "day" : "before";
    return spans[name] ?? "";
  });
}

/** What these settings allow to be sent. */
export function allowedBy(settings: PrivacySettings): Set<Allowance> {
  const allowed = new Set<Allowance>();
  if (settings.mode !== "none" && settings.mode !== "broadcast") allowed.add("reports");
  if (settings.counting) allowed.add("counting");
  if (settings.training) allowed.add("training");
  return allowed;
}

/** The changes that allow exactly these to be sent; switches that already fit aren't changed. */
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

const EXPLORE_SHOWN = 3;
const SECTIONS_SHOWN = 24;
const NAME_CHARS = 120;

export function listPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  const { stores } = device.parts;

  const named = (call: PageRequest & { parts: readonly string[] }, kind: StanceKind) => {
    const [name = ""] = call.parts;
    if (!name || name.length > NAME_CHARS) throw new Nowhere();
    const held = device.lists.holdIds(`${kind}/${name}`, device.wholePool.named(kind, name), !device.wholePool.isUnread());
    const { shown: ids, page, older } = part(held.ids, pageNumber(call, LIST_PAGES), LIST_PAGE);
    const shown = device.wholePool.cardsOf(ids);
    device.wholePool.show(shown);
    const arrived = device.lists.came(held, shown);
    const [stance, pool] = [stores.stances.of(kind, name), device.wholePool.size()];
    const values = { kind, name, stance, pool, held, count: held.ids.length, came: arrived, shown, page, older };
    return renderer.cards(call, "named", values, shown.length ? 200 : 404);
  };

  return [
    get(/^\/explore$/, (call) => {
      const listed = device.reading.explore().flatMap(({ cards }) => onePerEvent(cards).slice(0, EXPLORE_SHOWN));
      const held = device.lists.hold("explore", listed);
      const all = regrouped(held.cards, device.interests.stances());
      const values = { listed: all.slice(0, SECTIONS_SHOWN), others: all.slice(SECTIONS_SHOWN), held, came: held.came };
      return renderer.cards(call, "explore", values);
    }),
    get(/^\/explore\/(.+)$/, (call) => named(call, "section")),
    get(/^\/topic\/(.+)$/, (call) => named(call, "topic")),
    get(/^\/publisher\/(.+)$/, (call) => named(call, "publisher")),
  ];
}
