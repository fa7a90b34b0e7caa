// Explore and Following, and all that is here of one topic, section or publisher. Nobody is told which was opened.
import { LISTED } from "../feed/whole_pool";
import type { StanceKind } from "../store/opinions";
import { regrouped } from "../view_models/explore";
import type { PageRenderer, PageRequest } from "./renderer";
import { Nowhere, type Route, pageNumber } from "./routes";

const EXPLORE_SHOWN = 3;
const SECTIONS_SHOWN = 24;
const SHOWN = 30;
const NAME_CHARS = 120;

export function listPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  const { stores } = device.parts;

  const named = (call: PageRequest & { parts: readonly string[] }, kind: StanceKind) => {
    const [name = ""] = call.parts;
    if (!name || name.length > NAME_CHARS) throw new Nowhere();
    const held = device.lists.hold(`${kind}/${name}`, device.wholePool.named(kind, name), !device.wholePool.isUnread());
    const page = pageNumber(call, LISTED / SHOWN);
    const upto = page * SHOWN;
    const shown = held.cards.slice(upto - SHOWN, upto);
    device.wholePool.show(shown);
    const older = held.cards.length > upto ? page + 1 : null;
    const values = { kind, name, stance: stores.stances.of(kind, name), pool: device.wholePool.size(), held, came: held.came, shown, page, older };
    return renderer.cards(call, "named", values, shown.length ? 200 : 404);
  };

  return [
    {
      method: "GET",
      path: /^\/explore$/,
      answer(call) {
        const listed = device.explore().flatMap(({ cards }) => cards.slice(0, EXPLORE_SHOWN));
        const held = device.lists.hold("explore", listed);
        const all = regrouped(held.cards, device.stances());
        const values = { listed: all.slice(0, SECTIONS_SHOWN), others: all.slice(SECTIONS_SHOWN), held, came: held.came };
        return renderer.cards(call, "explore", values);
      },
    },
    { method: "GET", path: /^\/explore\/(.+)$/, answer: (call) => named(call, "section") },
    { method: "GET", path: /^\/topic\/(.+)$/, answer: (call) => named(call, "topic") },
    { method: "GET", path: /^\/publisher\/(.+)$/, answer: (call) => named(call, "publisher") },
  ];
}
