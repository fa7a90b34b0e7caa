// What a feed consists of: items with reasons, and opened stories. A feed is stored as this JSON, with the Python
// device's names, and its pages are drawn from it.
import { blocksOf, CUT, oneLine, type Piece, piecesOf, textOfBody } from "../protocol/bodies";
import type { NewsCard } from "../protocol/news";
import type { Moment } from "../protocol/forms";

export type PageSlot = "lead" | "for_you" | "fresh" | "explore" | "developing" | "following" | "more";
export type FeedMode = "personal" | "cold" | "front" | "offline";
export type Ending = "whole" | "teaser" | "cut" | "absent";
export type ReasonKind =
  "interest" | "following" | "chosen" | "liked" | "recent" | "explore" | "developing" | "popular" | "rare" | "editors";

/** Elements that are a story by themselves. */
const SHOWN = new Set(["img", "audio", "video"]);
const TEASED = /\[\s*(?:…|\.\.\.)\s*\]$/;
/** A publisher's notice that the text ends here is looked for in this many of the last paragraphs. */
const TEASED_WITHIN = 2;

/** Why a story is in the feed. clicks: the reader's clicks with the most weight, strongest first. */
export interface Reason {
  readonly kind: ReasonKind;
  readonly words: string;
  readonly interest: string | null;
  readonly clicks: readonly NewsCard[];
}

/** One card in its place. score: the adjusted local score (no unit); position counts from 0. */
export interface FeedItem {
  readonly card: NewsCard;
  readonly position: number;
  readonly slot: PageSlot;
  readonly reason: Reason;
  readonly score: number;
}

/** A built feed, saved before it is shown. device_ms and server_ms are milliseconds per stage. */
export interface Feed {
  readonly feed_id: string;
  readonly made_at: Moment;
  readonly release: string | null;
  readonly items: readonly FeedItem[];
  readonly mode: FeedMode;
  readonly notice: string | null;
  readonly device_ms: Readonly<Record<string, number>>;
  readonly server_ms: Readonly<Record<string, number>>;
  readonly recalled: number;
  /** Candidates and default-list articles left out because the reader has opened or hidden them. */
  readonly left_out: number;
  readonly fresh: number;
  readonly fresh_hours: number;
  readonly complete: boolean;
}

/** The items of these slots, in feed order. */
export function inSlot(feed: Feed, ...slots: readonly PageSlot[]): FeedItem[] {
  return feed.items.filter((item) => slots.includes(item.slot));
}

/** An opened story. pieces: its checked text, empty if it isn't on this device (a text is never requested alone). */
export interface Article {
  readonly card: NewsCard;
  readonly pieces: readonly Piece[];
  readonly standfirst: string;
  readonly reason: Reason | null;
  readonly related: readonly NewsCard[];
  readonly reactions: readonly string[];
  readonly feed_id: string | null;
  readonly ending: Ending;
}

/**
 * Reads a body and says how it ends; null if the body isn't here. A body outside the vocabulary is plain text. A text that
 * is no more than its abstract is a teaser.
 */
export function textOf(body: string | null, abstract = ""): { pieces: Piece[]; ending: Ending } {
  if (body === null) return { pieces: [], ending: "absent" };
  const pieces = piecesOf(body);
  const blocks = blocksOf(pieces);
  if (textOfBody(blocks.at(-1) ?? []) === CUT) return { pieces: blocks.slice(0, -1).flat(), ending: "cut" };
  const text = textOfBody(pieces);
  const shows = pieces.some(({ kind, value }) => kind === "start" && SHOWN.has(value));
  const alone = !shows && (!text || oneLine(text) === oneLine(abstract));
  const teased = alone || text.split("\n\n").slice(-TEASED_WITHIN).some((part) => TEASED.test(part));
  return { pieces, ending: teased ? "teaser" : "whole" };
}

/** The abstract; empty if the text or a picture's description begins with the same words. */
export function standfirstOf(card: NewsCard, pieces: readonly Piece[]): string {
  const beginning = oneLine(card.abstract.replace(TEASED, "").replace(/[ …]+$/, "").replace(/\.+$/, ""));
  const texts = [textOfBody(pieces), textOfBody(pieces, { pictures: true })];
  return beginning && texts.some((text) => oneLine(text).startsWith(beginning)) ? "" : card.abstract;
}
