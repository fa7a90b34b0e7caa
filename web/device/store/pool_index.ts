// Search by words over the cards of the pool's copy, kept in step with it day by day.
import { msOf } from "../moments";
import { readMessage } from "../wire/forms";
import { type NewsCard, newsCard } from "../wire/news";
import type { Database } from "./database";
import type { PoolStore } from "./pool_codes";
import { toUs } from "./rows";
import { CARD_WEIGHT, type WordHit, matchOf, wordsOf, wordsOfCard } from "./search_index";

/** Cards taken in, or let go of, in one transaction: some 20 ms in which no page is answered. */
export const ROWS_A_STEP = 200;

/** Rows of a day: from the first on, so many, of which so many are in. */
interface IndexedDay {
  readonly shard: string;
  readonly first: number;
  readonly size: number;
  readonly done: number;
}

/**
 * Finds cards of the listing in use, by the same rules as `SearchIndex` finds news. What it holds follows from the listing
 * alone: the words of every day that it names. Words searched for are kept nowhere.
 */
export class PoolIndex {
  constructor(
    private readonly database: Database,
    private readonly pool: PoolStore,
  ) {}

  /**
   * Let go of some cards of a day that the listing in use doesn't name, or else take in some of one that it does; false
   * where it is in step. Every one of `hits` waits for that.
   */
  step(): boolean {
    const shards = this.pool.current()?.listing.shards ?? [];
    const days = new Map(shards.map((shard) => [shard.cards.sha256, shard.count]));
    return this.letGo(days) || this.takeIn(days) > 0;
  }

  /** All cards taken in that have every word of `text`, in no order; a card that two days have comes twice. */
  hits(text: string): WordHit[] {
    const query = matchOf(text);
    if (!query) return [];
    return this.database
      .rows<{ id: string; relevance: number; published_us: number }>(
        `SELECT id, -bm25(pool_text, ${CARD_WEIGHT}) AS relevance, published_us FROM pool_text WHERE pool_text MATCH ?`,
        [query],
      )
      .map(({ id, relevance, published_us }) => ({ id, relevance, publishedUs: published_us }));
  }

  /** Whether some rows of a day that isn't named were deleted. */
  private letGo(days: ReadonlyMap<string, number>): boolean {
    return this.database.quickTransaction(() => {
      const gone = this.indexed().find(({ shard, size }) => days.get(shard) !== size);
      if (!gone) return false;
      const { shard, first, size } = gone;
      const left = Math.max(0, size - ROWS_A_STEP);
      this.database.run("DELETE FROM pool_text WHERE rowid >= ? AND rowid < ?", [first + left, first + size]);
      if (left) this.database.run("UPDATE pool_indexed SET size = ? WHERE shard = ?", [left, shard]);
      else this.database.run("DELETE FROM pool_indexed WHERE shard = ?", [shard]);
      return true;
    });
  }

  /** How many cards of a named day were taken in, of those that were not yet; 0 if all are in. */
  private takeIn(days: ReadonlyMap<string, number>): number {
    return this.database.quickTransaction(() => {
      const held = new Map(this.indexed().map((day) => [day.shard, day]));
      const next = [...days].find(([shard, size]) => size > 0 && (held.get(shard)?.done ?? 0) < size);
      if (!next) return 0;
      const [shard, size] = next;
      const { first, done } = held.get(shard) ?? this.begun(shard, size);
      const upto = Math.min(size, done + ROWS_A_STEP);
      const rows = this.database.rows<{ place: number; card: string }>(
        "SELECT place, card FROM pool_card WHERE shard = ? AND place >= ? AND place < ?",
        [shard, done, upto],
      );
      for (const { place, card } of rows)
        this.database.run("INSERT INTO pool_text (rowid, card, id, published_us) VALUES (?, ?, ?, ?)", [
          first + place,
          ...rowOf(readMessage(newsCard, card)),
        ]);
      this.database.run("UPDATE pool_indexed SET done = ? WHERE shard = ?", [upto, shard]);
      return upto - done;
    });
  }

  private begun(shard: string, size: number): IndexedDay {
    const first = this.database.number("SELECT max(first + size) FROM pool_indexed");
    this.database.run("INSERT INTO pool_indexed VALUES (?, ?, ?, 0)", [shard, first, size]);
    return { shard, first, size, done: 0 };
  }

  private indexed(): IndexedDay[] {
    return this.database.rows("SELECT shard, first, size, done FROM pool_indexed") as unknown as IndexedDay[];
  }
}

function rowOf(card: NewsCard): [words: string, id: string, publishedUs: number] {
  return [wordsOf(wordsOfCard(card)), card.id, toUs(msOf(card.published_at))];
}
