// Secure summation on the wire (Bonawitz et al. 2017).
//
//   stage      device sends          server answers, when the stage is closed
//   keys       AdvertisedKeys        Roster       the members this device works with
//   shares     SharedKeys            Shares       the boxes addressed to it
//   complaints Complaints            Sharers      U2: who shared its keys, except those excluded after complaints
//   masked     ring elements, raw    Survivors    U3: whose masked vectors arrived
//   agree      Agreement             Agreements   (mode active only)
//   unmask     RevealedShares        nothing: only the server gets the sum
//
// Also chooses how many neighbours each member of a sparse sum has, and how many of their shares open a secret (Bell et
// al. 2020); protocol/secagg.py states the requirements and why. Only integers decide, so that both sides get the same
// result.
import { WireError, absent, bytes, integer, list, literal, optional, real, record, text, type Bytes, type ValueOf } from "./forms";
import { FixedPoint, RingError } from "./ring";

/** Share of members that may collude with the server, and share that may drop out, as both sides assume. */
const COLLUDING = 0.02;
const DROPPING = 0.17;
/** Colluding members that may all be neighbours of one member, wherever the server places them. */
const NEAR_ONE = 10;
/** The fewest honest members of any sum that a malicious server can open. */
const COMPANY = 5;
const PRIVACY_BITS = 40n;
const SUCCESS_BITS = 20n;

/** Parameters of the sparse graph: k neighbours each, threshold t, and at most c colluding neighbours. */
export interface Neighbourhood {
  readonly degree: number;
  readonly threshold: number;
  readonly colluding: number;
}

/** The fewest of a closed neighbourhood, including itself, with whom a member masks its vector. */
export function fewestSharers({ degree, threshold, colluding }: Neighbourhood): number {
  return Math.max(threshold, degree + 1 + colluding + COMPANY - threshold);
}

const chosen = new Map<number, Neighbourhood | null>();

/**
 * The smallest even k, with its t and c, that meets the assumptions; null if only the complete graph does, or is
 * required.
 */
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
    const near = colludingNeighbours(members, degree, colluding, ways);
    const chosen = { degree, threshold: Math.floor((degree + 1 + near) / 2) + 1, colluding: near };
    if (
      fewestSharers(chosen) <= degree + 1 &&
      hangsTogether(members, degree, colluding + dropping) &&
      opens(members, degree, chosen.threshold, ways)
    )
      return chosen;
  }
  return null;
}

type Ways = Readonly<Record<"others" | "colluding" | "honest" | "surviving" | "dropping", Combinations>>;

/** The least c, at least 10, such that members * P(more than c of k neighbours collude) <= 2^-40. */
function colludingNeighbours(members: number, degree: number, colluding: number, ways: Ways): number {
  const all = ways.others.of(degree);
  let tail = 0n;
  for (let found = Math.min(degree, colluding); found > NEAR_ONE; found--) {
    tail += ways.colluding.of(found) * ways.honest.of(degree - found);
    if ((BigInt(members) * tail) << PRIVACY_BITS > all) return found;
  }
  return NEAR_ONE;
}

/**
 * Returns a union bound over n^2 / 2 pairs of gaps, each of k/2 members, times the probability that k given members are
 * all removed.
 */
function hangsTogether(members: number, degree: number, removed: number): boolean {
  const gone = BigInt(members) ** 2n * permutations(removed, degree);
  return gone << PRIVACY_BITS <= 2n * permutations(members, degree);
}

/** Whether members * P(fewer than t of k neighbours survive) <= 2^-20. */
function opens(members: number, degree: number, threshold: number, ways: Ways): boolean {
  let tail = 0n;
  for (let one = 0; one < threshold; one++) tail += ways.surviving.of(one) * ways.dropping.of(degree - one);
  return (BigInt(members) * tail) << SUCCESS_BITS <= ways.others.of(degree);
}

/** Binomial coefficients n over k, for one n. */
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

export const MEMBERS_LIMIT = 10_000;
export const LENGTH_LIMIT = 2 ** 27;
export const SHARE_BYTES = 33;
export const BOX_BYTES = 8 + 2 * SHARE_BYTES + 16;
export const KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;
/** From this many devices on, each masks with about log n others (Bell et al. 2020). */
export const SPARSE_FROM = 101;
/** Standard deviations of the opened sum's noise that the ring must hold. */
export const NOISE_REACH = 10;

