// Recall on the device: scores the pool's product-quantised codes by asymmetric distance (docs/decisions/021).
import type { NewsStore } from "../store/news";
import type { Place, PoolStore, StoredPool } from "../store/pool_codes";
import { type Vectors, bestFirst, rowOf } from "../vectors";
import { CENTROIDS, newsInPool, unpackBook, unpackCodes, unpackPriors } from "../protocol/broadcast";
import type { NewsCard } from "../protocol/news";
import { TensorError } from "../protocol/tensors";
import type { Bytes } from "../protocol/forms";
import { Candidates } from "./candidates";

/** Cards of the pool held in memory, about ten candidate lists. */
const CARDS_HELD = 4_000;

/** Parts of the stored pool are missing or differ from what was verified on arrival. */
export class PoolBroken extends Error {}

/**
 * n articles as codes. Row i is d_i, the concatenation of centroids[m, codes[m, i]], each of width D / M. codes [M, n],
 * one row per subspace; centroids [M, 256, D / M]; priors [n], log popularity; sharpness s.
 */
export class CodedPool {
  constructor(
    private readonly codes: readonly Uint8Array[],
    private readonly centroids: Float32Array,
    private readonly priors: Float32Array,
    private readonly sharpness: number,
    private readonly dimensions: number,
  ) {}

  /**
   * Returns s <u, d_i> + prior_i for every row, [n], or without the prior. user is [D], of length 1. Computes a table
   * of 256 inner products per subspace, then M look-ups per row; no vector of the pool is built.
   */
  scores(user: Float32Array, priors = true): Float32Array {
    const total = priors ? this.priors.slice() : new Float32Array(this.priors.length);
    const width = this.dimensions / this.codes.length;
    const table = new Float32Array(CENTROIDS);
    this.codes.forEach((codes, subspace) => {
      for (let code = 0; code < CENTROIDS; code++) {
        const start = (subspace * CENTROIDS + code) * width;
        let sum = 0;
        for (let axis = 0; axis < width; axis++)
          sum += (this.centroids[start + axis] as number) * (user[subspace * width + axis] as number);
        table[code] = this.sharpness * sum;
      }
      for (let row = 0; row < total.length; row++)
        total[row] = (total[row] as number) + (table[codes[row] as number] as number);
    });
    return total;
  }

  /** Returns the `limit` rows with the greatest scores, best first; ties go to the lower row. */
  best(user: Float32Array, limit: number, priors = true): number[] {
    const scores = this.scores(user, priors);
    if (!scores.length || limit < 1) return [];
    const edge = scores.slice().sort()[Math.max(0, scores.length - limit)] as number;
    const rows: number[] = [];
    scores.forEach((score, row) => score >= edge && rows.push(row));
    return bestFirst(scores, rows).slice(0, limit);
  }

  /** Returns d_i for these rows, [len(rows), D]: the quantised article vectors. */
  vectors(rows: readonly number[]): Vectors {
    const width = this.dimensions / this.codes.length;
    const data = new Float32Array(rows.length * this.dimensions);
    rows.forEach((row, at) =>
      this.codes.forEach((codes, subspace) => {
        const start = (subspace * CENTROIDS + (codes[row] as number)) * width;
        data.set(this.centroids.subarray(start, start + width), at * this.dimensions + subspace * width);
      }),
    );
    return { data, rows: rows.length, width: this.dimensions };
  }
}

/** Finds articles in the kept pool. Holds the codes (16 or 32 bytes per article) and recently found cards in memory. */
export class Broadcast {
  private held: { readonly kept: StoredPool; readonly coded: CodedPool; cards: Map<number, NewsCard> } | null = null;

  constructor(
    private readonly pool: PoolStore,
    private readonly news: NewsStore,
  ) {}

  /** Whether a complete pool by this encoder is stored. */
  ready(encoder: string): boolean {
    return this.pool.current()?.listing.encoder === encoder;
  }

