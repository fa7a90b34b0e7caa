// Articles on the device: cards, bodies and vectors, kept until pruned.
import { NewsNotHere } from "../errors";
import { type Vectors, finite, rowOf } from "../vectors";
import { readMessage } from "../protocol/forms";
import { type NewsCard, newsCard } from "../protocol/news";
import { toUs, type Database, type Value } from "./database";
import { wordsOfCard } from "./searches";

export type Naming = "topic" | "section" | "publisher";
const WIDE = "SELECT value FROM json_each(?)";
/** This many of a publisher's articles are never pruned, as on the server. */
const KEPT_OF_A_PUBLISHER = 20;
const LAST_OF_PUBLISHERS = `
  SELECT id FROM (
    SELECT id, row_number() OVER (
      PARTITION BY json_extract(card, '$.publisher')
      ORDER BY shelved_at DESC, json_extract(card, '$.published_at') DESC, id
    ) AS place FROM news WHERE json_valid(card)
  ) WHERE place <= ${KEPT_OF_A_PUBLISHER}`;
const CARDS_KEPT = 8_000;

/** Whether each requested id has a vector, and those vectors in order, zeros if missing. */
export interface FoundVectors {
  readonly present: readonly boolean[];
  readonly vectors: Vectors;
}

/**
 * Cards by id, bodies by id, vectors by (id, encoder).
 *
 * edition increases whenever a card or vector is replaced or deleted; what was read may be cached while it is
 * unchanged.
 */
export class NewsStore {
  edition = 0;
  /** Parsed cards by their JSON: parsing is most of the cost of reading the store. */
  private read = new Map<string, NewsCard>();
  /** Cached vectors of one encoder, by id, until `revise`: pages request the same hundreds again. */
  private rows = { encoder: "", found: new Map<string, Uint8Array>() };

  constructor(private readonly database: Database) {
    database.whenUndone(() => this.revise());
  }

  /**
   * Stores cards and their vectors [n, D] by `encoder`; replaces known ones, except vectors of clicked articles. Throws
   * RangeError unless there is one finite vector per card.
   */
  put(cards: readonly NewsCard[], vectors: Vectors, encoder: string, at: number): void {
    if (vectors.rows !== cards.length) throw new RangeError(`${vectors.rows} vectors for ${cards.length} cards`);
    this.database.quickTransaction(() => {
      this.putCards(cards, at);
      this.putVectors(cards.map((card) => card.id), vectors, encoder);
    });
  }

  /** Stores cards whose vectors come later. */
  putCards(cards: readonly NewsCard[], at: number): void {
    const offered = new Map(cards.map((card) => [card.id, [card, newsCard.write(card)] as const]));
    const known = new Map(
      this.database
        .rows<{ id: string; card: string }>(`SELECT id, card FROM news WHERE id IN (${WIDE})`, [listOf(offered.keys())])
        .map((row) => [row.id, row.card]),
    );
    const changed = [...offered].filter(([id, [, text]]) => known.get(id) !== text);
    if (!changed.length) return;
    this.database.quickTransaction(() => {
      for (const [id, [card, text]] of changed)
        this.database.run(
          `INSERT INTO news (id, card, words, shelved_at) VALUES (?, ?, ?, ?)
           ON CONFLICT (id) DO UPDATE SET card = excluded.card, words = excluded.words`,
          [id, text, wordsOfCard(card), toUs(at)],
        );
      for (const [, [card, text]] of changed) this.keepRead(text, card);
      if (changed.some(([id]) => known.has(id))) this.revise();
    });
  }

  /**
   * Stores vectors [n, D] of articles in the store; skips other rows.
   *
   * ofClicked: whether clicked articles without a vector may get one, as when a new encoder's shards are pulled. An
   * existing vector of a clicked article never changes: the input of the reader's true value must not change because
   * the server later sends something else.
   */
  putVectors(ids: readonly string[], vectors: Vectors, encoder: string, { ofClicked = false } = {}): void {
    if (vectors.rows !== ids.length) throw new RangeError(`${vectors.rows} vectors for ${ids.length} ids`);
    if (!finite(vectors.data)) throw new RangeError("vectors has values that are not finite");
    const named = listOf(ids);
    const known = this.held(ids, encoder);
    let changed = ids.map((id, at) => [id, bytesOf(rowOf(vectors, at))] as const).filter(([id, row]) => !same(known.get(id), row));
    if (!changed.length) return;
    const settled = new Set(
      this.database
        .rows<{ news_id: string }>(`SELECT DISTINCT news_id FROM click WHERE news_id IN (${WIDE})`, [named])
        .map((row) => row.news_id)
        .filter((id) => !ofClicked || known.has(id)),
    );
    changed = changed.filter(([id]) => !settled.has(id));
    this.database.quickTransaction(() => {
      for (const [id, row] of changed)
        this.database.run(
          `INSERT INTO vector (news_id, encoder, float32)
           SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM news WHERE id = ?1)
           ON CONFLICT (news_id, encoder) DO UPDATE SET float32 = excluded.float32`,
          [id, encoder, row],
        );
      if (changed.some(([id]) => known.has(id))) this.revise();
    });
  }