/** A message that an honest peer wouldn't have sent; the error says what is wrong. */
export class SecaggError extends Error {}

const member = integer({ min: 1, max: MEMBERS_LIMIT });
const members = list(member, { max: MEMBERS_LIMIT });
const key = bytes({ min: KEY_BYTES, max: KEY_BYTES });
const signature = bytes({ min: SIGNATURE_BYTES, max: SIGNATURE_BYTES });
export const trustMode = literal("semi_honest", "active");
const graph = literal("complete", "sparse");
export type Graph = ValueOf<typeof graph>;

function ascending(field: string, numbers: readonly number[]): void {
  numbers.forEach((later, place) => {
    const earlier = numbers[place - 1];
    if (earlier !== undefined && later <= earlier)
      throw new WireError(`${field}: member numbers must be strictly increasing; ${later} follows ${earlier}`);
  });
}

/** Throws WireError if `make` throws RingError or RangeError: numbers that don't fit make a message invalid. */
export function fitting<T>(make: () => T): T {
  try {
    return make();
  } catch (broken) {
    throw broken instanceof RingError || broken instanceof RangeError ? new WireError(broken.message) : broken;
  }
}

/** A secure sum's terms, in the round's manifest; both sides check every later message against them. */
export const sumTerms = record(
  {
    round: text({ max: 80 }),
    mode: optional(trustMode, "semi_honest"),
    graph: optional(graph, "complete"),
    cohort: member,
    cohort_minimum: integer({ min: 2, max: MEMBERS_LIMIT }),
    length: integer({ min: 1, max: LENGTH_LIMIT }),
    bits: optional(literal(8, 16, 32, 64), 32),
    fraction_bits: integer({ min: 0, max: 62 }),
    bound: real({ above: 0 }),
    headroom: optional(real({ min: 0 }), 0),
  },
  (terms) => {
    if (terms.cohort_minimum > terms.cohort)
      throw new WireError(`cohort_minimum: at most the cohort of ${terms.cohort}, got ${terms.cohort_minimum}`);
    fitting(() => fixedPointOf(terms));
  },
);
export type SumTerms = ValueOf<typeof sumTerms>;

/** The encoding of a sum's values. Throws RingError if a sum could overflow, which validated terms never do. */
export function fixedPointOf(terms: SumTerms): FixedPoint {
  return new FixedPoint(terms.bits, terms.fraction_bits, terms.bound, terms.cohort, terms.headroom);
}

/**
 * The graph of a protection's sum. If the protection doesn't choose one, it is sparse from SPARSE_FROM devices on.
 * Throws WireError for a cohort too large for the ring.
 */
export function graphOf(form: string, cohort: number, cohortLimit: number): Graph {
  if (cohort > cohortLimit) throw new WireError(`cohort: at most ${cohortLimit}, got ${cohort}`);
  return form === "by_cohort" && cohort >= SPARSE_FROM ? "sparse" : "complete";
}

/** Sent in the `keys` stage: two X25519 keys and the Ed25519 key that signs them, for this round only. */
export const advertisedKeys = record({ encryption_key: key, mask_key: key, verify_key: key, signature });
export type AdvertisedKeys = ValueOf<typeof advertisedKeys>;

/** One member with its keys. */
export const rosterEntry = record({ member, keys: advertisedKeys });
export type RosterEntry = ValueOf<typeof rosterEntry>;

/** The server's answer in the `keys` stage: the members this device works with, itself included, ascending. */
export const roster = record(
  {
    round: text({ max: 80 }),
    me: member,
    cohort: member,
    threshold: member,
    members: list(rosterEntry, { min: 2, max: MEMBERS_LIMIT }),
  },
  (received) => {
    const numbers = received.members.map((entry) => entry.member);
    ascending("members", numbers);
    if (!numbers.includes(received.me)) throw new WireError(`me: ${received.me} is not among the members`);
    if (numbers.length > received.cohort)
      throw new WireError(`members: at most the cohort of ${received.cohort}, got ${numbers.length}`);
  },
);
export type Roster = ValueOf<typeof roster>;