  /**
   * Returns the best articles for a unit vector [D] with cards and vectors, best first. priors: whether popular
   * articles rank above equally similar ones. Vectors are exact if the article is in the store, otherwise decoded.
   * Throws PoolBroken.
   */
  find(user: Float32Array, limit: number, encoder: string, priors = true): Candidates {
    const kept = this.kept(encoder);
    const coded = this.loaded(kept, user.length);
    const rows = coded.best(user, limit, priors);
    const cards = this.cards(kept, rows);
    const vectors = coded.vectors(rows);
    const exact = this.news.vectors(cards.map((card) => card.id), encoder);
    exact.present.forEach((here, row) => here && vectors.data.set(rowOf(exact.vectors, row), row * vectors.width));
    const found = new Candidates(cards, vectors, encoder);
    const first = new Map<string, number>();
    cards.forEach((card, row) => first.has(card.id) || first.set(card.id, row));
    return first.size === cards.length ? found : found.only([...first.values()]);
  }

  /** Returns decoded vectors [n, D] of articles in the pool. Throws PoolBroken if one isn't there. */
  coded(ids: readonly string[], encoder: string, dimensions: number): Vectors {
    const kept = this.kept(encoder);
    const starts = startsOf(kept);
    const first = new Map(kept.listing.shards.map((shard, at) => [shard.cards.sha256, starts[at] as number]));
    const places = this.pool.places(ids);
    const rows = ids.map((id) => {
      const [shard, place] = places.get(id) ?? ["", 0];
      const start = first.get(shard);
      if (start === undefined) throw new PoolBroken(`${id} is not in the pool`);
      return start + place;
    });
    return this.loaded(kept, dimensions).vectors(rows);
  }

  /** Drops the codes from memory. */
  forget(): void {
    this.held = null;
  }

  /** Deletes a damaged pool, so that the next sync fetches it again. */
  discard(): void {
    this.forget();
    this.pool.drop();
  }

  /** The cards of these rows of the pool in memory; those not found recently are read from the store. */
  private cards(kept: StoredPool, rows: readonly number[]): NewsCard[] {
    const held = this.held?.cards ?? new Map<number, NewsCard>();
    const starts = startsOf(kept);
    const missing = rows.filter((row) => !held.has(row));
    const places = missing.map((row): Place => {
      const shard = starts.filter((start) => start <= row).length - 1;
      return [kept.listing.shards[shard]?.cards.sha256 ?? "", row - (starts[shard] as number)];
    });
    const read = missing.length ? this.pool.cards(places) : [];
    if (read.length !== missing.length) throw new PoolBroken("stored cards are missing");
    missing.forEach((row, at) => held.set(row, read[at] as NewsCard));
    const cards = rows.map((row) => held.get(row) as NewsCard);
    if (held.size > CARDS_HELD) held.clear();
    return cards;
  }

  private kept(encoder: string): StoredPool {
    const kept = this.pool.current();
    if (kept?.listing.encoder !== encoder) throw new PoolBroken("no stored catalogue from this encoder");
    return kept;
  }

  private loaded(kept: StoredPool, dimensions: number): CodedPool {
    if (this.held?.kept === kept) return this.held.coded;
    const { listing } = kept;
    const { subspaces, sharpness } = listing;
    const count = newsInPool(listing);
    try {
      const codes = Array.from({ length: subspaces }, () => new Uint8Array(count));
      let start = 0;
      for (const shard of listing.shards) {
        const rows = unpackCodes(this.part(shard.codes.sha256), shard.count, subspaces);
        rows.forEach((code, at) => ((codes[at % subspaces] as Uint8Array)[start + Math.floor(at / subspaces)] = code));
        start += shard.count;
      }
      const centroids = unpackBook(this.part(listing.book.sha256), subspaces, dimensions);
      const priors = unpackPriors(this.part(listing.priors.sha256), count);
      const coded = new CodedPool(codes, centroids, priors, sharpness, dimensions);
      this.held = { kept, coded, cards: new Map() };
      return coded;
    } catch (broken) {
      throw broken instanceof TensorError ? new PoolBroken(broken.message) : broken;
    }
  }

  private part(sha256: string): Bytes {
    const content = this.pool.part(sha256);
    if (!content) throw new PoolBroken("a stored part is missing");
    return content;
  }
}

/** For each shard, the number of articles before it. */
function startsOf(kept: StoredPool): number[] {
  let before = 0;
  return kept.listing.shards.map((shard) => (before += shard.count) - shard.count);
}
