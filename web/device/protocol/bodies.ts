// Reads story texts as they are sent: HTML of one small vocabulary, checked strictly (protocol/bodies.py and .toml).
// Pages write the pieces of a text, never the received string.
import table from "../../../protocol/bodies.toml";
import { leadsOut } from "./links";

interface Element {
  readonly kind: string;
  readonly holds: readonly string[];
  readonly attributes?: Readonly<Record<string, string>>;
  readonly needs?: readonly string[];
}
const TABLE = table as unknown as {
  readonly top: readonly string[];
  readonly limits: Readonly<Record<"chars" | "pieces" | "depth" | "link_chars" | "words_chars" | "number_chars" | "pictures", number>>;
  readonly elements: Readonly<Record<string, Element>>;
};
const ELEMENTS = new Map(Object.entries(TABLE.elements));
export const LIMITS = TABLE.limits;
export const BODY_CHARS = LIMITS.chars;

/** The last paragraph of a text that was cut because it is too long to be sent with the others of its list. */
export const CUT = "[…]";

const PIECE = /<(\/?)([a-z][a-z0-9]*)((?: [a-z]+="[^"<>]*")*)>|([^<>]+)/y;
const ATTRIBUTE = / ([a-z]+)="([^"]*)"/g;
const REFERENCE = /&(?:(amp|lt|gt|quot);)?/g;
const MEANT: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"' };
/** Control characters except tab and line feed, and lone surrogates. */
const NOT_TEXT = /[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]/u;
const MAIL = /^mailto:[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}$/;

/** The text is outside the vocabulary. */
export class BodyError extends Error {}

/** A start tag, an end tag (value: the element's name), or text (value: the text, unescaped). */
export interface Piece {
  readonly kind: "start" | "end" | "text";
  readonly value: string;
  readonly attributes: Readonly<Record<string, string>>;
}
const NONE: Readonly<Record<string, string>> = {};

/** The pieces of a text of the vocabulary; takes time linear in its length. Throws BodyError. */
export function readBody(body: string): Piece[] {
  if (isLonger(body, BODY_CHARS)) throw new BodyError(`more than ${BODY_CHARS} characters`);
  const pieces: Piece[] = [];
  const around: string[] = [];
  PIECE.lastIndex = 0;
  for (let at = 0; at < body.length; at = PIECE.lastIndex) {
    const found = PIECE.exec(body);
    if (!found) throw new BodyError(`character ${at}: neither a tag of the vocabulary nor escaped text`);
    if (pieces.length === LIMITS.pieces) throw new BodyError(`more than ${LIMITS.pieces} pieces`);
    pieces.push(piece(found, around));
  }
  if (around.length) throw new BodyError(`<${around.at(-1)}> is not closed`);
  return pieces;
}

/** Checks one piece against the elements around it, which it changes. Throws BodyError. */
function piece([, end, name = "", written = "", text]: RegExpExecArray, around: string[]): Piece {
  const parent = around.at(-1);
  const holds = parent === undefined ? TABLE.top : (ELEMENTS.get(parent) as Element).holds;
  if (text !== undefined) {
    if (!holds.includes("text")) throw new BodyError(`text directly in <${parent ?? "body"}>`);
    return { kind: "text", value: unescaped(text), attributes: NONE };
  }
  const element = ELEMENTS.get(name);
  if (!element) throw new BodyError(`<${name.slice(0, 20)}> is not in the vocabulary`);
  if (end) {
    if (written || around.pop() !== name) throw new BodyError(`</${name}> closes no element`);
    return { kind: "end", value: name, attributes: NONE };
  }
  if (!holds.includes(element.kind) || (name === "a" && around.includes("a")))
    throw new BodyError(`<${name}> is not allowed in <${parent ?? "body"}>`);
  const attributes = attributesOf(name, element, written);
  if (element.holds.length && around.push(name) > LIMITS.depth)
    throw new BodyError(`more than ${LIMITS.depth} nested elements`);
  return { kind: "start", value: name, attributes };
}