/** An encrypted pair of shares, to or from another member. */
export const box = record({ member, box: bytes({ min: BOX_BYTES, max: BOX_BYTES }) });
export type Box = ValueOf<typeof box>;

const inOrder =
  <K extends string>(field: K) =>
  (message: { readonly [field in K]: readonly (number | { readonly member: number })[] }): void =>
    ascending(
      field,
      message[field].map((one) => (typeof one === "number" ? one : one.member)),
    );

/** Sent in the `shares` stage: a box for every other member of the roster, and a commitment to the self mask's seed. */
export const sharedKeys = record(
  { seed_commitment: key, boxes: list(box, { min: 1, max: MEMBERS_LIMIT }) },
  inOrder("boxes"),
);

/** Answer in the `shares` stage: the boxes for this device. */
export const shares = record({ boxes: list(box, { max: MEMBERS_LIMIT }) }, inOrder("boxes"));
export type Shares = ValueOf<typeof shares>;

/** Sent in the `complaints` stage: members whose boxes this device couldn't open, usually none. */
export const complaints = record({ members }, inOrder("members"));

/** Answer in the `complaints` stage: U2, restricted to the members this device works with. */
export const sharers = record({ members }, inOrder("members"));
export type Sharers = ValueOf<typeof sharers>;

/** Answer in the `masked` stage: U3, restricted to the members this device works with. */
export const survivors = record({ members }, inOrder("members"));
export type Survivors = ValueOf<typeof survivors>;

/**
 * Sent in the `agree` stage: this device's signature on the round, its roster and U3; if the roster isn't complete, on the round, its
 * number and U3 as `aliveBits`.
 */
export const agreement = record({ signature });

/** Another member's agreement. alive: U3 as that member received it, if rosters aren't complete. */
export const memberSignature = record({
  member,
  signature,
  alive: absent(bytes({ min: 1, max: MEMBERS_LIMIT / 8 })),
});
export type MemberSignature = ValueOf<typeof memberSignature>;

/** Whether the signer confirms that this member's masked vector has arrived. */
export function saysAlive({ alive }: MemberSignature, number: number): boolean {
  const byte = alive?.[(number - 1) >> 3] ?? 0;
  return ((byte >> ((number - 1) & 7)) & 1) === 1;
}

/** One bit per member of the cohort; the lowest bit of the first byte is member 1. */
export function aliveBits(numbers: readonly number[], cohort: number): Bytes {
  const bits = new Uint8Array((cohort + 7) >> 3);
  for (const number of numbers) {
    const byte = (number - 1) >> 3;
    bits[byte] = (bits[byte] ?? 0) | (1 << ((number - 1) & 7));
  }
  return bits;
}

/** Whether a roster names every member of the round, as on the complete graph. */
export function isWhole(received: Roster): boolean {
  return received.members.length === received.cohort;
}

/** Answer in the `agree` stage: from all members on the complete graph, otherwise from the device's neighbours. */
export const agreements = record({ signatures: list(memberSignature, { max: MEMBERS_LIMIT }) }, inOrder("signatures"));
export type Agreements = ValueOf<typeof agreements>;

/** This device's share of one secret of one member. */
export const revealedShare = record({ member, share: bytes({ min: SHARE_BYTES, max: SHARE_BYTES }) });

/** Sent in the `unmask` stage: shares of survivors' self-mask seeds and of dropped members' mask keys, never both
 * of one member. */
export const revealedShares = record(
  { seeds: list(revealedShare, { max: MEMBERS_LIMIT }), keys: list(revealedShare, { max: MEMBERS_LIMIT }) },
  ({ seeds, keys }) => {
    inOrder("seeds")({ seeds });
    inOrder("keys")({ keys });
    const opened = new Set(seeds.map((one) => one.member));
    const both = keys.find((one) => opened.has(one.member));
    if (both) throw new WireError(`keys: member ${both.member} is among the seeds too; together they would open its vector`);
  },
);

/** The least threshold a device accepts if this many members hold a secret's shares, on the complete graph. */
export function requiredThreshold(terms: SumTerms, holders: number): number {
  return terms.mode === "active" ? Math.floor((2 * holders) / 3) + 1 : Math.floor(holders / 2) + 1;
}
