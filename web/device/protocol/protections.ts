// How an update must be protected before it leaves a device: a tagged union, like reports.
//
// The browser's device takes part in `secure_sum` rounds; it can read the other two kinds and declines them by name.
import { WireError, integer, literal, oneOf, optional, real, record, truth, type ValueOf } from "./forms";
import { FixedPoint, UpdateLayout } from "./ring";
import {
  MEMBERS_LIMIT,
  NOISE_REACH,
  type SumTerms,
  fitting,
  fixedPointOf,
  graphOf,
  sumTerms,
  trustMode,
} from "./secagg";

const graph = literal("complete", "by_cohort");
const cohortLimit = optional(integer({ min: 2, max: MEMBERS_LIMIT }), 1_000);
const delta = optional(real({ above: 0, below: 1 }), 1e-6);
const bits = optional(literal(32, 64), 32);

/**
 * Uni-FedRec, eq. 8: every coordinate clipped, with Laplace noise on each; with a weight_limit above 1, n_u is sent in
 * the clear.
 */
export const localLaplace = record({
  kind: optional(literal("local_laplace"), "local_laplace"),
  clip: optional(real({ above: 0 }), 0.1),
  scale: optional(real({ above: 0 }), 0.01),
  weight_limit: optional(integer({ min: 1, max: 1_024 }), 1),
});

/**
 * Efficient-FedRec (eq. 4, section 3.4): the mean gradient in the L2 ball of radius clip, weighted, in a masked sum.
 */
export const secureSum = record(
  {
    kind: optional(literal("secure_sum"), "secure_sum"),
    clip: real({ above: 0 }),
    weight_limit: optional(integer({ min: 1, max: 1_024 }), 1),
    sigma: optional(integer({ min: 0, max: 2 ** 24 }), 0),
    delta,
    mode: optional(trustMode, "active"),
    graph: optional(graph, "by_cohort"),
    bits,
    fraction_bits: optional(integer({ min: 0, max: 62 }), 16),
    cohort_limit: cohortLimit,
    nonnegative: optional(truth, false),
  },
  (sum) => {
    if (sum.sigma && sum.weight_limit !== 1)
      throw new WireError(`weight_limit: must be 1 if the sum has noise, got ${sum.weight_limit}`);
    fitting(() => {
      const headroom = NOISE_REACH * sum.sigma * Math.sqrt(sum.cohort_limit);
      const fixed = new FixedPoint(sum.bits, sum.fraction_bits, boundOf(sum), sum.cohort_limit, headroom);
      // The layout checks that the sum of all n_u fits too.
      return new UpdateLayout(new Map([["g", [1]]]), fixed, sum.weight_limit);
    });
  },
);
export type SecureSum = ValueOf<typeof secureSum>;

/** X, the bound of every coordinate of n_u g. */
export function boundOf(sum: { readonly clip: number; readonly weight_limit: number }): number {
  return sum.clip * sum.weight_limit;
}

/** Returns the largest distance by which replacing all of a device's data can move its vector, in fixed-point steps. */
export function reachSteps(sum: SecureSum): number {
  return (sum.nonnegative ? Math.sqrt(2) : 2) * sum.clip * 2 ** sum.fraction_bits;
}

/** The terms that both sides check a round's messages against. Throws WireError for a cohort too large for the ring. */
export function termsOf(
  sum: SecureSum,
  round: string,
  { cohort, cohortMinimum, coordinates }: { cohort: number; cohortMinimum: number; coordinates: number },
): SumTerms {
  return sumTerms.make({
    round,
    mode: sum.mode,
    graph: graphOf(sum.graph, cohort, sum.cohort_limit),
    cohort,
    cohort_minimum: cohortMinimum,
    length: coordinates + 1,
    bits: sum.bits,
    fraction_bits: sum.fraction_bits,
    bound: boundOf(sum),
    headroom: NOISE_REACH * sum.sigma * Math.sqrt(cohort),
  });
}

/** The layout of an update's tensors in a vector of these terms. */
export function layoutOf(
  sum: SecureSum,
  shapes: ReadonlyMap<string, readonly number[]>,
  terms: SumTerms,
): UpdateLayout {
  return new UpdateLayout(shapes, fixedPointOf(terms), sum.weight_limit);
}

/** The union of a cohort's articles by a secure sum (Efficient-FedRec's first step). */
export const unionMarks = record(
  {
    kind: optional(literal("union_marks"), "union_marks"),
    owners_minimum: optional(integer({ min: 1, max: MEMBERS_LIMIT }), 1),
    sigma: optional(integer({ min: 0, max: 2 ** 20 }), 0),
    dummies: optional(integer({ min: 0, max: 65_536 }), 0),
    rows_limit: optional(integer({ min: 1, max: 65_536 }), 512),
    delta,
    mode: optional(trustMode, "active"),
    graph: optional(graph, "by_cohort"),
    bits,
    cohort_limit: cohortLimit,
  },
  (marks) => {
    if (marks.sigma && marks.owners_minimum === 1)
      throw new WireError("owners_minimum: noise needs owner counts (2 or more), since marks carry no noise");
    if (marks.dummies && marks.owners_minimum > 1)
      throw new WireError("dummies: must be 0 with owner counts, since dummies would count as owners");
    const headroom = NOISE_REACH * marks.sigma * Math.sqrt(marks.cohort_limit);
    fitting(() => new FixedPoint(marks.bits, 0, 1, marks.cohort_limit, headroom));
  },
);

export const protection = oneOf({ local_laplace: localLaplace, secure_sum: secureSum, union_marks: unionMarks });
export type Protection = ValueOf<typeof protection>;

/** Protections whose rounds are secure sums, with terms. */
export const SUMMED: ReadonlySet<Protection["kind"]> = new Set(["secure_sum", "union_marks"]);
