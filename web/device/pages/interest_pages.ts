// Interests found in the reader's clicks: their names, and what is left out or forgotten of them.
import { NAME_LIMIT_CHARS } from "../interests/names";
import { NotTaken, type Route, seeOther } from "./routes";
import { type PageRenderer, WORDS } from "./renderer";
import { chosen } from "./story_pages";

export function interestPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  return [
    {
      method: "GET",
      path: /^\/interests$/,
      answer: async (call) => renderer.page(call, "interests", { clusters: await device.interests() }),
    },
    {
      method: "POST",
      path: /^\/interests\/(\d{1,15})\/name$/,
      async answer({ parts, form }) {
        const name = form.one("name");
        if (!name || [...name].length > NAME_LIMIT_CHARS) throw new NotTaken(WORDS.say("field_wrong", { field: "name", what: name }));
        await device.rename(Number(parts[0]), name);
        return seeOther("/interests", "renamed");
      },
    },
    {
      method: "POST",
      path: /^\/interests\/(\d{1,15})\/mute$/,
      async answer({ parts, form }) {
        const muted = chosen("muted", form.one("muted"), ["yes", "no"] as const) === "yes";
        await device.mute(Number(parts[0]), muted);
        return seeOther("/interests", muted ? "muted" : "unmuted");
      },
    },
    {
      method: "POST",
      path: /^\/interests\/(\d{1,15})\/forget$/,
      async answer({ parts }) {
        await device.forget(Number(parts[0]));
        return seeOther("/interests", "forgotten");
      },
    },
  ];
}
