// The pool's codes and cards on this device, the same for everybody, for recall without a report.
import { type PoolCodes, codeShard, poolCodes } from "../wire/broadcast";
import { type ValueOf, readMessage } from "../wire/forms";
import { type NewsCard, newsCard } from "../wire/news";
import type { Bytes } from "../wire/values";
import type { Database } from "./database";
import { type Naming, listOf } from "./news";
import { fromUs, toUs } from "./rows";

/** Texts of at least this many news are asked for together: about 300 KB, and one in a hundred is not named. */
export const BLOCK = 100;
const WIDE = "SELECT value FROM json_each(?)";
export type CodeShard = ValueOf<typeof codeShard>;

/** A listing whose every part is here. text is the listing to the byte, from which its ETag is computed. */
export interface StoredPool {
  readonly listing: PoolCodes;
  readonly text: Uint8Array;
  readonly keptAt: number;
}

/** Neighbours in the pool, in the order of ids; only `PoolStore.block` cuts them. */
export class PoolBlock {
  private constructor(readonly ids: readonly string[]) {}

  static cut(ids: readonly string[]): PoolBlock {
    return new PoolBlock(ids);
  }
}

/** The hash of a shard's cards, and a place among them. */
export type Place = readonly [shard: string, place: number];

/**
 * Parts (codes, book, priors) by hash, cards by shard and place; a listing is in use once all its parts are here. A
 * shard's cards are kept under the hash of their blob, so that a pull that was cut off goes on where it was.
 */
export class PoolStore {
  private known: StoredPool | null | undefined;

  constructor(private readonly database: Database) {
    database.whenUndone(() => (this.known = undefined));
  }

  /** The listing in use. */
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

  /** Keep a part whose hash was checked. */
  putPart(sha256: string, content: Uint8Array): void {
    this.database.run("INSERT INTO pool_part (sha256, content) VALUES (?, ?) ON CONFLICT DO NOTHING", [sha256, content]);
  }

  /** Keep a shard's codes (checked, as a blob) and its cards, in one step. */
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

  /** Whether the cards of this shard are here, as many as it says: they come whole or not at all. */
  hasCards(shard: CodeShard): boolean {
    return this.database.number("SELECT count(*) FROM pool_card WHERE shard = ?", [shard.cards.sha256]) === shard.count;
  }

  /** Put a listing in use, in one step, and let go of what it has no use for. */
  use(listing: PoolCodes, text: Uint8Array, at: number): void {
    const parts = [listing.book.sha256, listing.priors.sha256, ...listing.shards.map((shard) => shard.codes.sha256)];
    this.database.transaction(() => {
      this.database.run("INSERT OR REPLACE INTO pool (only, listing, kept_at) VALUES (1, ?, ?)", [text, toUs(at)]);
      this.dropAllBut(parts, listing.shards.map((shard) => shard.cards.sha256));
      this.known = undefined;
    });
  }

  /** Let go of everything: this reader, or this release, has no use for it. */
  drop(): void {
    this.database.transaction(() => {
      this.database.run("DELETE FROM pool");
      this.dropAllBut([], []);
      this.known = undefined;
    });
  }

  /** The cards at these places, in that order; those that are missing are left out. */
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

  /** The newest cards of a topic, section or publisher. */
  named(kind: Naming, name: string, limit: number): NewsCard[] {
    return this.database
      .rows<{ card: string }>(
        `SELECT card FROM pool_card WHERE json_extract(card, ?) = ?
         ORDER BY json_extract(card, '$.published_at') DESC, id LIMIT ?`,
        [`$.${kind}`, name, limit],
      )
      .map((row) => readMessage(newsCard, row.card));
  }

  /** Places by id, of those that are here. */
  places(ids: readonly string[]): Map<string, Place> {
    const rows = this.database.rows<{ id: string; shard: string; place: number }>(
      `SELECT id, shard, place FROM pool_card WHERE id IN (${WIDE})`,
      [listOf(ids)],
    );
    return new Map(rows.map((row) => [row.id, [row.shard, row.place] as const]));
  }

  /**
   * The block of BLOCK news or more that holds this one; null if it isn't in the pool, or the pool is smaller. Blocks are
   * cut at multiples of BLOCK of all ids of the pool in their order, so that every device asks in the same blocks; what
   * is left at the end belongs to the last whole one.
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
