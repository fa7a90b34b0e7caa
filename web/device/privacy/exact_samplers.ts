// Exact sampling from uniform bits with integers only, for randomised response and noise.
//
// After Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (NeurIPS 2020), algorithm 1. The
// same uniform bits give the same draws as those of the Python device.
import type { Bytes } from "../protocol/forms";

const AT_ONCE = 65_536;

/** Unpredictable uniform bits (repeatable in tests). */
export interface NoiseSource {
  /** n bytes, uniform and independent of all previous ones. */
  uniformBits(n: number): Bytes;
}

/** The browser's cryptographic generator, which a reader's device uses. */
export const systemNoise: NoiseSource = {
  uniformBits(n) {
    const drawn = new Uint8Array(n);
    for (let start = 0; start < n; start += AT_ONCE) crypto.getRandomValues(drawn.subarray(start, start + AT_ONCE));
    return drawn;
  },
};

/** 64-bit words, little-endian. */
export function words(source: NoiseSource, n: number): BigUint64Array<ArrayBuffer> {
  return new BigUint64Array(source.uniformBits(8 * n).buffer);
}

/** Bits of exp(-x) computed beyond those of the uniform number. */
const GUARD = 64n;

/**
 * Whether a uniform number that begins with these 64 bits is below exp(-x), x = numerator / denominator. Draws further
 * bits, 8 bytes at a time, until the two differ.
 */
export function atMostExp(
  word: bigint,
  [numerator, denominator]: readonly [bigint, bigint],
  source: NoiseSource,
): boolean {
  let bits = 64n;
  let uniform = word;
  for (;;) {
    const scale = bits + GUARD;
    const [low, high] = exponential(numerator, denominator, scale);
    if ((uniform + 1n) << GUARD <= low) return true;
    if (uniform << GUARD >= high) return false;
    uniform = (uniform << 64n) | new DataView(source.uniformBits(8).buffer).getBigUint64(0, true);
    bits += 64n;
  }
}

/**
 * Tight lower and upper bounds of 2^scale exp(-x): exp(-x) = exp(-x / 2^k)^(2^k) with x / 2^k below 1, by Taylor
 * series.
 */
function exponential(numerator: bigint, denominator: bigint, scale: bigint): readonly [bigint, bigint] {
  let halvings = 0n;
  while (numerator >> halvings >= denominator) halvings++;
  // Each squaring doubles the error, so extra digits are computed: for these, for the series, and for x below 1.
  const inner = scale + halvings + 32n;
  const one = 1n << inner;
  const x = (numerator << inner) / (denominator << halvings);
  let [term, sum] = [one, one];
  for (let k = 1n; term > 0n; k++) {
    term = (term * x) / (k << inner);
    sum += k % 2n === 1n ? -term : term;
  }
  for (let squared = 0n; squared < halvings; squared++) sum = (sum * sum) >> inner;
  const cut = inner - scale;
  const value = sum >> cut;
  return [value - 2n, value + 3n];
}

/** Epsilons are rounded down to multiples of 2^-20, so that every probability is rational. */
const STEPS = 2 ** 20;
const BOUND_LIMIT = 2 ** 40;
const DENOMINATOR_LIMIT = 2 ** 30;

/** A fraction in lowest terms. */
export interface Fraction {
  readonly numerator: number;
  readonly denominator: number;
}

/**
 * The largest multiple of 2^-20 that is at most epsilon: what the samplers use, never more than claimed. Throws
 * RangeError unless epsilon is at least 2^-20 and below 2^30.
 */
export function rational(epsilon: number): Fraction {
  if (!(epsilon >= 1 / STEPS && epsilon < 2 ** 30))
    throw new RangeError(`epsilon must be finite and at least 2^-20; got ${epsilon}`);
  let [numerator, denominator] = [Math.floor(epsilon * STEPS), STEPS];
  while (numerator % 2 === 0 && denominator > 1) [numerator, denominator] = [numerator / 2, denominator / 2];
  return { numerator, denominator };
}

/**
 * n independent draws, uniform in 0 .. bound - 1. Uses 64-bit words; those beyond a multiple of bound are drawn again,
 * all at once. Throws RangeError unless bound is 1 to 2^40.
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

/** Independent coins; coin i is true with probability exactly exp(-numerators[i] / denominator). Throws RangeError. */
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

/**
 * Algorithm 1 for 0 <= gamma <= 1: counts coins of probability gamma / k for k = 1, 2, ... until one fails; true if k
 * is odd.
 */
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
 * Returns a code for each of `truths` (0 .. size - 1): itself, e^eps times as likely as any other code.
 *
 * By rejection: a uniform code is kept if it is the true one, else with probability e^-eps, else drawn again; coins are
 * drawn for all, so that no branch depends on the true code. eps-local differential privacy of one code, eps =
 * rational(epsilon), exactly. Makes no statement about how often, or when, this is called.
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
