// The drawn pictures of the browser's device.
import { sectionHue } from "../../web/device/pages/art/colours";
import { draw } from "../../web/device/pages/art/drawing";

export const art = {
  /** Of each (section, news id, topic): the picture, and the section's hue. */
  art_drawn: (asked: readonly (readonly [string, string, string])[]) =>
    asked.map(([section, newsId, topic]) => [draw(section, newsId, topic), sectionHue(section)]),
};