  /** One card; throws NewsNotHere. */
  card(id: string): NewsCard {
    const found = this.database.one<{ card: string }>("SELECT card FROM news WHERE id = ?", [id]);
    if (!found) throw new NewsNotHere(id);
    return this.cardOf(found.card);
  }

  /** The cards that are here, in the order of `ids`. */
  cards(ids: readonly string[]): NewsCard[] {
    const found = this.database.rows<{ id: string; card: string }>(
      `SELECT id, card FROM news WHERE id IN (${WIDE})`,
      [listOf(ids)],
    );
    const byId = new Map(found.map((row) => [row.id, row.card]));
    return ids.flatMap((id) => {
      const text = byId.get(id);
      return text === undefined ? [] : [this.cardOf(text)];
    });
  }

  /**
   * Vectors by `encoder`, [n, D]; D is 0 if no id has one. A vector of another width than `width` counts as missing: it
   * comes from a release in which this encoder had other dimensions, and it must not be visible which articles have
   * one.
   */
  vectors(ids: readonly string[], encoder: string): FoundVectors {
    const held = this.held(ids, encoder);
    const width = this.width(encoder);
    const found = ids.map((id) => held.get(id));
    const sizeBytes = width === null ? Math.max(0, ...found.map((row) => row?.length ?? 0)) : 4 * width;
    const present = found.map((row) => row?.length === sizeBytes);
    const bytes = present.includes(true) ? sizeBytes : 0;
    const joined = new Uint8Array(ids.length * bytes);
    found.forEach((row, at) => present[at] && joined.set(row as Uint8Array, at * bytes));
    return { present, vectors: { data: new Float32Array(joined.buffer), rows: ids.length, width: bytes / 4 } };
  }

  /** D of this encoder's vectors in the current release; null for any other encoder. */
  width(encoder: string): number | null {
    const row = this.database.one<{ width: number }>(
      `SELECT json_extract(manifest, '$.dimensions') AS width FROM release
       WHERE id = (SELECT max(id) FROM release) AND json_extract(manifest, '$.encoder') = ?`,
      [encoder],
    );
    return row ? row.width : null;
  }

  /** Those of `ids` without a card here, in order. */
  missing(ids: readonly string[]): string[] {
    const here = this.idsOf(`SELECT id FROM news WHERE id IN (${WIDE})`, [listOf(ids)]);
    return ids.filter((id) => !here.has(id));
  }

  /** Those of `ids` whose card first arrived after a moment. */
  arrivedSince(moment: number, ids: Iterable<string>): Set<string> {
    return this.idsOf(`SELECT id FROM news WHERE shelved_at > ? AND id IN (${WIDE})`, [toUs(moment), listOf(ids)]);
  }

  /** Stores the texts of articles in the store; skips others. */
  putBodies(bodies: ReadonlyMap<string, string>): void {
    const known = new Map(
      this.database
        .rows<{ id: string; body: string }>(`SELECT news_id AS id, body FROM body WHERE news_id IN (${WIDE})`, [
          listOf(bodies.keys()),
        ])
        .map((row) => [row.id, row.body]),
    );
    this.database.quickTransaction(() => {
      for (const [id, body] of bodies)
        if (known.get(id) !== body)
          this.database.run(
            `INSERT INTO body (news_id, body) SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM news WHERE id = ?1)
             ON CONFLICT (news_id) DO UPDATE SET body = excluded.body`,
            [id, body],
          );
    });
  }

  /** An article's text; null if it hasn't arrived. */
  body(id: string): string | null {
    return this.database.one<{ body: string }>("SELECT body FROM body WHERE news_id = ?", [id])?.body ?? null;
  }

