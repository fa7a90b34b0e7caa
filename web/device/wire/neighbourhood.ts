// How many neighbours each member of a sparse secure sum has, and how many of their shares open a secret (Bell et al.
// 2020).
//
// Whole numbers decide everything, so that both ends come to the same.
import { SPARSE_FROM } from "./secagg";

/** Members that may work together with the server, and that may vanish: shares of all, by which both ends go. */
const COLLUDING = 0.1;
const DROPPING = 0.2;
const PRIVACY_BITS = 40n;
const SUCCESS_BITS = 20n;

/** k neighbours each, and t shares to open a secret. */
export interface Neighbourhood {
  readonly degree: number;
  readonly threshold: number;
}

const chosen = new Map<number, Neighbourhood | null>();

/** The smallest even k, with its t, that meets the assumptions; null if only the complete graph does, or is due. */
export function chooseNeighbourhood(members: number): Neighbourhood | null {
  const known = chosen.get(members);
  if (known !== undefined) return known;
  const found = members < SPARSE_FROM ? null : smallest(members);
  chosen.set(members, found);
  return found;
}

function smallest(members: number): Neighbourhood | null {
  const colluding = Math.ceil(COLLUDING * members);
  const dropping = Math.ceil(DROPPING * members);
  const ways = {
    others: new Combinations(members - 1),
    colluding: new Combinations(colluding),
    honest: new Combinations(members - 1 - colluding),
    surviving: new Combinations(members - dropping - 1),
    dropping: new Combinations(dropping),
  };
  for (let degree = 2; degree < members - 1; degree += 2) {
    const threshold = safeThreshold(members, degree, ways);
    if (
      threshold !== null &&
      hangsTogether(members, degree, colluding + dropping) &&
      opens(members, degree, threshold, ways)
    )
      return { degree, threshold };
  }
  return null;
}

type Ways = Readonly<Record<"others" | "colluding" | "honest" | "surviving" | "dropping", Combinations>>;

/** The least t above a third at which members P(t or more of k neighbours collude) <= 2^-40. */
function safeThreshold(members: number, degree: number, ways: Ways): number | null {
  const least = Math.max(2, Math.floor((degree + 1) / 3) + 1);
  const all = ways.others.of(degree);
  let tail = 0n;
  let found: number | null = null;
  for (let threshold = degree; threshold >= least; threshold--) {
    tail += ways.colluding.of(threshold) * ways.honest.of(degree - threshold);
    if ((BigInt(members) * tail) << PRIVACY_BITS > all) break;
    found = threshold;
  }
  return found;
}

/** n^2 / 2 pairs of gaps, each of k/2 members, times the chance that k given members are all removed. */
function hangsTogether(members: number, degree: number, removed: number): boolean {
  const gone = BigInt(members) ** 2n * permutations(removed, degree);
  return gone << PRIVACY_BITS <= 2n * permutations(members, degree);
}

/** members P(fewer than t of k neighbours survive) <= 2^-20. */
function opens(members: number, degree: number, threshold: number, ways: Ways): boolean {
  let tail = 0n;
  for (let one = 0; one < threshold; one++) tail += ways.surviving.of(one) * ways.dropping.of(degree - one);
  return (BigInt(members) * tail) << SUCCESS_BITS <= ways.others.of(degree);
}

/** n over k, for one n. */
class Combinations {
  private readonly known = [1n];
  constructor(private readonly n: number) {}

  of(k: number): bigint {
    for (let next = this.known.length; next <= k; next++)
      this.known.push(((this.known[next - 1] ?? 0n) * BigInt(Math.max(0, this.n - next + 1))) / BigInt(next));
    return this.known[k] ?? 0n;
  }
}

function permutations(n: number, k: number): bigint {
  let ways = 1n;
  for (let taken = 0; taken < k; taken++) ways *= BigInt(Math.max(0, n - taken));
  return ways;
}
