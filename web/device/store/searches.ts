// Searches the reader saved, and news opened from the results of any. All of it stays in this view's own store.
import { finite } from "../vectors";
import type { LateDatabase } from "./late_database";
import { bytesOf } from "./news";
import { fromUs, toUs } from "./rows";

export const WORDS_LIMIT_CHARS = 200;
export const SAVED_LIMIT = 50;
export type MeaningKind = "search" | "topic" | "news";

/** Words the reader wants to find again; looked_at is when the results were last looked at. In ms since 1970. */
export interface SavedSearch {
  readonly id: number;
  readonly words: string;
  readonly saved_at: number;
  readonly looked_at: number;
}

/** The vector [D] of a search, a followed topic or a piece of news, by one encoder. */
export interface SearchVector {
  readonly kind: MeaningKind;
  readonly name: string;
  readonly encoder: string;
  readonly vector: Float32Array;
  readonly madeAt: number;
}

/** A search that can't be kept; the message names the field and its limit. */
export class SearchRefused extends Error {}

/** What was saved, what was opened from results, and what it all means in vectors. Unsaved words are not kept. */
export class Searches {
  constructor(private readonly database: LateDatabase) {}

  /** Keep a search; the same words again keep their first time. Throws SearchRefused. */
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

  /** The results of these words were looked at, if they are saved. */
  looked(words: string, at: number): void {
    const plain = plainOf(words);
    if (!this.saved().some((one) => one.words === plain)) return;
    this.database.transaction(() => this.database.run("UPDATE search SET looked_at = ? WHERE words = ?", [toUs(at), plain]));
  }

  /** Delete a saved search and its vector for good; false if there was none. */
  delete(searchId: number): boolean {
    if (!this.database.known()) return false;
    const meaning = "DELETE FROM meaning WHERE kind = 'search' AND name = (SELECT words FROM search WHERE id = ?)";
    return this.database.transaction(() => {
      this.database.run(meaning, [searchId]);
      return this.database.run("DELETE FROM search WHERE id = ?", [searchId]) > 0;
    });
  }

  /** A story was opened from results; a repeated one keeps its first time. */
  opened(newsId: string, at: number): void {
    const insert = "INSERT INTO opened (news_id, at) VALUES (?, ?) ON CONFLICT DO NOTHING";
    this.database.transaction(() => this.database.run(insert, [newsId, toUs(at)]));
  }

  /** Forget that these were opened from results, with their vectors. */
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
   * Keep a vector in place of the one before; of a topic only while it is followed, as it may have been computed while its
   * reader took that back. Throws RangeError if it isn't finite.
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

/** Words without the white space around and between them. */
export function plainOf(words: string): string {
  return words.split(/\s+/u).filter(Boolean).join(" ");
}
