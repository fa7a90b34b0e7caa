// A story's page and its reactions. The device alone answers everything here.
import { FOUND } from "../feed/held_lists";
import type { Article } from "../feed/item";
import { textOfBody } from "../protocol/bodies";
import { readingMinutes } from "../protocol/formatting";
import { REACTION_KINDS, STANCE_KINDS, type StanceKind } from "../store/opinions";
import { WORDS, query, type PageAnswer, type PageRenderer } from "./renderer";
import { get, localPath, NotTaken, post, seeOther, type Route } from "./route";

const STANCES = ["follow", "block", "none"] as const;
const NAME_CHARS = 120;
/** Most stories that one form marks as read; no page shows more. */
const MARKED_AT_ONCE = 1_000;
const NEWS_ID = /^[A-Za-z0-9][A-Za-z0-9._:~-]{0,79}$/;

/** Redirects to a page that offers to undo this mark; 0: nothing was marked. */
function answerMark(back: string, batch: number): PageAnswer {
  if (!batch) return seeOther(back, "all_read");
  const [path = "/", query = ""] = (back.split("#", 1)[0] ?? "").split("?", 2);
  const parameters = query.split("&").filter((pair) => pair && !/^(?:marked|said)=/.test(pair));
  return seeOther(`${path}?${[...parameters, `marked=${batch}`].join("&")}`);
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

/** The name of the list at a path, or of a search's results, as `HeldLists` names them. */
function listName(path: string, found: string | null): string {
  const name = decodeURIComponent((path.split("?")[0] ?? "").replace(/^\//, ""));
  return found === null ? name.replace(/^explore\//, "section/") : FOUND + found;
}

export function storyPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  return [
    get(/^\/story\/([^/]+)$/, async (call) => {
      const feed = call.query.get("feed");
      const found = call.query.get("found");
      const listed = call.query.get("list");
      const searched = found === null ? device.reading.pagePath(feed) : `/search?${query({ q: found })}`;
      const from = listed === null ? searched : localPath(listed);
      const article = await device.reading.open(call.parts[0] ?? "", feed, { clicked: call.followed, found: found !== null });
      const { card } = article;
      const stanceOf = (kind: StanceKind, name: string) => device.parts.stores.stances.of(kind, name);
      const stances = STANCE_KINDS.map((kind) => [kind, card[kind], stanceOf(kind, card[kind])] as const).filter(
        ([kind, name, stance]) => name && (kind !== "topic" || name !== card.section || stance !== null),
      );
      const opened = article.feed_id ? device.parts.serving.page(article.feed_id) : null;
      const shown = opened?.items.map((item) => item.card.id) ?? device.lists.shown(listName(listed ?? "", found));
      return renderer.cards(call, "story", {
        ...device.wholePool.beside(card.id, shown),
        found,
        listed,
        tools: WORDS.table("tools"),
        article,
        card,
        stances,
        minutes: minutesToRead(article),
        text: renderer.textOf(article),
        back: `${from}#n-${card.id}`,
        back_words: WORDS.say(listed !== null ? "back_to_list" : found === null ? "back_to_feed" : "back_to_results"),
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
