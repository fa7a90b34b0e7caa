// Drawn art for news: nothing is fetched for it, each picture follows from the section and the id. The same news gets the
// same picture on both kinds of device; which motifs a section and a topic have is one list for both.
import { sha256 } from "@noble/hashes/sha2.js";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import named from "../../../../device_app/pages/art/motifs.json";
import { PythonRandom } from "../../feed/chance";
import { mixInks } from "./colours";
import * as motifs from "./motifs";
import type { Motif } from "./motifs";
import { keys, record, reel, sound } from "./motifs_arts";
import { basket, board, candles, car, cells, paper, prints, wheels } from "./motifs_play";
import { HEIGHT, WIDTH } from "./shapes";

const { circuit, columns, globe, hills, leaves, ledger, orbits, pages, pitch, road, sky, skyline, stage, table, waves } = motifs;
const MOTIFS: ReadonlyMap<string, Motif> = new Map(
  Object.entries({
    ...{ circuit, columns, globe, hills, leaves, ledger, orbits, pages, pitch, road, sky, skyline, stage, table, waves },
    ...{ keys, record, reel, sound },
    ...{ basket, board, candles, car, cells, paper, prints, wheels },
  }),
);
const SECTIONS: Readonly<Record<string, readonly string[]>> = named.sections;
const TOPICS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = named.topics;
const KEPT = 512;

const plain = (name: string) => name.trim().toLowerCase().replace(/[-_]/g, " ");

/** What may be drawn for news of a section and topic; hyphens, underscores and case are alike. */
function motifsOf(section: string, topic: string): Motif[] {
  const name = plain(section);
  const found = own(own(TOPICS, name) ?? {}, plain(topic)) ?? own(SECTIONS, name) ?? named.otherwise;
  return found.map((motif) => MOTIFS.get(motif) ?? paper);
}

/** A name of news may be one that every object has. */
function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

const drawn = new Map<string, string>();

/** The picture of a piece of news: an SVG document, 640 x 400, without text, script or reference. */
export function draw(section: string, newsId: string, topic = ""): string {
  const key = JSON.stringify([section, newsId, topic]);
  let picture = drawn.get(key);
  if (picture === undefined) {
    if (drawn.size >= KEPT) drawn.clear();
    drawn.set(key, (picture = made(section, newsId, topic)));
  }
  return picture;
}

function made(section: string, newsId: string, topic: string): string {
  // a picture, not a secret: it must be the same on every day
  const chance = new PythonRandom(sha256(utf8ToBytes(`${section.trim().toLowerCase()}\0${newsId}`)));
  const inks = mixInks(section, chance);
  const layers = chance.choice(motifsOf(section, topic))(chance, inks).join("");
  const mirrored = chance.random() < 0.5 ? ` transform="matrix(-1 0 0 1 ${WIDTH} 0)"` : "";
  const [x1, y1, x2, y2] = chance.choice(["0 0 1 1", "0 0 0 1", "1 0 0 1"]).split(" ");
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="xMidYMid slice">` +
    `<defs><linearGradient id="s" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}">` +
    `<stop stop-color="${inks.sky}"/><stop offset="1" stop-color="${inks.glow}"/></linearGradient></defs>` +
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="url(#s)"/><g${mirrored}>${layers}</g></svg>`
  );
}

/** The picture as an address that holds it. */
export function dataAddress(picture: string): string {
  return `data:image/svg+xml,${encodeURIComponent(picture)}`;
}
