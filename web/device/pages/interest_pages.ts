// Pages of the reader's interests (rename, mute, delete) and of request latency by stage, also as a file.
import { NAME_LIMIT_CHARS } from "../reading/interest_profile";
import { latencyView } from "../view_models/latency";
import { WORDS, type PageRenderer } from "./renderer";
import { NotTaken, seeOther, type Route } from "./route";
import { chosen } from "./story_pages";

export function interestPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  return [
    {
      method: "GET",
      path: /^\/interests$/,
      answer: async (call) => renderer.page(call, "interests", { clusters: await device.interests.clusters() }),
    },
    {
      method: "POST",
      path: /^\/interests\/(\d{1,15})\/name$/,
      async answer({ parts, form }) {
        const name = form.one("name");
        if (!name || [...name].length > NAME_LIMIT_CHARS) throw new NotTaken(WORDS.say("field_wrong", { field: "name", what: name }));
        await device.interests.rename(Number(parts[0]), name);
        return seeOther("/interests", "renamed");
      },
    },
    {
      method: "POST",
      path: /^\/interests\/(\d{1,15})\/mute$/,
      async answer({ parts, form }) {
        const muted = chosen("muted", form.one("muted"), ["yes", "no"] as const) === "yes";
        await device.interests.mute(Number(parts[0]), muted);
        return seeOther("/interests", muted ? "muted" : "unmuted");
      },
    },
    {
      method: "POST",
      path: /^\/interests\/(\d{1,15})\/forget$/,
      async answer({ parts }) {
        await device.interests.forget(Number(parts[0]));
        return seeOther("/interests", "forgotten");
      },
    },
  ];
}

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
