// What a page of the feed is offered in its place: the page itself stays until its reader asks for another.
import { HOUR_MS, msOf } from "../moments";
import type { DeviceStores } from "../parts";
import type { NewsCard } from "../wire/news";
import type { Feed } from "./item";

/**
 * Why another page would differ from this one, and which pages lie before it and after it.
 *
 * new: stories that came to this device since it was made and that its reader may want;
 * read: stories opened since; told: something was liked, unwanted, followed or hidden since; ranked: another release ranks
 * now. came: ids of stories in the page itself that came here since the page before it was made.
 */
export interface Offer {
  readonly new: number;
  readonly read: number;
  readonly told: boolean;
  readonly ranked: boolean;
  readonly before: string | null;
  readonly after: string | null;
  readonly came: readonly string[];
}

/**
 * Nothing is asked of anybody for it. listed: ids of the default list; release: the one in use, null before the first;
 * toldSince: whether something else was said since, in this visit.
 */
export function offered(
  feed: Feed,
  stores: DeviceStores,
  listed: readonly string[],
  release: string | null,
  freshHours: number,
  toldSince: boolean,
): Offer {
  const madeAt = msOf(feed.made_at);
  const { before, after } = stores.feeds.beside(feed.feed_id);
  const earlier = before === null ? null : stores.feeds.get(before);
  const items = feed.items.map((item) => item.card);
  const came = earlier ? [...stores.news.arrivedSince(earlier.madeAt, recent(items, earlier.madeAt, freshHours))] : [];
  const none = { new: 0, read: 0, told: false, ranked: false, before, after, came };
  if (after !== null || !feed.feed_id || release === null) return none;
  const said = stores.feedback.reactions().some(({ kind, at }) => kind !== "save" && at > madeAt);
  const told = said || toldSince;
  const more = newStories(feed, stores, listed, freshHours);
  const read = stores.clicks.countSince(madeAt);
  const ranked = feed.release !== release;
  return { new: more, read, told, ranked, before, after, came };
}

function recent(cards: readonly NewsCard[], moment: number, hours: number): string[] {
  return cards.filter((card) => msOf(card.published_at) > moment - hours * HOUR_MS).map((card) => card.id);
}

/** Of a whole list only what arrived since is read: on most visits nothing is. */
function newStories(feed: Feed, stores: DeviceStores, listed: readonly string[], freshHours: number): number {
  const madeAt = msOf(feed.made_at);
  const arrived = stores.news.arrivedSince(madeAt, listed);
  if (!arrived.size) return 0;
  const shown = new Set([...feed.items.map((item) => item.card.id), ...stores.clicks.clicked()]);
  for (const { newsId } of stores.feedback.reactions("less")) shown.add(newsId);
  const blocked = new Set(stores.stances.blocked().map(({ kind, name }) => `${kind}/${name}`));
  const wanted = stores.news.cards([...arrived]).filter(
    (card) =>
      !shown.has(card.id) &&
      !["topic", "section", "publisher"].some((kind) => blocked.has(`${kind}/${card[kind as "topic"]}`)),
  );
  const fresh = new Set(recent(wanted, madeAt, freshHours));
  for (const seen of stores.impressions.timesSeen(fresh, madeAt).keys()) fresh.delete(seen);
  return fresh.size;
}
