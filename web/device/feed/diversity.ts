// Variety: maximal marginal relevance under caps (Carbonell and Goldstein 1998).
import { type Vectors, bestFirst, deviation, productOf } from "../vectors";

/** MMR looks at so many of the best rows. */
const POOL_ROWS = 120;
/** Likeness weighs against so many standard deviations of the pool's scores. */
const SPREADS = 4;
/** Of any one capped value it looks at so many times the cap, so that caps seldom leave places empty. */
const POOL_OF_A_CAP = 3;

export type Value = string | number;

/** No value of a column [n] is picked more than `limit` times; `more` are limits of its own for some values. */
export class Cap {
  constructor(
    readonly column: readonly Value[],
    readonly limit: number,
    readonly more: ReadonlyMap<Value, number> = new Map(),
  ) {}

  limitOf(row: number): number {
    return this.more.get(this.column[row] as Value) ?? this.limit;
  }

  /** The same limit on these rows only. */
  only(rows: readonly number[]): Cap {
    return new Cap(rows.map((row) => this.column[row] as Value), this.limit, this.more);
  }

  /** What is left of it once these rows have their places. */
  beside(rows: readonly number[]): Cap {
    const left = new Map(this.more);
    for (const row of rows) left.set(this.column[row] as Value, (left.get(this.column[row] as Value) ?? this.limit) - 1);
    return new Cap(this.column, this.limit, left);
  }
}

/** At least so many of the picked are among these rows [n], where there are so many. */
export class Share {
  constructor(
    readonly rows: readonly boolean[],
    readonly least: number,
  ) {}

  /** The same share among these rows only. */
  only(rows: readonly number[]): Share {
    return new Share(rows.map((row) => this.rows[row] as boolean), this.least);
  }

  /** What is left to fill once these rows have their places. */
  beside(taken: readonly number[]): Share {
    return new Share(this.rows, Math.max(0, this.least - taken.filter((row) => this.rows[row]).length));
  }
}

/** Cosines of rows, each worked out once: a page is chosen several times over from the same rows. */
export class Cosines {
  private readonly known = new Map<number, Float32Array>();

  /** units: [m, D] of length 1, or 0; rows [n] are those of them that are chosen from. */
  constructor(private readonly among: { readonly units: Vectors; readonly rows: readonly number[] }) {}

  /** Of one to these others, at their places in [n]; numbers at other places mean nothing. */
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
 * Rows picked, best first: each time the greatest (1 - variety) * score - variety * likeness to those picked.
 *
 * scores [n] and cosines of [n] describe the candidates; likeness is the greatest cosine, put on the scale of the scores
 * of the pool. Shares are filled first, in their order, then the rest; both in that way. Fewer than `count` rows come
 * back if caps or candidates run out. Equal values go to the better score.
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
    // every cap counts every row, whether or not another leaves it out
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

/** Rows of a pool, best scored first, as they are picked one by one. */
class Selection {
  readonly picked: number[] = [];
  /** -Infinity once a row is picked or shut out by a cap. */
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

  /** Pick until so many of these rows (of all, if not given) are picked, or none is left. */
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
