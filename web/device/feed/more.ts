// More at the end of a page of the feed: it grows in its place, and what was added belongs to it from then on.
import { Stopwatch } from "../wire/server_timing";
import { type FeedContext, rankedPage, readerOf, withContexts } from "./build";
import { allowed } from "./exclusions";
import type { Feed } from "./item";
import type { ServingModels } from "./model_cache";

export const ADDED = 12;
/** Items of a page that has grown; its reader asks for a new one then. */
const LONGEST = 150;

/**
 * The feed with the next best stories below what it has, kept so; complete where there are no more. They are ranked as a
 * page is, out of the last answer and the default list: nothing is asked of anybody.
 */
export async function grown(context: FeedContext, models: ServingModels, feed: Feed): Promise<Feed> {
  if (feed.complete) return feed;
  const now = context.clock();
  const reader = withContexts(models, readerOf(context, models));
  const defaultList = context.defaultList.candidates(models.encoder, models.dimensions);
  const known = context.recall.known(defaultList);
  const here = new Set(feed.items.map((item) => item.card.id));
  const left = known.where(allowed(known, reader.preferences).map((may, row) => may && !here.has(known.ids[row] as string)));
  const size = Math.min(ADDED, LONGEST - feed.items.length);
  const page = await rankedPage(context, models, left, defaultList, reader, now, new Stopwatch(), size);
  const first = feed.items.length;
  const added = page.items.map((item, at) => ({ ...item, slot: "more" as const, position: first + at }));
  const items = [...feed.items, ...added];
  const complete = added.length < ADDED || items.length >= LONGEST;
  return context.kept.grow({ ...feed, items, complete }, page.shown, page.popularity, now);
}
