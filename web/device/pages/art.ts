// Pictures on pages: publishers' ones, and the drawn picture and hue of a story without one, chosen as in
// device_app/pages/art.py. All drawn pictures are one file of the build, which every device downloads, so no request
// depends on what is shown.
import { sha256 } from "@noble/hashes/sha2.js";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import table from "../../../device_app/pages/art.json";
import artFile from "../../static/art?pictures";
import type { Device } from "../device";
import { toBase64 } from "../protocol/forms";

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
function drawnAddress(drawn: Drawn, name: string): string {
  const picture = own(drawn, name);
  return picture === undefined ? "" : `data:image/svg+xml,${encodeURIComponent(picture)}`;
}

const DRAWN = /^\/static\/art\/([a-z]+-\d+)\.svg$/;
const PUBLISHERS = /^\/pictures\/([^/]+)\.webp\?of=[^&]*(?:&n=(\d))?$/;

/** Returns the pictures that pages refer to. Sends no request. */
export class Pictures {
  /** Resolves once the drawn pictures are loaded, or can't be. */
  readonly ready: Promise<void>;
  private drawn: Drawn = {};

  /** file: loads a file of the build by its address. */
  constructor(
    private readonly device: Device,
    file: (address: string) => Promise<ArrayBuffer>,
  ) {
    this.ready = file(artFile).then(
      (bytes) => {
        this.drawn = JSON.parse(new TextDecoder().decode(bytes)) as Drawn;
      },
      (fault: unknown) => console.error("drawn pictures could not be loaded:", fault),
    );
  }

  /** Whether the drawn pictures are here. */
  get loaded(): boolean {
    return Object.keys(this.drawn).length > 0;
  }

  /** An address that contains the picture's data; empty for one that no page of this app uses. */
  at(address: string): string {
    const [, story, number = "0"] = PUBLISHERS.exec(address) ?? [];
    if (story !== undefined) return this.publishers(decodeURIComponent(story), Number(number));
    return drawnAddress(this.drawn, DRAWN.exec(address)?.[1] ?? "");
  }

  /** The publisher's picture; the drawn one if it has been deleted since the page was made. */
  private publishers(newsId: string, ofText: number): string {
    const { news, pictures } = this.device.parts.stores;
    const content = pictures.content(newsId, ofText);
    if (content) return `data:image/webp;base64,${toBase64(content).replaceAll("-", "+").replaceAll("_", "/")}`;
    const [card] = news.cards([newsId]);
    return card ? drawnAddress(this.drawn, pictureName(card)) : "";
  }
}
