// Counting what is displayed and clicked, in private, and what the counts say of each piece of news.
import { type ValueOf, WireError, absent, list, record } from "./forms";
import { distinct, newsId, releaseId } from "./ids";
import { integer, moment, real } from "./values";

export const COUNTED_NEWS_LIMIT = 8_192;
export const LIFTS_LIMIT = 50_000;
export const POPULAR_LIMIT = 200;
export const LIFT_STEP = 1 / 32;
/** Lifts are told from -2 to 2: a rate of a seventh to seven times the usual one. */
export const LIFT_REACH = 2;
/** The material of a count, and the tensors of a device's, each float32 [n]. */
export const MATERIAL = "news";
export const DISPLAYED = "displayed";
export const CLICKED = "clicked";

/** What a count is about, and how much of it may come from one device. */
export const countList = record(
  {
    news: list(newsId, { max: COUNTED_NEWS_LIMIT }),
    displayed_limit: integer({ min: 1, max: 1_024 }),
    clicked_limit: integer({ min: 1, max: 256 }),
    displayed_unit: real({ above: 0, max: 1 }),
    window_hours: real({ above: 0, max: 24 * 7 }),
  },
  ({ news }) => {
    if (!distinct(news)) throw new WireError("news must be distinct");
  },
);
export type CountList = ValueOf<typeof countList>;

/** The L2 norm that no device's vector exceeds. */
export function countNorm(counted: CountList): number {
  return Math.sqrt(counted.clicked_limit + counted.displayed_unit ** 2 * counted.displayed_limit);
}

/** What is popular now, as private counts have it; before any, by recency and editorial weight alone. */
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
    if (!distinct(news) || !distinct(popular)) throw new WireError("news, popular: each piece of news at most once");
    const most = LIFT_REACH / LIFT_STEP;
    if (lifts.some((lift) => Math.abs(lift) > most)) throw new WireError(`lifts: from ${-most} to ${most} steps`);
  },
);
export type Popularity = ValueOf<typeof popularity>;
