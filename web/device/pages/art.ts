// Which drawn picture a story without a photograph shows, and its section's hue, as device_app/pages/art.py chooses them.
// All pictures are one file of the build, which every device downloads, so no request depends on what is shown.
import { sha256 } from "@noble/hashes/sha2.js";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import table from "../../../device_app/pages/art.json";
import artFile from "../../static/art?pictures";

export { artFile };

/** SVG source of every illustration, by name. */
export type Drawn = Readonly<Record<string, string>>;

const HUE_STEPS = 24;
const HUES: Readonly<Record<string, number>> = table.hues;
const SECTIONS: Readonly<Record<string, readonly string[]>> = table.sections;
const TOPICS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = table.topics;

const plain = (name: string) => name.trim().toLowerCase().replace(/[-_]/g, " ");

/** Looks up an own property: a section may be named 'constructor', which every object has. */
function own<T>(from: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(from, name) ? from[name] : undefined;
}

/** The section's position on the colour circle; an unknown section gets one by a hash of its name. */
export function sectionHue(section: string): number {
  const name = section.trim().toLowerCase();
  return own(HUES, name) ?? (sha256(utf8ToBytes(name))[0] ?? 0) % HUE_STEPS;
}

/** The name of the picture's file in web/static/art, without extension: 'skyline-3'. */
export function pictureName({ section, id, topic }: { section: string; id: string; topic: string }): string {
  const name = plain(section);
  const motifs = own(own(TOPICS, name) ?? {}, plain(topic)) ?? own(SECTIONS, name) ?? table.otherwise;
  const number = new DataView(sha256(utf8ToBytes(id)).buffer).getUint32(0) % (motifs.length * table.variants);
  return `${motifs[Math.floor(number / table.variants)]}-${(number % table.variants) + 1}`;
}

/** The picture of this name as a data: address; empty where there is none. */
export function pictureAddress(drawn: Drawn, name: string): string {
  const picture = own(drawn, name);
  return picture === undefined ? "" : `data:image/svg+xml,${encodeURIComponent(picture)}`;
}
