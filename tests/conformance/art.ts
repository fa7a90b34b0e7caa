// Which drawn pictures the browser's device shows.
import { pictureName, sectionHue } from "../../web/device/pages/art";

export const art = {
  /** For each (section, id, topic): the picture's name and the section's hue. */
  art_chosen: (asked: readonly (readonly [string, string, string])[]) =>
    asked.map(([section, id, topic]) => [pictureName({ section, id, topic }), sectionHue(section)]),
};
