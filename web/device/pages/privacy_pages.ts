// Pages about what left this device and what it could reveal, down to a single request's bytes.
import { levelOf, unusable } from "./settings_pages";
import { dayEnds, privacyView } from "../view_models/privacy";
import { requestGroup, requestView } from "../view_models/traffic";
import { type PageRenderer, WORDS } from "./renderer";
import { get, Nowhere, pageNumber, type Route } from "./route";

const LOG_PAGES = 100_000;

export function privacyPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  const found = (parts: readonly string[]) => {
    const entry = device.parts.stores.byteLog.entry(Number(parts[0]));
    if (!entry) throw new Nowhere();
    return entry;
  };
  return [
    get(/^\/privacy$/, (call) => {
      const show = call.query.get("show");
      if (show !== null && show !== "all" && show !== "concerning") throw new Nowhere();
      const privacy = privacyView(device, pageNumber(call, LOG_PAGES), show);
      const values = { privacy, channels: [], level: levelOf(device.privacy.settings), unusable: unusable(privacy) };
      return renderer.page(call, "privacy", { ...values, day_ends: dayEnds(renderer.now()) });
    }),
    get(/^\/privacy\/polls\/(\d{1,15})\/(\d{1,15})$/, (call) => {
      const [oldest, newest] = call.parts.map(Number);
      const polls = requestGroup(device.parts.stores.database, oldest ?? 0, newest ?? 0, pageNumber(call, LOG_PAGES));
      if (polls) return renderer.page(call, "polls", { polls });
      const words = WORDS.say("no_request", { id: String(newest) });
      return renderer.problem(call, 404, WORDS.say("no_requests_title"), words);
    }),
    get(/^\/privacy\/requests\/(\d{1,15})$/, (call) => renderer.page(call, "request", requestView(found(call.parts)))),
    get(/^\/privacy\/requests\/(\d{1,15})\/body$/, (call) => {
      const entry = found(call.parts);
      return { kind: "file", name: `request-${entry.id}.bin`, type: "application/octet-stream", content: entry.body };
    }),
  ];
}
