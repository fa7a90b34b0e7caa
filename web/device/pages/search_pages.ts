// Searching the news on this device. Every answer comes from the device alone.
import { mostCommon } from "../feed/shares";
import { SEARCH_PAGE } from "../feed/whole_pool";
import type { NewsCard } from "../wire/news";
import type { PageRenderer } from "./renderer";
import { type Route, pageNumber } from "./routes";

const PAGES_LIMIT = 10_000;
export const WORDS_LIMIT_CHARS = 200;
const TOPICS_OFFERED = 3;
const LOOKED_THROUGH = 20;

export function searchPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  const { stores } = device.parts;
  return [
    {
      method: "GET",
      path: /^\/search$/,
      answer(call) {
        const typed = (call.query.get("q") ?? "").slice(0, WORDS_LIMIT_CHARS);
        const query = typed.split(/\s+/u).filter(Boolean).join(" ");
        const page = pageNumber(call, PAGES_LIMIT);
        const found = query ? device.wholePool.search(query, page) : null;
        const topics = topicsOf(found?.cards ?? []).map((name) => [name, stores.stances.of("topic", name)]);
        const values = {
          query,
          found,
          page,
          size: SEARCH_PAGE,
          // a copy of the pool has no index of words here: nothing is said of it, neither that there is none
          pool: stores.pool.current() ? 0 : null,
          texts: device.wholePool.texts(),
          held: null,
          topics,
        };
        return renderer.cards(call, "search", values, page > 1 && !found?.cards.length ? 404 : 200);
      },
    },
  ];
}

/** The topics most of the best results are on, to follow one. */
function topicsOf(found: readonly NewsCard[]): string[] {
  const topics = found.slice(0, LOOKED_THROUGH).flatMap((card) => (card.topic ? [card.topic] : []));
  return mostCommon(topics).slice(0, TOPICS_OFFERED).map(([name]) => name);
}
