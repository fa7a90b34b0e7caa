// A device's share of discrete Gaussian noise, drawn exactly and added before masking (docs/decisions/006).
//
// Sampler: Canonne, Kamath and Steinke 2020; sums of such shares: Kairouz, Liu and Steinke 2021. The same uniform bits
// give the same draws as on the Python device.
import { type FixedPoint, RingError, type RingVector, addTo, centred, put, ringVector } from "../protocol/ring";
import { atMostExp, type NoiseSource, words } from "./exact_samplers";

/** Maximum sigma in steps: keeps every intermediate number of the sampler exact, or known to 2^-40. */
export const SIGMA_LIMIT = 2 ** 24;
/** Exceeds the relative error of exp(-x) in doubles for the exponents that occur. */
const FLOAT_SLACK = 2 ** -40;

/**
 * A vector of ring elements with centred L2 norm of at most `boundSteps`, checked on construction. Throws RingError.
 */
export class BoundedCode {
  constructor(
    readonly codes: RingVector,
    readonly boundSteps: number,
  ) {
    if (!(Number.isFinite(boundSteps) && boundSteps > 0))
      throw new RingError(`bound_steps: positive and finite, got ${boundSteps}`);
    if (normAbove(centred(codes)) > boundSteps) throw new RingError(`codes: an L2 norm above ${boundSteps} steps`);
  }
}

/**
 * Scales a vector into the L2 ball of `norm` and encodes it so that rounding can't leave the ball: a code that rounding
 * pushes out is rounded toward zero instead. Throws RingError for NaN or infinity.
 */
export function clipAndEncode(values: Float64Array, norm: number, fixed: FixedPoint): BoundedCode {
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  const factor = length > 0 ? Math.min(1, norm / length) : 1;
  const scaled = values.map((value) => value * factor);
  let codes = fixed.encode(scaled);
  const bound = norm / fixed.step;
  if (normAbove(centred(codes)) > bound) {
    // Slightly inside the ball, so that floating-point rounding can't leave it.
    const inside = (1 - 1e-9) / fixed.step;
    codes = ringVector(scaled.length, fixed.bits);
    scaled.forEach((value, place) =>
      put(codes, place, Math.trunc(Math.min(Math.max(value, -fixed.bound), fixed.bound) * inside)),
    );
  }
  return new BoundedCode(codes, bound);
}

/**
 * Returns the code plus this device's noise share, in the ring; mask it before sending.
 *
 * shareSigma: sigma of one share, in steps. The opened sum over n survivors is protected like a Gaussian mechanism of
 * standard deviation sqrt(n) sigma and sensitivity boundSteps, with a correction for sums of discrete Gaussians
 * (`rhoOfSum`).
 */
export function addNoiseShare(code: BoundedCode, shareSigma: number, source: NoiseSource, bits: number): RingVector {
  const noise = ringVector(code.codes.length, bits);
  discreteGaussian(shareSigma, noise.length, source).forEach((value, place) => put(noise, place, value));
  addTo(noise, code.codes);
  return noise;
}

/**
 * Independent draws of the discrete Gaussian: P(x) proportional to exp(-x^2 / (2 sigma^2)) on the integers.
 *
 * Algorithm 3 of the paper: a discrete Laplace variable of scale t = sigma + 1 is accepted with probability exp(-(|y| -
 * sigma^2/t)^2 / (2 sigma^2)). Exact: every coin compares an infinite uniform number with an exponential. Its first 64
 * bits are compared with a double; if they are within the double's error, as many further digits of both are computed
 * as needed. Throws RangeError unless sigma is an integer from 1 to 2^24.
 */