function attributesOf(name: string, element: Element, written: string): Readonly<Record<string, string>> {
  const found = new Map<string, string>();
  const forms = new Map(Object.entries(element.attributes ?? NONE));
  for (const [, key = "", value = ""] of written.matchAll(ATTRIBUTE)) {
    const form = forms.get(key);
    if (form === undefined || found.has(key)) throw new BodyError(`<${name}> has the unknown attribute ${key.slice(0, 20)}`);
    found.set(key, unescaped(value));
    if (!isOfForm(found.get(key) as string, form)) throw new BodyError(`${key} of <${name}> is not a valid ${form}`);
  }
  const missing = element.needs?.find((key) => !found.has(key));
  if (missing !== undefined) throw new BodyError(`<${name}> lacks the attribute ${missing}`);
  return Object.fromEntries(found);
}

function isOfForm(value: string, form: string): boolean {
  if (form === "number") return /^[0-9]+$/.test(value) && value.length <= LIMITS.number_chars;
  if (form === "words") return !isLonger(value, LIMITS.words_chars);
  if (isLonger(value, LIMITS.link_chars)) return false;
  return leadsOut(value) || (form === "link" && MAIL.test(value));
}

/** Whether a text has more characters than this, counted as Python counts them. */
function isLonger(text: string, chars: number): boolean {
  return text.length > chars && [...text].length > chars;
}

function unescaped(text: string): string {
  if (NOT_TEXT.test(text)) throw new BodyError("a control character");
  return text.replace(REFERENCE, (_, name?: string) => {
    if (name === undefined) throw new BodyError("& is not escaped");
    return MEANT[name] as string;
  });
}

/** Escapes a text for use between tags and in attributes. */
export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** A text as one line; white space is what Python's `split` counts as such. */
export function oneLine(text: string): string {
  return text.split(/[^\S\ufeff]+/).filter(Boolean).join(" ");
}

/** Plain text, its paragraphs separated by blank lines, as pieces. */
function piecesOfText(text: string): Piece[] {
  const plain = text.replace(new RegExp(NOT_TEXT.source, "gu"), "");
  const parts = plain.split(/\n[^\S\ufeff]*\n/).map(oneLine).filter(Boolean);
  return parts.slice(0, Math.floor(LIMITS.pieces / 3)).flatMap((part): Piece[] => [
    { kind: "start", value: "p", attributes: NONE },
    { kind: "text", value: part, attributes: NONE },
    { kind: "end", value: "p", attributes: NONE },
  ]);
}

/** The pieces of a text, which is read as plain text if it is outside the vocabulary. */
export function piecesOf(text: string): Piece[] {
  if (!text.startsWith("<")) return piecesOfText(text);
  try {
    return readBody(text);
  } catch (outside) {
    if (!(outside instanceof BodyError)) throw outside;
    return piecesOfText(text); // markup is shown as characters, which are harmless
  }
}

/** The plain text: blocks separated by blank lines. pictures: with their alternative texts and titles. */
export function textOfBody(pieces: readonly Piece[], { pictures = false } = {}): string {
  const parts: string[] = [];
  for (const { kind, value, attributes } of pieces) {
    if (kind === "text") parts.push(value);
    else if (value === "br") parts.push("\n");
    else if (ELEMENTS.get(value)?.kind !== "inline") {
      const shown = pictures ? [attributes["alt"], attributes["title"]] : [];
      parts.push("\n\n", ...shown.filter(Boolean).map((words) => `${words}\n\n`));
    }
  }
  const blocks = parts.join("").split(/\n[ \t\n]*\n/).map((block) => block.replace(/^[ \t\n]+|[ \t\n]+$/g, ""));
  return blocks.filter(Boolean).join("\n\n");
}

/** The top-level elements, each with all its pieces. */
export function blocksOf(pieces: readonly Piece[]): Piece[][] {
  const found: Piece[][] = [];
  let depth = 0;
  for (const piece of pieces) {
    if (depth === 0) found.push([]);
    found.at(-1)?.push(piece);
    if (piece.kind === "end") depth -= 1;
    else if (piece.kind === "start" && ELEMENTS.get(piece.value)?.holds.length) depth += 1;
  }
  return found;
}
