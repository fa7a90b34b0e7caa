// Secure summation as the two ends speak of it (Bonawitz et al. 2017).
//
//   stage      device sends          server answers, when the stage is closed
//   keys       AdvertisedKeys        Roster       the members this device works with
//   shares     SharedKeys            Shares       the boxes that were meant for it
//   complaints Complaints            Sharers      U2: who shared its keys, but for those left out over complaints
//   masked     ring elements, raw    Survivors    U3: whose masked vectors arrived
//   agree      Agreement             Agreements   (active adversary only)
//   unmask     RevealedShares        nothing: the sum is the server's
import { type ValueOf, WireError, list, optional, record } from "./forms";
import { FixedPoint, RingError } from "./ring";
import { bytes, integer, literal, real, text } from "./values";

export const MEMBERS_LIMIT = 10_000;
export const LENGTH_LIMIT = 2 ** 27;
export const SHARE_BYTES = 33;
export const BOX_BYTES = 8 + 2 * SHARE_BYTES + 16;
export const KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;
/** From so many devices on each masks with about log n others (Bell et al. 2020). */
export const SPARSE_FROM = 101;
/** Standard deviations of the opened sum's noise for which the ring has room. */
export const NOISE_REACH = 10;

/** A message that an honest other end would not have sent; says what is wrong. */
export class SecaggError extends Error {}

const member = integer({ min: 1, max: MEMBERS_LIMIT });
const members = list(member, { max: MEMBERS_LIMIT });
const key = bytes({ min: KEY_BYTES, max: KEY_BYTES });
const signature = bytes({ min: SIGNATURE_BYTES, max: SIGNATURE_BYTES });
const trustMode = literal("semi_honest", "active");
const graph = literal("complete", "sparse");
/** Of a protection. by_cohort: active on the complete graph, semi_honest in the sparse form. */
export const sumMode = literal("semi_honest", "active", "by_cohort");
export type SumMode = ValueOf<typeof sumMode>;
export type TrustMode = ValueOf<typeof trustMode>;
export type Graph = ValueOf<typeof graph>;

function ascending(field: string, numbers: readonly number[]): void {
  if (numbers.some((number, place) => place > 0 && number <= (numbers[place - 1] ?? 0)))
    throw new WireError(`${field}: member numbers must ascend, each once`);
}

/**
 * Throws WireError where `make` throws RingError or RangeError: numbers that don't fit are what is wrong with a
 * message.
 */
export function fitting<T>(make: () => T): T {
  try {
    return make();
  } catch (broken) {
    throw broken instanceof RingError || broken instanceof RangeError ? new WireError(broken.message) : broken;
  }
}

/** What a secure sum is, in the manifest of its round; both ends hold every later message against it. */
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
    if (terms.mode === "active" && terms.graph === "sparse")
      throw new WireError(
        "graph: the sparse form is for a server that follows the protocol; 'active' needs 'complete'",
      );
    fitting(() => fixedPointOf(terms));
  },
);
export type SumTerms = ValueOf<typeof sumTerms>;

/** The code of a sum's values. Throws RingError if a sum could overflow, which terms that were read never do. */
export function fixedPointOf(terms: SumTerms): FixedPoint {
  return new FixedPoint(terms.bits, terms.fraction_bits, terms.bound, terms.cohort, terms.headroom);
}

/**
 * Mode and graph for a cohort where a protection leaves them to its size: sparse from SPARSE_FROM on. Throws WireError
 * for a cohort that the ring has no room for.
 */
export function formOfSum(
  mode: SumMode,
  form: string,
  cohort: number,
  cohortLimit: number,
): readonly [TrustMode, Graph] {
  if (cohort > cohortLimit) throw new WireError(`cohort: at most ${cohortLimit}, got ${cohort}`);
  const sparse = form === "by_cohort" && cohort >= SPARSE_FROM;
  const byCohort = sparse ? "semi_honest" : "active";
  return [mode === "by_cohort" ? byCohort : mode, sparse ? "sparse" : "complete"];
}