  /** Those of `ids` without a text here, in order. */
  withoutBody(ids: readonly string[]): string[] {
    const here = this.idsOf(`SELECT news_id AS id FROM body WHERE news_id IN (${WIDE})`, [listOf(ids)]);
    return ids.filter((id) => !here.has(id));
  }

  /** Ids of the newest articles of a topic, section or publisher. */
  named(kind: Naming, name: string, limit: number): string[] {
    return this.database
      .rows<{ id: string }>(
        `SELECT id FROM news WHERE json_extract(card, ?) = ?
         ORDER BY json_extract(card, '$.published_at') DESC, id LIMIT ?`,
        [`$.${kind}`, name, limit],
      )
      .map((row) => row.id);
  }

  /** Number of cards here. */
  count(): number {
    return this.database.number("SELECT count(*) FROM news");
  }

  /**
   * Deletes articles stored before a time, with bodies and vectors; returns their number. Clicked articles, articles
   * with reactions, and `keep` stay: history and training need them. So do the latest articles of each publisher, since
   * some publish only once in months.
   */
  prune(before: number, keep: Iterable<string> = []): number {
    return this.database.transaction(() => {
      this.revise();
      return this.database.run(
        `DELETE FROM news WHERE shelved_at < ? AND id NOT IN (${LAST_OF_PUBLISHERS})
         AND id NOT IN (SELECT news_id FROM click) AND id NOT IN (SELECT news_id FROM reaction) AND id NOT IN (${WIDE})`,
        [toUs(before), listOf([...keep].sort())],
      );
    });
  }

  /** Deletes vectors by encoders that no release here uses any more. */
  pruneVectors(keepEncoders: Iterable<string>): void {
    this.database.transaction(() => {
      this.revise();
      this.database.run(`DELETE FROM vector WHERE encoder NOT IN (${WIDE})`, [listOf([...keepEncoders].sort())]);
    });
  }

  /** Vectors by id; reads only those not cached. */
  private held(ids: readonly string[], encoder: string): ReadonlyMap<string, Uint8Array> {
    if (this.rows.encoder !== encoder || this.rows.found.size > CARDS_KEPT) this.rows = { encoder, found: new Map() };
    const { found } = this.rows;
    const sql = `SELECT news_id, float32 FROM vector WHERE encoder = ? AND news_id IN (${WIDE})`;
    const unread = ids.filter((id) => !found.has(id));
    if (unread.length)
      for (const row of this.database.rows<{ news_id: string; float32: Uint8Array }>(sql, [encoder, listOf(unread)]))
        found.set(row.news_id, row.float32);
    return found;
  }

  private idsOf(sql: string, params: readonly Value[]): Set<string> {
    return new Set(this.database.rows<{ id: string }>(sql, params).map((row) => row.id));
  }

  private cardOf(text: string): NewsCard {
    let card = this.read.get(text);
    if (!card) {
      card = readMessage(newsCard, text);
      this.keepRead(text, card);
    }
    return card;
  }

  private keepRead(text: string, card: NewsCard): void {
    if (this.read.size >= CARDS_KEPT) this.read.clear();
    this.read.set(text, card);
  }

  private revise(): void {
    this.edition += 1;
    this.rows.found.clear(); // immediately: after an erase no clicked article's vector stays in memory
  }
}

/** The card of another source's report that this card lists; null if it doesn't list it. */
export function reportOf(card: NewsCard, newsId: string): NewsCard | null {
  const entry = card.also.find((one) => one.id === newsId);
  if (!entry) return null;
  const { id, title, url, publisher, published_at } = card;
  const also = [{ id, title, url, publisher, published_at }, ...card.also.filter((one) => one.id !== newsId)];
  return { ...card, ...entry, dated: true, abstract: "", also };
}

/** Names as one query parameter. */
export function listOf(names: Iterable<string>): string {
  return JSON.stringify([...names]);
}

/** The little-endian bytes of float32 numbers, in the same memory. */
export function bytesOf(row: Float32Array): Uint8Array {
  return new Uint8Array(row.buffer, row.byteOffset, row.byteLength);
}

function same(one: Uint8Array | undefined, other: Uint8Array): boolean {
  return one !== undefined && one.length === other.length && one.every((byte, at) => byte === other[at]);
}
