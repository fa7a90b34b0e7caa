// The pool's codes and cards on this device, the same for every device, for recall without a report. Also word search
// over the copy's cards, indexed day by day.
import { codeShard, poolCodes, type PoolCodes } from "../protocol/broadcast";
import { readMessage, type Bytes, type ValueOf } from "../protocol/forms";
import { countedMs, newsCard, type NewsCard } from "../protocol/news";
import { fromUs, toUs, type Database } from "./database";
import { listOf } from "./news";
import { CARD_WEIGHT, matchOf, MATCHED, type WordHit, type WordMatch, wordsOf, wordsOfCard } from "./searches";

/**
 * Least number of articles whose texts are requested together: about 300 KB, and the wanted one can't be distinguished
 * from 99 others.
 */
export const BLOCK = 100;
const WIDE = "SELECT value FROM json_each(?)";
export type CodeShard = ValueOf<typeof codeShard>;

/** A complete listing. text: its exact bytes, from which its ETag is computed. */
export interface StoredPool {
  readonly listing: PoolCodes;
  readonly text: Uint8Array;
  readonly keptAt: number;
}

/** Neighbours in the pool, in id order; only `PoolStore.block` makes them. */
export class PoolBlock {
  private constructor(readonly ids: readonly string[]) {}

  static cut(ids: readonly string[]): PoolBlock {
    return new PoolBlock(ids);
  }
}

/** The hash of a shard's cards, and a position in it. */
export type Place = readonly [shard: string, place: number];

/**
 * Parts (codes, book, priors) by hash, cards by shard and position; a listing becomes current once all its parts are
 * here. A shard's cards are stored under their blob's hash, so that an interrupted pull can resume.
 */
export class PoolStore {
  private known: StoredPool | null | undefined;

  constructor(private readonly database: Database) {
    database.whenUndone(() => (this.known = undefined));
  }

  /** The current listing. */
  current(): StoredPool | null {
    if (this.known === undefined) {
      const row = this.database.one<{ listing: Uint8Array; kept_at: number }>("SELECT listing, kept_at FROM pool");
      this.known = row
        ? { listing: readMessage(poolCodes, row.listing), text: row.listing, keptAt: fromUs(row.kept_at) }
        : null;
    }
    return this.known;
  }

  /** A part by its hash. */
  part(sha256: string): Bytes | null {
    return this.database.one<{ content: Bytes }>("SELECT content FROM pool_part WHERE sha256 = ?", [sha256])?.content ?? null;
  }

  /** Stores a part whose hash was checked. */
  putPart(sha256: string, content: Uint8Array): void {
    this.database.run("INSERT INTO pool_part (sha256, content) VALUES (?, ?) ON CONFLICT DO NOTHING", [sha256, content]);
  }

  /** Stores a shard's codes (checked, as a blob) and its cards in one transaction. */
  putShard(shard: CodeShard, codes: Uint8Array, cards: readonly NewsCard[]): void {
    this.database.quickTransaction(() => {
      this.putPart(shard.codes.sha256, codes);
      this.database.run("DELETE FROM pool_card WHERE shard = ?", [shard.cards.sha256]);
      cards.forEach((card, place) =>
        this.database.run("INSERT INTO pool_card (shard, place, id, card) VALUES (?, ?, ?, ?)", [
          shard.cards.sha256,
          place,
          card.id,
          newsCard.write(card),
        ]),
      );
    });
  }

  /** Whether this shard's cards are here, in the stated number: they are stored completely or not at all. */
  hasCards(shard: CodeShard): boolean {
    return this.database.number("SELECT count(*) FROM pool_card WHERE shard = ?", [shard.cards.sha256]) === shard.count;
  }

  /** Makes a listing current and deletes what it doesn't need, in one transaction. */
  use(listing: PoolCodes, text: Uint8Array, at: number): void {
    const parts = [listing.book.sha256, listing.priors.sha256, ...listing.shards.map((shard) => shard.codes.sha256)];
    this.database.transaction(() => {
      this.database.run("INSERT OR REPLACE INTO pool (only, listing, kept_at) VALUES (1, ?, ?)", [text, toUs(at)]);
      this.dropAllBut(parts, listing.shards.map((shard) => shard.cards.sha256));
      this.known = undefined;
    });
  }

  /** Deletes everything, when the reader's settings or the release no longer need it. */
  drop(): void {
    this.database.transaction(() => {
      this.database.run("DELETE FROM pool");
      this.dropAllBut([], []);
      this.known = undefined;
    });
  }

  /** The cards at these positions, in that order, without missing ones. */
  cards(places: Iterable<Place>): NewsCard[] {
    return this.database
      .rows<{ card: string }>(
        `SELECT pool_card.card AS card FROM json_each(?) AS wanted CROSS JOIN pool_card
         ON shard = json_extract(wanted.value, '$[0]') AND place = json_extract(wanted.value, '$[1]')
         ORDER BY wanted.key`,
        [JSON.stringify([...places])],
      )
      .map((row) => readMessage(newsCard, row.card));
  }

  /** Positions by id, of articles of the current listing. */
  places(ids: readonly string[]): Map<string, Place> {
    const rows = this.database.rows<{ id: string; shard: string; place: number }>(
      `SELECT id, shard, place FROM pool_card WHERE id IN (${WIDE})`,
      [listOf(ids)],
    );
    const shards = new Set(this.current()?.listing.shards.map((shard) => shard.cards.sha256));
    return new Map(rows.filter((row) => shards.has(row.shard)).map((row) => [row.id, [row.shard, row.place] as const]));
  }