export function discreteGaussian(sigma: number, size: number, source: NoiseSource): Float64Array<ArrayBuffer> {
  if (!(Number.isInteger(sigma) && sigma >= 1 && sigma <= SIGMA_LIMIT))
    throw new RangeError(`sigma: a whole number from 1 to ${SIGMA_LIMIT}, got ${sigma}`);
  const scale = sigma + 1;
  const drawn = new Float64Array(size);
  let found = 0;
  while (found < size) {
    const tries = discreteLaplace(scale, Math.trunc(1.5 * (size - found)) + 32, source);
    // Exceeds 2^53: |y| is below 700 scale.
    const [wide, squared] = [BigInt(scale), BigInt(sigma) ** 2n];
    const distances = tries.map((value) => BigInt(Math.abs(value)) * wide - squared);
    const kept = coins(
      distances.map((distance) => (Number(distance) / scale) ** 2 / (2 * sigma * sigma)),
      (place) => [(distances[place] ?? 0n) ** 2n, 2n * BigInt(sigma) ** 2n * BigInt(scale) ** 2n],
      source,
    );
    for (let place = 0; place < tries.length && found < size; place++)
      if (kept[place]) drawn[found++] = tries[place] ?? 0;
  }
  return drawn;
}

/**
 * |x| = u + scale v with u uniform below scale, kept with probability exp(-u/scale), and v geometric with ratio 1/e.
 */
function discreteLaplace(scale: number, size: number, source: NoiseSource): number[] {
  const offered = below(scale, 2 * size, source);
  const kept = coins(
    offered.map((low) => low / scale),
    (place) => [BigInt(offered[place] ?? 0), BigInt(scale)],
    source,
  );
  const lows = offered.filter((_, place) => kept[place]);
  const highs = geometric(lows.length, source);
  const signs = source.uniformBits(lows.length);
  const draws: number[] = [];
  lows.forEach((low, place) => {
    const negative = ((signs[place] ?? 0) & 1) === 1;
    const magnitude = low + scale * (highs[place] ?? 0);
    // Minus zero would count zero twice: it is rejected, as in the paper.
    if (!negative) draws.push(magnitude);
    else if (magnitude !== 0) draws.push(-magnitude);
  });
  return draws;
}

/** The number of consecutive heads of coins with probability 1/e. */
function geometric(size: number, source: NoiseSource): number[] {
  const counts = new Array<number>(size).fill(0);
  let going = counts.map((_, place) => place);
  while (going.length) {
    const heads = coins(new Array<number>(going.length).fill(1), () => [1n, 1n], source);
    going = going.filter((_, place) => heads[place]);
    for (const place of going) counts[place] = (counts[place] ?? 0) + 1;
  }
  return counts;
}

/** Exactly uniform integers from 0 to limit - 1: 62 bits of each word, rejecting those beyond a multiple of limit. */
function below(limit: number, size: number, source: NoiseSource): number[] {
  const wide = BigInt(limit);
  const edge = (2n ** 62n / wide) * wide;
  const drawn: number[] = [];
  while (drawn.length < size)
    for (const word of words(source, size - drawn.length))
      if (word >> 2n < edge) drawn.push(Number((word >> 2n) % wide));
  return drawn;
}

/**
 * Coins that show heads with probability exactly exp(-x). `exponents` are doubles near x; `exactly` gives x as a
 * fraction, used where 64 bits don't decide.
 */
function coins(
  exponents: readonly number[],
  exactly: (place: number) => readonly [bigint, bigint],
  source: NoiseSource,
): boolean[] {
  const drawn = words(source, exponents.length);
  const halves = new Uint32Array(drawn.buffer); // combining two halves rounds once, like converting a whole word
  return exponents.map((exponent, place) => {
    const uniform = ((halves[2 * place + 1] ?? 0) * 2 ** 32 + (halves[2 * place] ?? 0)) * 2 ** -64;
    const chance = Math.exp(-exponent);
    const slack = FLOAT_SLACK * Math.max(chance, uniform) + 2 ** -63;
    if (Math.abs(uniform - chance) > slack) return uniform < chance;
    return atMostExp(drawn[place] ?? 0n, exactly(place), source);
  });
}

/** An upper bound of the L2 norm, equal to it or slightly larger. */
function normAbove(values: Float64Array): number {
  return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0)) * (1 + 1e-10);
}
