// Diversity: maximal marginal relevance with caps (Carbonell and Goldstein 1998).
import { type Vectors, bestFirst, deviation, productOf } from "../vectors";

/** MMR considers this many of the best rows. */
const POOL_ROWS = 120;
/** Weight of similarity, in standard deviations of the pool's scores. */
const SPREADS = 4;
/** Of any capped value, MMR considers this many times the cap, so that caps rarely leave places empty. */
const POOL_OF_A_CAP = 3;

export type Value = string | number;

/** Limits each value of a column [n] to `limit` picks; `more` sets other limits for some values. */
export class Cap {
  constructor(
    readonly column: readonly Value[],
    readonly limit: number,
    readonly more: ReadonlyMap<Value, number> = new Map(),
  ) {}

  limitOf(row: number): number {
    return this.more.get(this.column[row] as Value) ?? this.limit;
  }

  /** The same limit, restricted to these rows. */
  only(rows: readonly number[]): Cap {
    return new Cap(rows.map((row) => this.column[row] as Value), this.limit, this.more);
  }

  /** The remaining limit after these rows are placed. */
  beside(rows: readonly number[]): Cap {
    const left = new Map(this.more);
    for (const row of rows) left.set(this.column[row] as Value, (left.get(this.column[row] as Value) ?? this.limit) - 1);
    return new Cap(this.column, this.limit, left);
  }
}

/** Reserves at least this many picks for these rows [n], if there are enough. */
export class Share {
  constructor(
    readonly rows: readonly boolean[],
    readonly least: number,
  ) {}

  /** The same share, restricted to these rows. */
  only(rows: readonly number[]): Share {
    return new Share(rows.map((row) => this.rows[row] as boolean), this.least);
  }

  /** The remaining share after these rows are placed. */
  beside(taken: readonly number[]): Share {
    return new Share(this.rows, Math.max(0, this.least - taken.filter((row) => this.rows[row]).length));
  }
}

/** Cosines between rows, each computed once: a page is chosen several times from the same rows. */
export class Cosines {
  private readonly known = new Map<number, Float32Array>();

  /** units: [m, D] of length 1 or 0; rows [n]: the indices of the candidates in it. */
  constructor(private readonly among: { readonly units: Vectors; readonly rows: readonly number[] }) {}

  /** Cosines of one row to `others`, at their positions in [n]; other positions are undefined. */
  of(one: number, others: readonly number[]): Float32Array {
    let found = this.known.get(one);
    if (!found) this.known.set(one, (found = new Float32Array(this.among.rows.length).fill(NaN)));
    const { units, rows } = this.among;
    for (const other of others)
      if (Number.isNaN(found[other])) found[other] = productOf(units, rows[other] as number, rows[one] as number);
    return found;
  }
}

/**
 * Returns picked rows, best first; each maximises (1 - variety) * score - variety * similarity to those picked.
 *
 * scores [n] and the cosines describe the candidates. Similarity is the greatest cosine, rescaled to the spread of the
 * pool's scores. Shares are filled first, in order, then the rest, both in this way. Returns fewer than `count` rows if
 * caps or candidates run out. Ties go to the better score.
 */
export function diversified(
  scores: Float64Array,
  cosines: Cosines,
  caps: readonly Cap[],
  shares: readonly Share[],
  count: number,
  variety: number,
): number[] {
  const ranked = bestFirst(scores);
  const places = caps.map(() => new Map<Value, number>());
  const within = ranked.filter((row) =>
    // every cap counts every row, even one that another cap excludes
    caps
      .map((cap, at) => {
        const held = places[at] as Map<Value, number>;
        const value = cap.column[row] as Value;
        const place = held.get(value) ?? 0;
        held.set(value, place + 1);
        return place < POOL_OF_A_CAP * cap.limitOf(row);
      })
      .every(Boolean),
  );
  const pool = within.slice(0, Math.max(POOL_ROWS, 4 * count));
  const here = new Set(pool);
  for (const share of shares)
    for (const row of ranked.filter((one) => share.rows[one]).slice(0, POOL_OF_A_CAP * share.least))
      if (!here.has(row)) {
        here.add(row);
        pool.push(row);
      }
  let picked = filled(new Selection(pool, scores, cosines, caps, variety), shares, count);
  if (picked.length < Math.min(count, ranked.length) && pool.length < ranked.length)
    picked = filled(new Selection(ranked, scores, cosines, caps, variety), shares, count);
  if (!shares.some((share) => share.least)) return picked;
  const inOrder = new Selection(bestFirst(scores, picked), scores, cosines, [], variety);
  inOrder.fill(picked.length);
  return inOrder.picked;
}

function filled(selection: Selection, shares: readonly Share[], count: number): number[] {
  for (const share of shares) selection.fill(Math.min(share.least, count), share.rows);
  selection.fill(count);
  return selection.picked;
}

/** Rows of a pool, best score first, picked one by one. */
class Selection {
  readonly picked: number[] = [];
  /** -Infinity once a row is picked or excluded by a cap. */
  private readonly relevance: Float64Array;
  private readonly nearest: Float64Array;
  private readonly counts: readonly Map<Value, number>[];

  constructor(
    private readonly pool: readonly number[],
    scores: Float64Array,
    private readonly cosines: Cosines,
    private readonly caps: readonly Cap[],
    private readonly variety: number,
  ) {
    const values = Float64Array.from(pool, (row) => scores[row] as number);
    const spread = Math.max(SPREADS * deviation(values), 1e-9);
    const least = values.reduce((low, value) => Math.min(low, value), Infinity);
    this.relevance = values.map((value) => ((1 - variety) * (value - least)) / spread);
    this.nearest = new Float64Array(pool.length);
    this.counts = caps.map(() => new Map());
    pool.forEach((row, at) => caps.some((cap) => cap.limitOf(row) <= 0) && (this.relevance[at] = -Infinity));
  }

  /** Picks until `count` of these rows (default: all) are picked or none is left. */
  fill(count: number, among?: readonly boolean[]): void {
    let have = among ? this.picked.filter((row) => among[row]).length : this.picked.length;
    for (; have < count; have++) {
      let [best, most] = [-1, -Infinity];
      this.pool.forEach((row, at) => {
        const worth = (this.relevance[at] as number) - this.variety * (this.nearest[at] as number);
        if (worth > most && (!among || among[row])) [best, most] = [at, worth];
      });
      if (best < 0) return;
      this.pick(best);
    }
  }

  private pick(best: number): void {
    const chosen = this.pool[best] as number;
    this.picked.push(chosen);
    this.relevance[best] = -Infinity;
    const cosines = this.cosines.of(chosen, this.pool);
    this.pool.forEach((row, at) => {
      if ((cosines[row] as number) > (this.nearest[at] as number)) this.nearest[at] = cosines[row] as number;
    });
    this.caps.forEach((cap, which) => {
      const value = cap.column[chosen] as Value;
      const held = this.counts[which] as Map<Value, number>;
      held.set(value, (held.get(value) ?? 0) + 1);
      if ((held.get(value) as number) < cap.limitOf(chosen)) return;
      this.pool.forEach((row, at) => cap.column[row] === value && (this.relevance[at] = -Infinity));
    });
  }
}
