// Articles as the reader's device sees them: cards without bodies, and bodies fetched separately.
import { absent, list, moment, optional, real, record, text, truth, type Form, type ValueOf } from "./forms";
import { BODY_CHARS } from "./bodies";
import { newsId } from "./ids";
import { leadsOut } from "./links";
import { msOf } from "./moments";

export const BODIES_PER_REQUEST = 1_000;
const ALSO_LIMIT = 100;
const UNDATED_MS = 30 * 86_400_000;

/**
 * Pages link to it. An address that isn't a public web page is read as no link, so that a bad link doesn't invalidate a
 * whole answer.
 */
const link: Form<string> = (() => {
  const any = text({ max: 2_000 });
  return {
    read: (value) => {
      const url = any.read(value);
      return leadsOut(url) ? url : "";
    },
    write: any.write,
  };
})();

/**
 * Another source's article about the same event, which is not listed by itself. Its text is requested by its own id.
 */
export const alsoIn = record({
  id: newsId,
  title: text({ max: 1_000 }),
  url: link,
  publisher: text({ max: 120 }),
  published_at: moment,
});

/** What a feed shows of an article before it is opened. */
export const newsCard = record({
  id: newsId,
  title: text({ max: 1_000 }),
  abstract: text({ max: 5_000 }),
  url: link,
  publisher: text({ max: 120 }),
  section: text({ max: 80 }),
  topic: text({ max: 80 }),
  story: absent(text({ max: 80 })),
  published_at: moment,
  /** False: the time is that of its arrival, and its age is unknown. */
  dated: optional(truth, true),
  weight: real({ min: 0, max: 1 }),
  /** Newest first. */
  also: optional(list(alsoIn, { max: ALSO_LIMIT }), []),
});
export type NewsCard = ValueOf<typeof newsCard>;

/**
 * Returns the time by which an article is sorted, in milliseconds since 1970. One of unknown age comes after dated
 * ones.
 */
export function countedMs(card: NewsCard): number {
  return msOf(card.published_at) - (card.dated ? 0 : UNDATED_MS);
}

/** POST /v1/news/bodies: all ids of a returned list at once, so that none stands out. */
export const bodiesRequest = record({ ids: list(newsId, { min: 1, max: BODIES_PER_REQUEST }) });
export type BodiesRequest = ValueOf<typeof bodiesRequest>;

/** The text of one article: HTML of one small vocabulary (bodies.ts), which pages check before they show it. */
export const newsBody = record({ id: newsId, body: text({ max: BODY_CHARS }) });

/** The bodies of those articles that the server still has. */
export const bodiesAnswer = record({ bodies: list(newsBody) });
export type BodiesAnswer = ValueOf<typeof bodiesAnswer>;
