// How long requests take, stage by stage, and the same figures as a file.
import { latencyView } from "../view_models/latency";
import type { PageRenderer } from "./renderer";
import type { Route } from "./routes";

export function latencyPages(renderer: PageRenderer): Route[] {
  const { timings } = renderer.device.parts.stores;
  return [
    {
      method: "GET",
      path: /^\/latency$/,
      answer: (call) => renderer.page(call, "latency", { latency: latencyView(timings) }),
    },
    {
      method: "GET",
      path: /^\/latency\.json$/,
      answer() {
        const content = new TextEncoder().encode(JSON.stringify(latencyView(timings)));
        return { kind: "file", name: "ownfeed-latency.json", type: "application/json", content };
      },
    },
  ];
}
