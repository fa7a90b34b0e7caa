// A story's page and its reactions. The device alone answers everything here.
import type { Article, Feed } from "../feed/item";
import { textOfBody } from "../protocol/bodies";
import { readingMinutes } from "../protocol/formatting";
import type { NewsCard } from "../protocol/news";
import { REACTION_KINDS, STANCE_KINDS, type StanceKind } from "../store/opinions";
import { WORDS, query, type PageAnswer, type PageRenderer } from "./renderer";
import { get, NotTaken, post, seeOther, type Route } from "./route";

const STANCES = ["follow", "block", "none"] as const;
const NAME_CHARS = 120;
/** Most stories that one form marks as read; no page shows more. */
const MARKED_AT_ONCE = 1_000;
const NEWS_ID = /^[A-Za-z0-9][A-Za-z0-9._:~-]{0,79}$/;

/** Redirects to a page that offers to undo this mark; 0: nothing was marked. */
function answerMark(back: string, batch: number): PageAnswer {
  if (!batch) return seeOther(back, "all_read");
  const [path = "/", query = ""] = (back.split("#", 1)[0] ?? "").split("?", 2);
  const asked = query.split("&").filter((pair) => pair && !/^(?:marked|said)=/.test(pair));
  return seeOther(`${path}?${[...asked, `marked=${batch}`].join("&")}`);
}

/** Returns the value if the form offers it; throws NotTaken. */
export function chosen<T extends string>(field: string, value: string, known: readonly T[]): T {
  const found = known.find((one) => one === value);
  if (found === undefined) throw new NotTaken(WORDS.say("field_wrong", { field, what: value.slice(0, 40) }));
  return found;
}

/** Reading time; null if the story has no text, or its text is cut off. */
export function minutesToRead({ pieces, ending }: Article): number | null {
  const text = textOfBody(pieces);
  return text && ending === "whole" ? readingMinutes(text.replaceAll("\n\n", " ")) : null;
}

/** The stories before and after one in the feed it was opened from; null where there is none. */
function beside(feed: Feed | null, newsId: string): { before: NewsCard | null; after: NewsCard | null } {
  const at = feed?.items.findIndex(({ card }) => card.id === newsId) ?? -1;
  if (!feed || at < 0) return { before: null, after: null };
  return { before: feed.items[at - 1]?.card ?? null, after: feed.items[at + 1]?.card ?? null };
}

export function storyPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  return [
    get(/^\/story\/([^/]+)$/, async (call) => {
      const feed = call.query.get("feed");
      const found = call.query.get("found");
      const from = found === null ? device.reading.pagePath(feed) : `/search?${query({ q: found })}`;
      const article = await device.reading.open(call.parts[0] ?? "", feed, { clicked: call.followed, found: found !== null });
      const { card } = article;
      const stanceOf = (kind: StanceKind, name: string) => device.parts.stores.stances.of(kind, name);
      const stances = STANCE_KINDS.map((kind) => [kind, card[kind], stanceOf(kind, card[kind])] as const).filter(
        ([kind, name, stance]) => name && (kind !== "topic" || name !== card.section || stance !== null),
      );
      const opened = article.feed_id ? device.parts.serving.page(article.feed_id) : null;
      return renderer.cards(call, "story", {
        ...beside(opened, card.id),
        tools: WORDS.table("tools"),
        article,
        card,
        stances,
        minutes: minutesToRead(article),
        text: renderer.textOf(article),
        back: `${from}#n-${card.id}`,
        back_words: WORDS.say(found === null ? "back_to_feed" : "back_to_results"),
      });
    }),
    post(/^\/story\/([^/]+)\/react$/, (call) => {
      const [newsId = ""] = call.parts;
      const kind = chosen("kind", call.form.one("kind"), [...REACTION_KINDS, "read"] as const);
      if (kind === "read") device.library.mark([newsId], { read: !device.parts.stores.readMarks.has(newsId) });
      else device.library.react(newsId, kind);
      return seeOther(call.form.one("back"));
    }),
    post(/^\/read$/, ({ form }) => {
      const newsIds = form.one("news").split(" ");
      if (newsIds.length > MARKED_AT_ONCE || newsIds.some((id) => !NEWS_ID.test(id)))
        throw new NotTaken(WORDS.say("field_wrong", { field: "news", what: String(newsIds.length) }));
      return answerMark(form.one("back"), device.library.mark(newsIds));
    }),
    post(/^\/read\/undo$/, ({ form }) => {
      device.library.undoMark(Number(form.one("batch")) || 0);
      return seeOther(form.one("back"));
    }),
    post(/^\/stance$/, ({ form }) => {
      const kind = chosen("kind", form.one("kind"), STANCE_KINDS);
      const stance = chosen("stance", form.one("stance"), STANCES);
      const name = form.one("name");
      if (!name || name.length > NAME_CHARS) throw new NotTaken(WORDS.say("field_wrong", { field: "name", what: name }));
      device.interests.stance(kind, name, stance === "none" ? null : stance);
      return seeOther(form.one("back"));
    }),
  ];
}
