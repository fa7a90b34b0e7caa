// A story, and what the reader says about it. Everything here is answered by the device alone.
import type { Article } from "../feed/item";
import { readingMinutes } from "../figures";
import { REACTION_KINDS, STANCE_KINDS, type StanceKind } from "../store/opinions";
import { query } from "./filters";
import { WORDS, type PageRenderer } from "./renderer";
import { NotTaken, type Route, seeOther } from "./routes";

const STANCES = ["follow", "block", "none"] as const;
const NAME_CHARS = 120;

/** One of what a form offers; throws NotTaken. */
export function chosen<T extends string>(field: string, value: string, known: readonly T[]): T {
  const found = known.find((one) => one === value);
  if (found === undefined) throw new NotTaken(WORDS.say("field_wrong", { field, what: value.slice(0, 40) }));
  return found;
}

/** How long its text takes; null where it has none, or stops before the story does. */
export function minutesToRead({ paragraphs, ending }: Article): number | null {
  return paragraphs.length && ending === "whole" ? readingMinutes(paragraphs.join(" ")) : null;
}

export function storyPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  return [
    {
      method: "GET",
      path: /^\/story\/([^/]+)$/,
      async answer(call) {
        const feed = call.query.get("feed");
        const found = call.query.get("found");
        const from = found === null ? device.pagePath(feed) : `/search?${query({ q: found })}`;
        const article = await device.open(call.parts[0] ?? "", feed, { clicked: call.followed, found: found !== null });
        const { card } = article;
        const stanceOf = (kind: StanceKind, name: string) => device.parts.stores.stances.of(kind, name);
        const stances = STANCE_KINDS.map((kind) => [kind, card[kind], stanceOf(kind, card[kind])] as const).filter(
          ([kind, name, stance]) => name && (kind !== "topic" || name !== card.section || stance !== null),
        );
        return renderer.cards(call, "story", {
          article,
          card,
          stances,
          minutes: minutesToRead(article),
          back: `${from}#n-${card.id}`,
          back_words: WORDS.say(found === null ? "back_to_feed" : "back_to_results"),
        });
      },
    },
    {
      method: "POST",
      path: /^\/story\/([^/]+)\/react$/,
      answer(call) {
        device.react(call.parts[0] ?? "", chosen("kind", call.form.one("kind"), REACTION_KINDS));
        return seeOther(call.form.one("back"));
      },
    },
    {
      method: "POST",
      path: /^\/stance$/,
      answer({ form }) {
        const kind = chosen("kind", form.one("kind"), STANCE_KINDS);
        const stance = chosen("stance", form.one("stance"), STANCES);
        const name = form.one("name");
        if (!name || name.length > NAME_CHARS) throw new NotTaken(WORDS.say("field_wrong", { field: "name", what: name }));
        device.stance(kind, name, stance === "none" ? null : stance);
        return seeOther(form.one("back"));
      },
    },
  ];
}
