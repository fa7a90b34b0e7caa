// Word search on the device, in any script: by letters anywhere in a word, and by SQLite's FTS5. Searched words aren't
// stored here.
import { piecesOf, textOfBody } from "../protocol/bodies";
import { msOf } from "../protocol/moments";
import type { NewsCard } from "../protocol/news";
import type { Moment } from "../protocol/forms";
import { toUs, type Database } from "./database";

const QUERY_WORDS_LIMIT = 16;
const BATCH = 50;
export const CARD_WEIGHT = 8;
const BODY_WEIGHT = 1;
/**
 * Scripts without spaces between words: each character is indexed as a word, and a searched word is a phrase of them.
 */
export const UNSPACED_ANY = /[\u2e80-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}]/u;
const UNSPACED = /([\u2e80-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}])/gu;

/**
 * Text for comparison: composed, caseless. Upper case first, so that letters with several lower-case forms match, as in
 * Python's `casefold`.
 */
export function folded(text: string): string {
  return text.normalize("NFKC").toUpperCase().toLowerCase();
}

/** The searchable text of a card, normalised for comparison. */
export function wordsOfCard(card: NewsCard): string {
  return folded([card.title, card.abstract, card.publisher, card.section, card.topic].join("\n"));
}

/** SQL conditions and values: news.words contains every word of `text` (the first sixteen). */
export function allWords(text: string): { tests: string[]; values: string[] } {
  const values = split(folded(text)).slice(0, QUERY_WORDS_LIMIT);
  return { tests: values.map(() => "instr(news.words, ?) > 0"), values };
}

function split(text: string): string[] {
  return text.split(/\s+/u).filter((word) => word !== "");
}

/** A text as indexed and searched: without case and diacritics, unspaced scripts spaced. */
export function wordsOf(text: string): string {
  if (/^[\x00-\x7f]*$/.test(text)) return text.toLowerCase();
  return folded(text).normalize("NFKD").replace(/\p{Mn}/gu, "").replace(UNSPACED, " $1 ");
}

/** An FTS5 query for the first sixteen words of `text`; '' if none contains a letter or digit. */
export function matchOf(text: string): string {
  const phrases: string[] = [];
  for (const word of split(folded(text)).slice(0, QUERY_WORDS_LIMIT)) {
    const parts = wordsOf(word).replaceAll("_", " ").match(/[\p{L}\p{N}_]+/gu) ?? [];
    const last = parts[parts.length - 1];
    if (last === undefined) continue;
    // a single letter is a prefix of too many words
    phrases.push(`"${parts.join(" ")}"${[...last].length > 1 ? " *" : ""}`);
  }
  return phrases.join(" AND ");
}

/** An article with all words: its relevance (BM25, greater is better) and publication time in microseconds. */
export interface WordHit {
  readonly id: string;
  readonly relevance: number;
  readonly publishedUs: number;
}

/**
 * Finds articles by words: every searched word of at least two letters must be a prefix of a word in the card or text.
 * The card weighs eight times as much as the text.
 */
export class SearchIndex {
  constructor(private readonly database: Database) {}

  /** Indexes at most `limit` articles that are new or changed; returns how many. */
  catchUp(limit = Infinity): number {
    let done = 0;
    while (done < limit) {
      const taken = this.database.quickTransaction(() => this.batch(Math.min(BATCH, limit - done)));
      if (!taken) break;
      done += taken;
    }
    return done;
  }

  private batch(size: number): number {
    const rows = this.database.rows<{ rowid: number; words: string; body: string }>(
      `SELECT unindexed.news_rowid AS rowid, news.words AS words, coalesce(body.body, '') AS body
       FROM unindexed JOIN news ON news.rowid = unindexed.news_rowid
       LEFT JOIN body ON body.news_id = news.id LIMIT ?`,
      [size],
    );
    for (const { rowid, words, body } of rows) {
      this.database.run("DELETE FROM news_text WHERE rowid = ?", [rowid]);
      this.database.run("INSERT INTO news_text (rowid, card, body) VALUES (?, ?, ?)", [
        rowid,
        wordsOf(words),
        wordsOf(textOfBody(piecesOf(body), { pictures: true })),
      ]);
      this.database.run("DELETE FROM unindexed WHERE news_rowid = ?", [rowid]);
    }
    return rows.length;
  }

  /** Removes the words of deleted articles; deleting a row only marks them. */
  tidy(): void {
    this.database.run("INSERT INTO news_text (news_text) VALUES ('optimize')");
  }

  /** Ids of the articles with every word of `text`, best first; none for a text without a word. */
  find(text: string, limit = 50): string[] {
    const query = matchOf(text);
    if (!query) return [];
    this.catchUp();
    return this.database
      .rows<{ id: string }>(
        `SELECT news.id AS id FROM news_text JOIN news ON news.rowid = news_text.rowid WHERE news_text MATCH ?
         ORDER BY bm25(news_text, ${CARD_WEIGHT}, ${BODY_WEIGHT}), json_extract(news.card, '$.published_at') DESC, news.id
         LIMIT ?`,
        [query, limit],
      )
      .map((row) => row.id);
  }

  /** All articles with every word of `text`, in no order. */
  hits(text: string): WordHit[] {
    const query = matchOf(text);
    if (!query) return [];
    this.catchUp();
    return this.database
      .rows<{ id: string; relevance: number; at: Moment }>(
        `SELECT news.id AS id, -bm25(news_text, ${CARD_WEIGHT}, ${BODY_WEIGHT}) AS relevance,
                json_extract(news.card, '$.published_at') AS at
         FROM news_text JOIN news ON news.rowid = news_text.rowid WHERE news_text MATCH ?`,
        [query],
      )
      .map(({ id, relevance, at }) => ({ id, relevance, publishedUs: toUs(msOf(at)) }));
  }
}
