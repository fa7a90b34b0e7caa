// The cost of a noisy secure sum, computed the same way by the device that pays and the server that keeps the account.
//
// Concentrated differential privacy (Bun and Steinke 2016): rho adds up over rounds, and gives an epsilon for any
// delta. The formulas are the Python device's; the two runtimes' logarithms and exponentials may differ in the last
// bits.

export const HALVINGS = 80;
const GRID = 4_001;

/**
 * rho of one opened sum, for adding or removing one device (Kairouz, Liu and Steinke 2021, theorem 1).
 *
 * boundSteps: D, the norm bound of a device's vector, in steps. shareSigma: s, of one device's noise share, in steps.
 * contributors: n, honest survivors, whose shares nobody else knows. coordinates: d. Throws RangeError unless all are
 * positive.
 */
export function rhoOfSum(boundSteps: number, shareSigma: number, contributors: number, coordinates: number): number {
  if (!(boundSteps > 0 && shareSigma >= 1 && contributors >= 1 && coordinates >= 1))
    throw new RangeError(
      `bound_steps ${boundSteps}, share_sigma ${shareSigma}, contributors ${contributors}, coordinates ${coordinates}: must be positive`,
    );
  let lacking = 0;
  for (let k = 1; k < contributors; k++) lacking += Math.exp((-2 * Math.PI ** 2 * shareSigma ** 2 * k) / (k + 1));
  const tau = 10 * lacking;
  const ratio = boundSteps / (Math.sqrt(contributors) * shareSigma);
  const epsilon = Math.min(Math.sqrt(ratio ** 2 + (tau * coordinates) / 2), ratio + tau * Math.sqrt(coordinates));
  return epsilon ** 2 / 2;
}

/**
 * The least epsilon that rho gives for this delta (Canonne, Kamath and Steinke 2020, corollary 13, over alpha).
 * Infinite if rho is infinite or NaN. Throws RangeError unless delta is between 0 and 1.
 */
export function epsilonOf(rho: number, delta: number): number {
  if (!(delta > 0 && delta < 1)) throw new RangeError(`delta: between 0 and 1, got ${delta}`);
  if (!Number.isFinite(rho)) return Infinity;
  if (rho <= 0) return 0;
  const middle = Math.sqrt(Math.log(1 / delta) / rho);
  let least = Infinity;
  for (let place = 0; place < GRID; place++) {
    const over = middle * 10 ** (-1 + (2 * place) / (GRID - 1));
    const log = Math.log1p(over);
    least = Math.min(least, (1 + over) * rho + Math.log(over) - log - (Math.log(delta) + log) / over);
  }
  return Math.max(0, least);
}

/** The greatest rho whose epsilon at delta is at most this, by bisection on `epsilonOf`; 0 for 0. */
export function rhoWithin(epsilon: number, delta: number): number {
  if (!(Number.isFinite(epsilon) && epsilon >= 0)) throw new RangeError(`epsilon: a number from 0, got ${epsilon}`);
  let [low, high] = [0, epsilon];
  while (epsilonOf(high, delta) <= epsilon && high > 0) high *= 2;
  for (let step = 0; step < HALVINGS; step++) {
    const middle = (low + high) / 2;
    if (epsilonOf(middle, delta) <= epsilon) low = middle;
    else high = middle;
  }
  return low;
}
