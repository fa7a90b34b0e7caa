// Private counts of displays and clicks, and what they say about each article.
import { WireError, absent, integer, list, moment, real, record, type ValueOf } from "./forms";
import { distinct, newsId, releaseId } from "./ids";

export const COUNTED_NEWS_LIMIT = 8_192;
export const LIFTS_LIMIT = 50_000;
export const POPULAR_LIMIT = 200;
export const LIFT_STEP = 1 / 32;
/** Lifts are reported from -2 to 2: a rate from a seventh of the usual one to seven times it. */
export const LIFT_REACH = 2;
/** Names of a count's data, and of the tensors of a device's vector, each float32 [n]. */
export const MATERIAL = "news";
export const DISPLAYED = "displayed";
export const CLICKED = "clicked";

/** What is counted, and how much one device may contribute. */
export const countList = record(
  {
    news: list(newsId, { max: COUNTED_NEWS_LIMIT }),
    displayed_limit: integer({ min: 1, max: 1_024 }),
    clicked_limit: integer({ min: 1, max: 256 }),
    displayed_unit: real({ above: 0, max: 1 }),
    window_hours: real({ above: 0, max: 24 * 7 }),
  },
  ({ news }) => {
    const seen = new Set<string>();
    for (const id of news) {
      if (seen.has(id)) throw new WireError(`news: id ${id} appears twice`);
      seen.add(id);
    }
  },
);
export type CountList = ValueOf<typeof countList>;

/** What is popular now, from private counts; before the first, by recency and editorial weight alone. */
export const popularity = record(
  {
    release: releaseId,
    rounds: integer({ min: 0 }),
    devices: integer({ min: 0 }),
    counted_at: absent(moment),
    news: list(newsId, { max: LIFTS_LIMIT }),
    lifts: list(integer(), { max: LIFTS_LIMIT }),
    popular: list(newsId, { max: POPULAR_LIMIT }),
  },
  ({ news, lifts, popular }) => {
    if (news.length !== lifts.length) throw new WireError(`lifts: ${lifts.length} for ${news.length} news`);
    if (!distinct(news) || !distinct(popular)) throw new WireError("news, popular: must list each article at most once");
    const most = LIFT_REACH / LIFT_STEP;
    if (lifts.some((lift) => Math.abs(lift) > most)) throw new WireError(`lifts: from ${-most} to ${most} steps`);
  },
);
export type Popularity = ValueOf<typeof popularity>;
