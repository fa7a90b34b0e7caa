// Composes the ledger's charges: by sum, and by the privacy loss distribution where it is known.
//
// The formulas are those of the Python device; the two runtimes' exponentials may differ in the last bits.
import { epsilonOf } from "../../protocol/concentrated";
import { RHO } from "./cost_of_sums";

export const DELTA = 1e-6;
const BISECTIONS = 60;
/** Mechanisms whose loss has a closed form here: randomised response. */
const KNOWN: readonly string[] = ["interest", "code"];
/** Limits of the exact composition: above this epsilon, or this many responses, the sum is as tight and faster. */
const EXACT_UP_TO = 100;
const COUNTED_EXACTLY = 2_000;
/**
 * Limit on the number of loss values computed for all randomised responses together; the rest are summed. Responses
 * with different epsilons have as many values as the product of their numbers of values.
 */
const VALUES_LIMIT = 1_000_000;

/** Identical charges grouped together. */
export interface ChargeGroup {
  readonly mechanism: string;
  readonly parameters: Readonly<Record<string, number>>;
  readonly epsilon: number;
  readonly delta: number;
  readonly count: number;
}

/** All charges of a device: pure by sum, with that sum's own delta, and epsilon at deltaBySum + DELTA. */
export interface Composed {
  readonly bySum: number;
  readonly deltaBySum: number;
  readonly byLoss: number;
  readonly charges: number;
  /** Cost of all noisy secure sums together, by rho, at the sum of their deltas. */
  readonly sums: number;
}

/**
 * Composes all charges, of reports and of training. Both figures are upper bounds: byLoss convolves the loss of
 * randomised responses exactly, adds the rho of noisy secure sums (Bun and Steinke 2016), and adds the epsilon of every
 * other mechanism as it is; it is never above bySum.
 */
export function composed(groups: readonly ChargeGroup[]): Composed {
  const known = groups.filter(isResponse);
  const unknown = groups.filter((each) => !isResponse(each));
  const noisy = unknown.filter((each) => RHO in each.parameters);
  const others = unknown.filter((each) => !(RHO in each.parameters));
  const bySum = sum(groups, (each) => each.epsilon);
  const rho = sum(noisy, (each) => each.parameters[RHO] ?? 0);
  const deltaOfSums = sum(noisy, (each) => each.delta);
  const byRho = rho > 0 && deltaOfSums > 0 && deltaOfSums < 1;
  const sums = byRho ? epsilonOf(rho, deltaOfSums) : sum(noisy, (each) => each.epsilon);
  const responses = known.map((each) => [Math.trunc(each.parameters["size"] ?? 0), each.epsilon, each.count] as const);
  const byLoss = sum(others, (each) => each.epsilon) + sums + epsilonOfResponses(responses, DELTA);
  return {
    bySum,
    deltaBySum: sum(groups, (each) => each.delta),
    byLoss: Math.min(bySum, byLoss),
    charges: groups.reduce((all, each) => all + each.count, 0),
    sums,
  };
}

/**
 * Whether these are randomised responses as this device makes them. Charges may also come from an imported file
 * (moved_charges.ts); there, anything else is simply added up.
 */
function isResponse({ mechanism, parameters, epsilon, count }: ChargeGroup): boolean {
  return KNOWN.includes(mechanism) && (parameters["size"] ?? 0) >= 2 && epsilon <= EXACT_UP_TO && count <= COUNTED_EXACTLY;
}

function sum(groups: readonly ChargeGroup[], of: (group: ChargeGroup) => number): number {
  return groups.reduce((all, each) => all + of(each) * each.count, 0);
}

/**
 * The least epsilon at delta of randomised responses given as (K, epsilon, count); 0 for none. Responses with which the
 * loss would exceed VALUES_LIMIT values add their epsilons instead, which is still an upper bound.
 */
export function epsilonOfResponses(responses: readonly (readonly [number, number, number])[], delta: number): number {
  let chances = new Map<number, number>([[0, 1]]);
  let beyond = 0;
  for (const [size, epsilon, count] of responses) {
    if (chances.size * (2 * count + 1) > VALUES_LIMIT) {
      beyond += epsilon * count;
      continue;
    }
    const joint = new Map<number, number>();
    repeated(size, epsilon, count).forEach((chance, place) => {
      for (const [loss, before] of chances) {
        const both = Math.round((loss + (place - count) * epsilon) * 1e9) / 1e9;
        joint.set(both, (joint.get(both) ?? 0) + before * chance);
      }
    });
    chances = joint;
  }
  let [low, high] = [0, 0];
  for (const loss of chances.keys()) high = Math.max(high, loss);
  if (high <= 0 || deltaAt(chances, 0) <= delta) return beyond;
  for (let step = 0; step < BISECTIONS; step++) {
    const middle = (low + high) / 2;
    if (deltaAt(chances, middle) <= delta) high = middle;
    else low = middle;
  }
  return high + beyond;
}

/** The hockey-stick divergence: sum over losses above epsilon of probability * (1 - exp(epsilon - loss)). */
function deltaAt(chances: ReadonlyMap<number, number>, epsilon: number): number {
  let delta = 0;
  for (const [loss, chance] of chances) if (loss > epsilon) delta -= chance * Math.expm1(epsilon - loss);
  return delta;
}

/**
 * Probabilities of the losses of `count` responses, -count .. count in units of epsilon, for the worst pair of readers.
 */
function repeated(size: number, epsilon: number, count: number): number[] {
  const other = 1 / (Math.exp(epsilon) + size - 1);
  const single = [other, (size - 2) * other, Math.exp(epsilon) * other];
  let chances = [1];
  for (let response = 0; response < count; response++) {
    const longer = new Array<number>(chances.length + 2).fill(0);
    chances.forEach((chance, place) =>
      single.forEach((one, step) => (longer[place + step] = (longer[place + step] ?? 0) + chance * one)),
    );
    chances = longer;
  }
  return chances;
}
