// News as the reader's device sees it: a card without a body, and bodies fetched apart.
import { type Form, type ValueOf, absent, list, record } from "./forms";
import { newsId } from "./ids";
import { moment, real, text } from "./values";

export const BODIES_PER_REQUEST = 1_000;

/** Whether a browser opens this as a page of the web: http or https, a host, and nothing that it would strip. */
export function isWebAddress(url: string): boolean {
  // browsers drop line breaks and tabs anywhere: "java\nscript:" is a script to them
  if (/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u.test(url) || url.startsWith(" ") || url.endsWith(" ")) return false;
  const place = /^https?:\/\/([^/?#]*)/i.exec(url)?.[1];
  if (place === undefined) return false;
  const named = /\P{ASCII}/u.test(place) ? place.replace(/[@:#?]/g, "") : "";
  if (named !== named.normalize("NFKC") && /[/?#@:]/.test(named.normalize("NFKC"))) return false;
  const host = place.slice(place.lastIndexOf("@") + 1);
  if (!/[[\]]/.test(place)) return host.split(":")[0] !== "";
  const address = /^\[([0-9A-Fa-f:.]+)(?:%[^\]]+)?\](?::.*)?$/.exec(host)?.[1];
  return address !== undefined && !/[[\]]/.test(place.slice(0, -host.length || undefined)) && isIPv6(address);
}

function isIPv6(address: string): boolean {
  try {
    return new URL(`http://[${address}]/`).hostname !== "";
  } catch {
    return false;
  }
}

/**
 * Pages put it into a link: what is no web address is read as no link at all, so that one bad link doesn't cost an
 * answer.
 */
const link: Form<string> = (() => {
  const any = text({ max: 2_000 });
  return {
    read: (value) => {
      const url = any.read(value);
      return isWebAddress(url) ? url : "";
    },
    write: any.write,
  };
})();

/** What a feed shows of a piece of news before it is opened. */
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
  weight: real({ min: 0, max: 1 }),
});
export type NewsCard = ValueOf<typeof newsCard>;

/** POST /v1/news/bodies: the ids of a whole returned list at once, so that none of them stands out. */
export const bodiesRequest = record({ ids: list(newsId, { min: 1, max: BODIES_PER_REQUEST }) });
export type BodiesRequest = ValueOf<typeof bodiesRequest>;

/** The text of one piece of news, paragraphs separated by a blank line. */
export const newsBody = record({ id: newsId, body: text({ max: 200_000 }) });
export type NewsBody = ValueOf<typeof newsBody>;

/** The bodies of the news that the server still has. */
export const bodiesAnswer = record({ bodies: list(newsBody) });
export type BodiesAnswer = ValueOf<typeof bodiesAnswer>;
