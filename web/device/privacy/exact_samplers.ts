// Exact sampling from uniform bits with whole numbers alone: what randomised response is drawn with.
//
// After Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (NeurIPS 2020), algorithm 1. The
// same uniform bits give the same draws as those of the Python device.
import { type NoiseSource, words } from "./noise_sources";

/** Epsilons are rounded down to multiples of 2^-20, so that every chance is rational. */
const STEPS = 2 ** 20;
const BOUND_LIMIT = 2 ** 40;
const DENOMINATOR_LIMIT = 2 ** 30;

/** A fraction in lowest terms. */
export interface Fraction {
  readonly numerator: number;
  readonly denominator: number;
}

/**
 * The largest multiple of 2^-20 that is at most epsilon: what the samplers use, never more than what is claimed.
 * Throws RangeError unless epsilon is at least 2^-20 and below 2^30.
 */
export function rational(epsilon: number): Fraction {
  if (!(epsilon >= 1 / STEPS && epsilon < 2 ** 30))
    throw new RangeError(`epsilon must be finite and at least 2^-20; got ${epsilon}`);
  let [numerator, denominator] = [Math.floor(epsilon * STEPS), STEPS];
  while (numerator % 2 === 0 && denominator > 1) [numerator, denominator] = [numerator / 2, denominator / 2];
  return { numerator, denominator };
}

/**
 * n independent draws, each of 0 .. bound - 1 equally likely: 64-bit words, those beyond a multiple are drawn again,
 * all of them at once. Throws RangeError unless bound is 1 to 2^40.
 */
export function uniformBelow(source: NoiseSource, bound: number, n: number): number[] {
  if (!(Number.isInteger(bound) && bound >= 1 && bound <= BOUND_LIMIT))
    throw new RangeError(`bound must be 1 to 2^40; got ${bound}`);
  const wide = BigInt(bound);
  const last = (2n ** 64n / wide) * wide - 1n;
  const drawn = words(source, n);
  for (;;) {
    const beyond: number[] = [];
    drawn.forEach((word, place) => word > last && beyond.push(place));
    if (!beyond.length) break;
    const again = words(source, beyond.length);
    beyond.forEach((place, one) => (drawn[place] = again[one] ?? 0n));
  }
  return Array.from(drawn, (word) => Number(word % wide));
}

/** Independent coins, coin i true with probability exp(-numerators[i] / denominator), exactly. Throws RangeError. */
export function bernoulliExp(source: NoiseSource, numerators: readonly number[], denominator: number): boolean[] {
  if (!(Number.isInteger(denominator) && denominator >= 1 && denominator <= DENOMINATOR_LIMIT))
    throw new RangeError(`denominator must be 1 to 2^30; got ${denominator}`);
  if (numerators.some((each) => !(Number.isSafeInteger(each) && each >= 0)))
    throw new RangeError("numerators must be whole and not negative");
  const rest = numerators.map((each) => each % denominator);
  const whole = numerators.map((each) => Math.floor(each / denominator));
  const coins = rest.some((each) => each > 0)
    ? smallCoins(source, rest, denominator)
    : new Array<boolean>(rest.length).fill(true);
  const most = whole.reduce((one, other) => Math.max(one, other), 0);
  for (let passed = 0; passed < most; passed++) {
    // exp(-(m + r)) = exp(-1)^m exp(-r)
    const alive = placesWhere(coins, (coin, place) => coin && (whole[place] ?? 0) > passed);
    if (!alive.length) break;
    const again = smallCoins(source, new Array<number>(alive.length).fill(1), 1);
    alive.forEach((place, one) => (coins[place] = again[one] ?? false));
  }
  return coins;
}

/** Algorithm 1 for 0 <= gamma <= 1: count coins of chance gamma / k for k = 1, 2, ... until one fails; k odd? */
function smallCoins(source: NoiseSource, numerators: readonly number[], denominator: number): boolean[] {
  const coins = new Array<boolean>(numerators.length).fill(false);
  let alive = numerators.map((_, place) => place);
  let k = denominator === 1 && numerators.every((each) => each > 0) ? 2 : 1; // gamma = 1: the first coin can't fail
  for (; alive.length; k++) {
    const drawn = uniformBelow(source, denominator * k, alive.length);
    const on: number[] = [];
    alive.forEach((place, one) => {
      if ((drawn[one] ?? 0) < (numerators[place] ?? 0)) on.push(place);
      else coins[place] = k % 2 === 1;
    });
    alive = on;
  }
  return coins;
}

/**
 * For each of the codes `truths` (0 .. size - 1) a code: itself e^eps times as likely as any other single one.
 *
 * By rejection: a uniform code is kept if it is the true one, else with chance e^-eps, else drawn again; the coins are
 * drawn for all, so that no branch hangs on the true code. eps-local differential privacy of one code, eps =
 * rational(epsilon), exactly. Nothing is said of how often, or when, this is called.
 */
export function randomisedResponse(
  source: NoiseSource,
  truths: readonly number[],
  size: number,
  epsilon: number,
): number[] {
  const exact = rational(epsilon);
  const answers = new Array<number>(truths.length);
  let wanted = truths.map((_, place) => place);
  while (wanted.length) {
    const offered = uniformBelow(source, size, wanted.length);
    const coins = bernoulliExp(source, new Array<number>(wanted.length).fill(exact.numerator), exact.denominator);
    const again: number[] = [];
    wanted.forEach((place, one) => {
      const kept = Number(coins[one]) | Number(offered[one] === truths[place]);
      if (kept) answers[place] = offered[one] ?? 0;
      else again.push(place);
    });
    wanted = again;
  }
  return answers;
}

function placesWhere<T>(values: readonly T[], holds: (value: T, place: number) => boolean): number[] {
  return values.flatMap((value, place) => (holds(value, place) ? [place] : []));
}
