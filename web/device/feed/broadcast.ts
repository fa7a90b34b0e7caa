// Recall on the device: the pool's product-quantised codes, scored by asymmetric distance (docs/decisions/020).
import type { NewsStore } from "../store/news";
import type { Place, PoolStore, StoredPool } from "../store/pool_codes";
import { type Vectors, bestFirst, rowOf } from "../vectors";
import { CENTROIDS, newsInPool, unpackBook, unpackCodes, unpackPriors } from "../wire/broadcast";
import type { NewsCard } from "../wire/news";
import { TensorError } from "../wire/tensors";
import type { Bytes } from "../wire/values";
import { Candidates } from "./candidates";

/** As many cards of a pool are held in memory, about ten lists of candidates. */
const CARDS_HELD = 4_000;

/** Parts of the kept pool are missing or no longer what was checked when they came. */
export class PoolBroken extends Error {}

/**
 * n news as codes: row i is d_i = the centroids[m, codes[m, i]] side by side, each D / M wide. codes is [M, n], one row a
 * subspace; centroids [M, 256, D / M]; priors [n], log popularity; sharpness s.
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
   * s <u, d_i> + prior_i for every row, [n], or without the prior; user is [D], of length 1. One table of 256 inner
   * products a subspace, then M look-ups a row: no vector of the pool is ever built.
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

  /** Rows of the `limit` greatest scores, best first; ties to the lower row. */
  best(user: Float32Array, limit: number, priors = true): number[] {
    const scores = this.scores(user, priors);
    if (!scores.length || limit < 1) return [];
    const edge = scores.slice().sort()[Math.max(0, scores.length - limit)] as number;
    const rows: number[] = [];
    scores.forEach((score, row) => score >= edge && rows.push(row));
    return bestFirst(scores, rows).slice(0, limit);
  }

  /** d_i of these rows, [len(rows), D]: what is left of the news vectors after quantising. */
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

/**
 * Finds news in the kept pool; its codes are held in memory (16 or 32 bytes a piece of news), and of its cards those that
 * were found lately.
 */
export class Broadcast {
  private held: { readonly kept: StoredPool; readonly coded: CodedPool; cards: Map<number, NewsCard> } | null = null;

  constructor(
    private readonly pool: PoolStore,
    private readonly news: NewsStore,
  ) {}

  /** Whether a whole pool by this encoder is here. */
  ready(encoder: string): boolean {
    return this.pool.current()?.listing.encoder === encoder;
  }

  /**
   * The best news for a unit vector [D] with their cards and vectors, best first. priors: whether what is popular comes
   * before what is as near. Vectors are exact where the news is in the store already, else as the codes have them. Throws
   * PoolBroken.
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

  /** Vectors [n, D] of news of the pool, as the codes have them. Throws PoolBroken where one isn't there. */
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

  /** Drop the codes from memory. */
  forget(): void {
    this.held = null;
  }

  /** Let go of a damaged pool, so that the next sync fetches it whole. */
  discard(): void {
    this.forget();
    this.pool.drop();
  }

  /** The cards of these rows of the pool whose codes are held; those that no list found lately are read from the store. */
  private cards(kept: StoredPool, rows: readonly number[]): NewsCard[] {
    const held = this.held?.cards ?? new Map<number, NewsCard>();
    const starts = startsOf(kept);
    const missing = rows.filter((row) => !held.has(row));
    const places = missing.map((row): Place => {
      const shard = starts.filter((start) => start <= row).length - 1;
      return [kept.listing.shards[shard]?.cards.sha256 ?? "", row - (starts[shard] as number)];
    });
    const read = missing.length ? this.pool.cards(places) : [];
    if (read.length !== missing.length) throw new PoolBroken("cards are missing");
    missing.forEach((row, at) => held.set(row, read[at] as NewsCard));
    const cards = rows.map((row) => held.get(row) as NewsCard);
    if (held.size > CARDS_HELD) held.clear();
    return cards;
  }

  private kept(encoder: string): StoredPool {
    const kept = this.pool.current();
    if (kept?.listing.encoder !== encoder) throw new PoolBroken("no pool by this encoder");
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
    if (!content) throw new PoolBroken("a part is missing");
    return content;
  }
}

/** Of each shard, how many news come before it. */
function startsOf(kept: StoredPool): number[] {
  let before = 0;
  return kept.listing.shards.map((shard) => (before += shard.count) - shard.count);
}
