// Writes a story's checked text as HTML, as device_app/pages/story_text.py does. Only elements and attributes named in
// this file are written, around escaped text. The only addresses that a browser loads by itself are of this device's
// own pictures.
import words from "../../../device_app/pages/words.toml";
import { escaped, type Piece } from "../protocol/bodies";
import { size } from "../protocol/formatting";
import { TextCatalogue } from "../protocol/text_catalogue";

const WORDS = new TextCatalogue(words);
const LINK = 'rel="noreferrer noopener external" target="_blank"';
/** Elements whose direction follows their own text. */
const WITH_DIRECTION = new Set(["p", "h2", "h3", "h4", "li", "th", "td", "figcaption"]);

/** A picture on this device: its address here, and its size in pixels. */
export interface ShownPicture {
  readonly address: string;
  readonly width: number;
  readonly height: number;
}

type IsHome = (url: string) => boolean;

/**
 * Returns a text's HTML. picture: the device's own copy of the text's n-th picture, from 1; null if it isn't here.
 * isHome: whether a link leads to the host of this very page; such links are left out.
 */
export function storyHtml(
  pieces: readonly Piece[],
  picture: (number: number) => ShownPicture | null,
  isHome: IsHome,
): string {
  const links: boolean[] = [];
  let count = 0;
  return pieces.map((piece) => {
    const { kind, value, attributes } = piece;
    if (kind === "text") return escaped(value);
    if (value === "img") return pictureHtml(attributes, picture((count += 1)), isHome);
    if (value === "audio" || value === "video") return mediaHtml(value, attributes, isHome);
    if (value !== "a") return tag(piece);
    if (kind === "end") return links.pop() ? "</a>" : "";
    const href = attributes["href"] ?? "";
    links.push(!isHome(href));
    return links.at(-1) ? `<a href="${escaped(href)}" ${LINK}>` : "";
  }).join("");
}

function tag({ kind, value }: Piece): string {
  const starts = kind === "start";
  if (value === "table") {
    const region = `<div class="wide" role="region" aria-label="${escaped(WORDS.say("table_of_text"))}" tabindex="0"><table>`;
    return starts ? region : "</table></div>";
  }
  if (value === "pre") return starts ? '<pre dir="ltr" tabindex="0">' : "</pre>";
  if (!starts) return `</${value}>`;
  return WITH_DIRECTION.has(value) ? `<${value} dir="auto">` : `<${value}>`;
}

function pictureHtml(attributes: Piece["attributes"], here: ShownPicture | null, isHome: IsHome): string {
  const { alt = "", title = "", src = "" } = attributes;
  const parts: string[] = [];
  if (here) {
    const sizes = `width="${here.width}" height="${here.height}" loading="lazy" decoding="async"`;
    parts.push(`<img class="of-text" src="${escaped(here.address)}" alt="${escaped(alt || title)}" ${sizes}>`);
  } else {
    const shown = alt ? WORDS.say("picture_not_here", { alt }) : WORDS.say("picture_without_words");
    const link = src && !isHome(src) ? ` ${linkHtml(src, WORDS.say("picture_at", { host: hostOf(src) }))}` : "";
    parts.push(`<p class="no-picture" dir="auto">${escaped(shown)}${link}</p>`);
  }
  if (title) parts.push(`<p class="picture-title" dir="auto">${escaped(title)}</p>`);
  return parts.join("");
}

function mediaHtml(kind: "audio" | "video", attributes: Piece["attributes"], isHome: IsHome): string {
  const { src = "", seconds = "0", bytes = "0" } = attributes;
  if (isHome(src)) return "";
  const facts: string[] = [];
  if (Number(seconds))
    facts.push(WORDS.say("media_minutes", { minutes: Math.max(1, Math.floor((Number(seconds) + 30) / 60)) }));
  if (Number(bytes)) facts.push(size(Number(bytes)));
  facts.push(WORDS.say("media_visit"));
  const link = linkHtml(src, WORDS.say(kind === "audio" ? "listen_at" : "watch_at", { host: hostOf(src) }));
  return `<p class="media">${link} <span class="soft">${escaped(facts.join(" · "))}</span></p>`;
}

function linkHtml(url: string, shown: string): string {
  return `<a href="${escaped(url)}" ${LINK}>${escaped(shown)}</a>`;
}

/** The host as it is written, like Python's urlsplit: no translation of its letters. */
function hostOf(url: string): string {
  const place = /^[^:]*:\/\/([^/?#]*)/.exec(url)?.[1] ?? "";
  const host = place.slice(place.lastIndexOf("@") + 1).replace(/:\d*$/, "").replace(/^\[|\]$/g, "");
  return host.toLowerCase().replace(/^www\./, "");
}