/** Stage keys: two X25519 keys and the Ed25519 key that signs them for this round only. */
export const advertisedKeys = record({ encryption_key: key, mask_key: key, verify_key: key, signature });
export type AdvertisedKeys = ValueOf<typeof advertisedKeys>;

/** One member with its keys. */
export const rosterEntry = record({ member, keys: advertisedKeys });
export type RosterEntry = ValueOf<typeof rosterEntry>;

/** Answer of stage keys: the members this device works with, itself among them, in ascending order. */
export const roster = record(
  {
    round: text({ max: 80 }),
    me: member,
    cohort: member,
    threshold: member,
    members: list(rosterEntry, { min: 2, max: MEMBERS_LIMIT }),
  },
  (told) => {
    const numbers = told.members.map((entry) => entry.member);
    ascending("members", numbers);
    if (!numbers.includes(told.me)) throw new WireError(`me: ${told.me} is not among the members`);
    if (numbers.length > told.cohort)
      throw new WireError(`members: at most the cohort of ${told.cohort}, got ${numbers.length}`);
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

/** Stage shares: a box for every other member of the roster, and a commitment to the self mask's seed. */
export const sharedKeys = record(
  { seed_commitment: key, boxes: list(box, { min: 1, max: MEMBERS_LIMIT }) },
  inOrder("boxes"),
);
export type SharedKeys = ValueOf<typeof sharedKeys>;

/** Answer of stage shares: the boxes for this device. */
export const shares = record({ boxes: list(box, { max: MEMBERS_LIMIT }) }, inOrder("boxes"));
export type Shares = ValueOf<typeof shares>;

/** Stage complaints: members whose boxes this device could not open, mostly none. */
export const complaints = record({ members }, inOrder("members"));
export type Complaints = ValueOf<typeof complaints>;

/** Answer of stage complaints: U2, as far as this device works with it. */
export const sharers = record({ members }, inOrder("members"));
export type Sharers = ValueOf<typeof sharers>;

/** Answer of stage masked: U3, as far as this device works with it. */
export const survivors = record({ members }, inOrder("members"));
export type Survivors = ValueOf<typeof survivors>;

/** Stage agree: this device's signature on the round, its roster and U3. */
export const agreement = record({ signature });
export type Agreement = ValueOf<typeof agreement>;

/** Another member's agreement. */
export const memberSignature = record({ member, signature });

/** Answer of stage agree. */
export const agreements = record({ signatures: list(memberSignature, { max: MEMBERS_LIMIT }) }, inOrder("signatures"));
export type Agreements = ValueOf<typeof agreements>;

/** This device's share of one secret of one member. */
export const revealedShare = record({ member, share: bytes({ min: SHARE_BYTES, max: SHARE_BYTES }) });

/** Stage unmask: shares of the self-mask seeds of survivors and of the mask keys of the dropped, never both of one. */
export const revealedShares = record(
  { seeds: list(revealedShare, { max: MEMBERS_LIMIT }), keys: list(revealedShare, { max: MEMBERS_LIMIT }) },
  ({ seeds, keys }) => {
    inOrder("seeds")({ seeds });
    inOrder("keys")({ keys });
    const opened = new Set(seeds.map((one) => one.member));
    const both = keys.find((one) => opened.has(one.member));
    if (both) throw new WireError(`keys: member ${both.member} is among the seeds too; both would open its vector`);
  },
);
export type RevealedShares = ValueOf<typeof revealedShares>;

/** The least threshold a device accepts when so many members hold a secret's shares, on the complete graph. */
export function requiredThreshold(terms: SumTerms, holders: number): number {
  return terms.mode === "active" ? Math.floor((2 * holders) / 3) + 1 : Math.floor(holders / 2) + 1;
}
