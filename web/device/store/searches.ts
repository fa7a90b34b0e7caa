// Saved searches, and articles opened from search results. All of it stays in this view's own store.
import { finite } from "../vectors";
import { fromUs, toUs, type LateDatabase } from "./database";
import { bytesOf } from "./news";

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
  constructor(private readonly database: LateDatabase) {}

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