  /**
   * The block of at least BLOCK articles that contains this one; null if it isn't in the pool, or the pool is smaller.
   * Blocks are cut at multiples of BLOCK of all sorted ids of the pool, so that every device requests the same blocks;
   * the remainder belongs to the last full one.
   */
  block(id: string): PoolBlock | null {
    const kept = this.current();
    if (!kept) return null;
    const within = listOf(kept.listing.shards.map((shard) => shard.cards.sha256));
    const source = `FROM pool_card WHERE shard IN (${WIDE})`;
    if (!this.database.number(`SELECT count(*) ${source} AND id = ?`, [within, id])) return null;
    const size = this.database.number(`SELECT count(DISTINCT id) ${source}`, [within]);
    if (size < BLOCK) return null;
    const before = this.database.number(`SELECT count(DISTINCT id) ${source} AND id < ?`, [within, id]);
    const [number, last] = [Math.floor(before / BLOCK), Math.floor(size / BLOCK) - 1];
    const [start, length] = number < last ? [number * BLOCK, BLOCK] : [last * BLOCK, size - last * BLOCK];
    const found = this.database.rows<{ id: string }>(`SELECT DISTINCT id ${source} ORDER BY id LIMIT ? OFFSET ?`, [
      within,
      length,
      start,
    ]);
    return PoolBlock.cut(found.map((row) => row.id));
  }

  private dropAllBut(parts: readonly string[], shards: readonly string[]): void {
    this.database.run(`DELETE FROM pool_part WHERE sha256 NOT IN (${WIDE})`, [listOf(parts)]);
    this.database.run(`DELETE FROM pool_card WHERE shard NOT IN (${WIDE})`, [listOf(shards)]);
  }
}

/** Cards indexed or removed per transaction: about 20 ms in which no page is answered. */
export const ROWS_A_STEP = 200;

/** A day's rows: the first one, their number, and how many are indexed. */
interface IndexedDay {
  readonly shard: string;
  readonly first: number;
  readonly size: number;
  readonly done: number;
}

/**
 * Finds cards of the current listing by the same rules as `SearchIndex`. Its content depends only on the listing: the
 * words of every day that it names. Searched words are stored nowhere.
 */
export class PoolIndex {
  constructor(
    private readonly database: Database,
    private readonly pool: PoolStore,
  ) {}

  /**
   * Removes some cards of a day that the current listing doesn't name, or indexes some of one that it names; false if
   * up to date. `hits` requires that this has returned false.
   */
  step(): boolean {
    const shards = this.pool.current()?.listing.shards ?? [];
    const days = new Map(shards.map((shard) => [shard.cards.sha256, shard.count]));
    return this.removeRows(days) || this.indexRows(days) > 0;
  }

  /** All indexed cards with every word of `text`, in no particular order; a card in two days is returned twice. */
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

  /** Returns indexed cards that match an FTS5 expression, in no order. */
  matching(expression: string): WordMatch[] {
    return this.database.rows(
      `SELECT ${MATCHED} FROM pool_text JOIN article ON article.id = pool_text.id WHERE pool_text MATCH ?`,
      [expression],
    ) as unknown as WordMatch[];
  }

  /** Removes some rows of a day that isn't named; returns whether there were any. */
  private removeRows(days: ReadonlyMap<string, number>): boolean {
    return this.database.quickTransaction(() => {
      const outdated = this.indexed().find(({ shard, size }) => days.get(shard) !== size);
      if (!outdated) return false;
      const { shard, first, size } = outdated;
      const left = Math.max(0, size - ROWS_A_STEP);
      this.database.run("DELETE FROM pool_text WHERE rowid >= ? AND rowid < ?", [first + left, first + size]);
      if (left) this.database.run("UPDATE pool_indexed SET size = ? WHERE shard = ?", [left, shard]);
      else this.database.run("DELETE FROM pool_indexed WHERE shard = ?", [shard]);
      return true;
    });
  }

  /** Indexes cards of a named day; returns how many, 0 if all are indexed. */
  private indexRows(days: ReadonlyMap<string, number>): number {
    return this.database.quickTransaction(() => {
      const held = new Map(this.indexed().map((day) => [day.shard, day]));
      const next = [...days].find(([shard, size]) => size > 0 && (held.get(shard)?.done ?? 0) < size);
      if (!next) return 0;
      const [shard, size] = next;
      const { first, done } = held.get(shard) ?? this.beginDay(shard, size);
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

  private beginDay(shard: string, size: number): IndexedDay {
    const first = this.database.number("SELECT max(first + size) FROM pool_indexed");
    this.database.run("INSERT INTO pool_indexed VALUES (?, ?, ?, 0)", [shard, first, size]);
    return { shard, first, size, done: 0 };
  }

  private indexed(): IndexedDay[] {
    return this.database.rows("SELECT shard, first, size, done FROM pool_indexed") as unknown as IndexedDay[];
  }
}

function rowOf(card: NewsCard): [words: string, id: string, publishedUs: number] {
  return [wordsOf(wordsOfCard(card)), card.id, toUs(countedMs(card))];
}
