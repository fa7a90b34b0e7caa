// What a feed page offers: a new page in its place, or more stories at its end.
//
// A page stays until the reader asks for another. It grows in place, and added stories then belong to it.
import { HOUR_MS, msOf } from "../protocol/moments";
import type { DeviceStores } from "../parts";
import { type NewsCard, countedMs } from "../protocol/news";
import { Stopwatch } from "../protocol/server_timing";
import { rankedPage, readerOf, type FeedContext, withContexts } from "./build";
import { allowed } from "./exclusions";
import type { Feed } from "./item";
import type { ServingModels } from "./model_cache";

/**
 * Why a new page would differ from this one, and the pages before and after it.
 *
 * new: how many stories that reached this device since the page was made the next page will show; null if there are
 * such stories and the number isn't known. read: stories read since. changed:
 * whether the reader liked, disliked, followed or hid something since. ranked: whether the release changed since. came:
 * ids of stories on the page that arrived after the previous page was made.
 */
export interface Offer {
  readonly new: number | null;
  readonly read: number;
  readonly changed: boolean;
  readonly ranked: boolean;
  readonly before: string | null;
  readonly after: string | null;
  readonly came: readonly string[];
}

/**
 * Returns the offer for a page, without a request. listed: ids of the default list. release: the current one, null
 * before the first. changedSince: whether the reader has changed a preference since, in this visit. promised: how many
 * of these new stories the next page will show.
 */
export function offered(
  feed: Feed,
  stores: DeviceStores,
  listed: readonly string[],
  release: string | null,
  freshHours: number,
  changedSince: boolean,
  promised: (known: ReadonlySet<string>) => number | null,
): Offer {
  const madeAt = msOf(feed.made_at);
  const { before, after } = stores.feeds.beside(feed.feed_id);
  const earlier = before === null ? null : stores.feeds.get(before);
  const items = feed.items.map((item) => item.card);
  const arrived = earlier ? stores.news.arrivedSince(earlier.madeAt, recent(items, earlier.madeAt, freshHours)) : [];
  // a story of the pool that was stored only because a page shows it didn't arrive with a list
  const byPage = stores.news.arrivedSince(madeAt - 1, items.map(({ id }) => id));
  const cameWithList = [...arrived].filter((id) => !byPage.has(id));
  const none = { new: 0, read: 0, changed: false, ranked: false, before, after, came: cameWithList };
  if (after !== null || !feed.feed_id || release === null) return none;
  const reacted = stores.feedback.reactions().some(({ kind, at }) => kind !== "save" && at > madeAt);
  const changed = reacted || changedSince;
  const more = promised(newStories(feed, stores, listed, freshHours));
  const read = stores.readMarks.countSince(madeAt);
  const ranked = feed.release !== release;
  return { new: more, read, changed, ranked, before, after, came: cameWithList };
}

function recent(cards: readonly NewsCard[], moment: number, hours: number): string[] {
  return cards.filter((card) => countedMs(card) > moment - hours * HOUR_MS).map((card) => card.id);
}

/** Returns the ids of new stories. Reads only what arrived in a list since then, which on most visits is nothing. */
export function newStories(feed: Feed, stores: DeviceStores, listed: readonly string[], freshHours: number): Set<string> {
  const madeAt = msOf(feed.made_at);
  const arrived = stores.news.arrivedSince(madeAt, listed);
  if (!arrived.size) return arrived;
  const shown = new Set([...feed.items.map((item) => item.card.id), ...stores.readMarks.ids()]);
  for (const hidden of stores.muteRules.hiddenAmong(arrived)) shown.add(hidden);
  for (const { newsId } of stores.feedback.reactions("less")) shown.add(newsId);
  const blocked = new Set(stores.stances.blocked().map(({ kind, name }) => `${kind}/${name}`));
  const wanted = stores.news.cards([...arrived]).filter(
    (card) =>
      !shown.has(card.id) &&
      !["topic", "section", "publisher"].some((kind) => blocked.has(`${kind}/${card[kind as "topic"]}`)),
  );
  const fresh = new Set(recent(wanted, madeAt, freshHours));
  for (const seen of stores.impressions.timesSeen(fresh, madeAt).keys()) fresh.delete(seen);
  return fresh;
}

export const ADDED = 12;
/** Most items of a grown page; after that the reader asks for a new one. */
const LONGEST = 150;

/**
 * Adds the next best stories to the feed and saves it; marks it complete if there are no more. Ranks the last answer
 * and the default list like a page; sends no request.
 */
export async function grown(context: FeedContext, models: ServingModels, feed: Feed): Promise<Feed> {
  if (feed.complete) return feed;
  const [now, watch] = [context.clock(), new Stopwatch()];
  const reader = withContexts(models, readerOf(context, models));
  const defaultList = context.defaultList.candidates(models.encoder, models.dimensions);
  const { candidates } = context.recall.find(models, reader.preferences.clickVectors, watch);
  const known = context.recall.joined(candidates, context.recall.known(defaultList));
  const here = new Set(feed.items.map((item) => item.card.id));
  const left = known.where(allowed(known, reader.preferences).map((may, row) => may && !here.has(known.ids[row] as string)));
  const size = Math.min(ADDED, LONGEST - feed.items.length);
  const page = await rankedPage(context, models, left, defaultList, reader, now, watch, size);
  const first = feed.items.length;
  const added = page.items.map((item, at) => ({ ...item, slot: "more" as const, position: first + at }));
  const items = [...feed.items, ...added];
  const complete = added.length < ADDED || items.length >= LONGEST;
  return context.kept.grow({ ...feed, items, complete }, page.shown, page.popularity, now);
}
