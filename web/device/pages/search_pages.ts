// Search over the articles on this device, and the saved list. Every answer comes from the device alone.
import { mostCommon } from "../feed/exploration";
import { SEARCH_PAGE } from "../feed/whole_pool";
import type { NewsCard } from "../protocol/news";
import { SearchRefused, WORDS_LIMIT_CHARS, plainOf } from "../store/searches";
import { savedIn } from "../view_models/explore";
import { type PageRenderer, WORDS } from "./renderer";
import { get, pageNumber, post, seeOther, type Route } from "./route";

const PAGES_LIMIT = 10_000;
const TOPICS_OFFERED = 3;
const LOOKED_THROUGH = 20;

export function searchPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  const { stores } = device.parts;
  return [
    get(/^\/search$/, async (call) => {
      const query = plainOf((call.query.get("q") ?? "").slice(0, WORDS_LIMIT_CHARS));
      const page = pageNumber(call, PAGES_LIMIT);
      const withHidden = call.query.get("hidden") === "show";
      const found = query ? await device.wholePool.search(query, page, { hidden: withHidden }) : null;
      const topics = topicsOf(found?.cards ?? []).map((name) => [name, stores.stances.of("topic", name)]);
      const kept = await device.library.searches();
      const values = {
        query,
        found,
        page,
        with_hidden: withHidden,
        size: SEARCH_PAGE,
        pool: device.wholePool.size(),
        texts: device.wholePool.texts(),
        held: savedIn(kept, query),
        topics,
        kept,
      };
      return renderer.cards(call, "search", values, page > 1 && !found?.cards.length ? 404 : 200);
    }),
    get(/^\/searches$/, async (call) => renderer.page(call, "searches", { kept: await device.library.searches() })),
    post(/^\/searches$/, (call) => {
      try {
        device.library.saveSearch(call.form.one("words"));
      } catch (refused) {
        if (!(refused instanceof SearchRefused)) throw refused;
        return renderer.problem(call, 422, WORDS.say("search_refused_title"), `${refused.message}.`);
      }
      return seeOther(call.form.one("back") || "/searches", "search_saved");
    }),
    post(/^\/searches\/(\d{1,15})\/delete$/, ({ parts, form }) => {
      device.library.deleteSearch(Number(parts[0]));
      return seeOther(form.one("back") || "/searches", "search_deleted");
    }),
  ];
}

/** The topics of most of the best results, to offer for following. */
function topicsOf(found: readonly NewsCard[]): string[] {
  const topics = found.slice(0, LOOKED_THROUGH).flatMap((card) => (card.topic ? [card.topic] : []));
  return mostCommon(topics).slice(0, TOPICS_OFFERED).map(([name]) => name);
}
