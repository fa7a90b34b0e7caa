// What a feed is made of: its items with their reasons, and a story as it is opened. A feed is kept as this very JSON, by
// the names of the Python device, and its pages are drawn from it.
import type { NewsCard } from "../wire/news";
import type { Moment } from "../wire/values";

export type PageSlot = "lead" | "for_you" | "fresh" | "explore" | "developing" | "following" | "more";
export type FeedMode = "personal" | "cold" | "front" | "offline";
export type Ending = "whole" | "teaser" | "cut" | "absent";
export type ReasonKind =
  "interest" | "following" | "chosen" | "liked" | "recent" | "explore" | "developing" | "popular" | "editors";

/** The last paragraph of a text that is sent up to here, being too long to come whole with the others of its list. */
export const CUT = "[…]";
const TEASED = /\[\s*(?:…|\.\.\.)\s*\]$/;
/** Paragraphs from the end in which a feed says so that it gives no more. */
const TEASED_WITHIN = 2;

/** Why a story is in the feed; clicks are the reader's own that weighed most, strongest first. */
export interface Reason {
  readonly kind: ReasonKind;
  readonly words: string;
  readonly interest: string | null;
  readonly clicks: readonly NewsCard[];
}

/** One card in its place; score is the adjusted local score (no unit), position counts from 0. */
export interface FeedItem {
  readonly card: NewsCard;
  readonly position: number;
  readonly slot: PageSlot;
  readonly reason: Reason;
  readonly score: number;
}

/** A built feed; saved before it is shown. device_ms and server_ms are milliseconds by stage. */
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
  /** Of the candidates and of the default list, those that its reader has opened or hides. */
  readonly left_out: number;
  readonly fresh: number;
  readonly fresh_hours: number;
  readonly complete: boolean;
}

/** The items of these slots, in feed order. */
export function inSlot(feed: Feed, ...slots: readonly PageSlot[]): FeedItem[] {
  return feed.items.filter((item) => slots.includes(item.slot));
}

/** An opened story. paragraphs is empty if its text is not on this device (it is never asked for alone). */
export interface Article {
  readonly card: NewsCard;
  readonly paragraphs: readonly string[];
  readonly standfirst: string;
  readonly reason: Reason | null;
  readonly related: readonly NewsCard[];
  readonly reactions: readonly string[];
  readonly feed_id: string | null;
  readonly ending: Ending;
}

/** A body's paragraphs and how it ends; null: it is not here. */
export function textOf(body: string | null): { paragraphs: string[]; ending: Ending } {
  if (body === null) return { paragraphs: [], ending: "absent" };
  const parts = body.split("\n\n").map((block) => block.trim()).filter(Boolean);
  if (parts.at(-1) === CUT) return { paragraphs: parts.slice(0, -1), ending: "cut" };
  const teased = !parts.length || parts.slice(-TEASED_WITHIN).some((part) => TEASED.test(part));
  return { paragraphs: parts, ending: teased ? "teaser" : "whole" };
}

/** The abstract; nothing where the text begins with the same words. */
export function standfirstOf(card: NewsCard, paragraphs: readonly string[]): string {
  const plain = (text: string) => text.split(/\s+/).filter(Boolean).join(" ");
  const begun = card.abstract.replace(TEASED, "").replace(/[ …]+$/, "").replace(/\.+$/, "");
  return begun && plain(paragraphs.join(" ")).startsWith(plain(begun)) ? "" : card.abstract;
}
