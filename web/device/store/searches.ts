// Searches the device's articles by words, in any script; stores saved searches, and articles opened from search
// results.\nThe search uses substrings and SQLite's FTS5, and stores no query. Everything stays in this view's own
// store.
import { piecesOf, textOfBody } from "../protocol/bodies";
import { msOf } from "../protocol/moments";
import type { NewsCard } from "../protocol/news";
import type { Moment } from "../protocol/forms";
import { fromUs, toUs, type Database, type LazyDatabase } from "./database";
import { finite } from "../vectors";
import { bytesOf } from "./news";

export const QUERY_WORDS_LIMIT = 16;
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

/** An article that matches an FTS5 expression; topic: its section and topic as one text, '' without a topic. */
export interface WordMatch {
  readonly id: string;
  readonly topic: string;
  readonly publishedUs: number;
}

/** Columns of a `WordMatch` of the table `article`. */
export const MATCHED = `article.id AS id, iif(article.topic = '', '', json_array(article.section, article.topic)) AS topic,
  article.published_at AS publishedUs`;

/**
 * Finds articles by words: every searched word of at least two letters must be a prefix of a word in the card or text.
 * The card has eight times the weight of the text.
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

  /** All articles with every word of `text`, in no particular order. */
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

  /** Returns articles whose cards match an FTS5 expression, in no order. Call `hits` first: it indexes new ones. */
  matching(expression: string): WordMatch[] {
    return this.database.rows(
      `SELECT ${MATCHED} FROM news_text JOIN news ON news.rowid = news_text.rowid JOIN article ON article.id = news.id
       WHERE news_text MATCH ?`,
      [`card : (${expression})`],
    ) as unknown as WordMatch[];
  }
}

export const WORDS_LIMIT_CHARS = 200;
export const SAVED_LIMIT = 50;
export type MeaningKind = "search" | "topic" | "news";

/** Words that the reader saved; looked_at: when the results were last viewed, in ms since 1970. */
export interface SavedSearch {
  readonly id: number;
  readonly words: string;
  readonly saved_at: number;
  readonly looked_at: number;
}

/** The vector [D] of a search, a followed topic or an article, by one encoder. */
export interface SearchVector {
  readonly kind: MeaningKind;
  readonly name: string;
  readonly encoder: string;
  readonly vector: Float32Array;
  readonly madeAt: number;
}

/** A search that can't be saved; the message names the field and its limit. */
export class SearchRefused extends Error {}

/** Saved searches, articles opened from results, and their vectors. Unsaved words aren't stored. */
export class Searches {
  constructor(private readonly database: LazyDatabase) {}

  /** Saves a search; the same words keep their first time. Throws SearchRefused. */
  save(words: string, at: number): void {
    const plain = plainOf(words);
    const length = [...plain].length;
    if (length < 1 || length > WORDS_LIMIT_CHARS)
      throw new SearchRefused(`words: 1 to ${WORDS_LIMIT_CHARS} characters, got ${length}`);
    const held = this.saved();
    if (held.some((one) => one.words === plain)) return;
    if (held.length >= SAVED_LIMIT)
      throw new SearchRefused(`${SAVED_LIMIT} searches are saved, which is the limit: delete one first`);
    const insert = "INSERT INTO search (words, saved_at, looked_at) VALUES (?, ?, ?)";
    this.database.transaction(() => this.database.run(insert, [plain, toUs(at), toUs(at)]));
  }

  /** All saved searches, oldest first. */
  saved(): SavedSearch[] {
    const found = this.database.rows<{ id: number; words: string; saved_at: number; looked_at: number }>(
      "SELECT id, words, saved_at, looked_at FROM search ORDER BY id",
    );
    return found.map((row) => ({ ...row, saved_at: fromUs(row.saved_at), looked_at: fromUs(row.looked_at) }));
  }

  /** Records that these words' results were viewed, if they are saved. */
  viewed(words: string, at: number): void {
    const plain = plainOf(words);
    if (!this.saved().some((one) => one.words === plain)) return;
    this.database.transaction(() => this.database.run("UPDATE search SET looked_at = ? WHERE words = ?", [toUs(at), plain]));
  }

  /** Permanently deletes a saved search and its vector; false if there was none. */
  delete(searchId: number): boolean {
    if (!this.database.known()) return false;
    const meaning = "DELETE FROM meaning WHERE kind = 'search' AND name = (SELECT words FROM search WHERE id = ?)";
    return this.database.transaction(() => {
      this.database.run(meaning, [searchId]);
      return this.database.run("DELETE FROM search WHERE id = ?", [searchId]) > 0;
    });
  }

  /** Records a story opened from results; repeating it keeps the first time. */
  opened(newsId: string, at: number): void {
    const insert = "INSERT INTO opened (news_id, at) VALUES (?, ?) ON CONFLICT DO NOTHING";
    this.database.transaction(() => this.database.run(insert, [newsId, toUs(at)]));
  }

  /** Deletes these articles from those opened from results, with their vectors. */
  forgetOpened(newsIds: Iterable<string>): void {
    if (!this.database.known()) return;
    this.database.transaction(() => {
      for (const id of newsIds) {
        this.database.run("DELETE FROM opened WHERE news_id = ?", [id]);
        this.database.run("DELETE FROM meaning WHERE kind = 'news' AND name = ?", [id]);
      }
    });
  }

  /**
   * Replaces a vector; a topic's only while it is followed, since the reader may have unfollowed it during the
   * computation. Throws RangeError if it isn't finite.
   */
  keepMeaning({ kind, name, encoder, vector, madeAt }: SearchVector): void {
    if (!finite(vector)) throw new RangeError("vector: has values that are not finite");
    this.database.transaction(() =>
      this.database.run(
        `INSERT INTO meaning (kind, name, encoder, float32, made_at) SELECT ?1, ?2, ?3, ?4, ?5
         WHERE ?1 <> 'topic' OR EXISTS (SELECT 1 FROM stance WHERE kind = 'topic' AND name = ?2 AND stance = 'follow')
         ON CONFLICT (kind, name) DO UPDATE SET encoder = excluded.encoder, float32 = excluded.float32,
           made_at = excluded.made_at`,
        [kind, name, encoder, bytesOf(vector), toUs(madeAt)],
      ),
    );
  }

  /** Vectors by this encoder. */
  meanings(encoder: string): SearchVector[] {
    const found = this.database.rows<{ kind: MeaningKind; name: string; float32: Uint8Array; made_at: number }>(
      "SELECT kind, name, float32, made_at FROM meaning WHERE encoder = ? ORDER BY kind, name",
      [encoder],
    );
    return found.map(({ kind, name, float32, made_at }) => {
      const vector = new Float32Array(new Uint8Array(float32).buffer);
      return { kind, name, encoder, vector, madeAt: fromUs(made_at) };
    });
  }
}

/** Words with white space trimmed and collapsed. */
export function plainOf(words: string): string {
  return words.split(/\s+/u).filter(Boolean).join(" ");
}
