// Computes what a noisy secure sum costs this device: if the other devices are real, and if they are all fake. In the
// second case this device's own share of the noise is the only protection; those costs are also added up over all sums.
import { BudgetSpent } from "../../errors";
import { epsilonOf, rhoOfSum } from "../../protocol/concentrated";
import { reachSteps, type SecureSum } from "../../protocol/protections";
import type { Ceilings } from "./limits";

/** Parameters of a charge. */
export const RHO = "rho";
export const RHO_ALONE = "rho_alone";
/**
 * The most by which rounding or clipping one coordinate can move two neighbouring vectors apart, in steps, plus a
 * margin.
 */
const ROUNDED = 1.5;

/** The effect on an update of replacing one click, with its display, by another: it moves by `distance` in L2. */
export interface OneClick {
  readonly distance: number;
  /** Maximum number of coordinates that are nonzero before or after. */
  readonly coordinates: number;
}

/** The cost of one opened sum at this device's delta. */
export interface SumPrices {
  readonly delta: number;
  /** rho, which adds up over sums: if the other devices are real, and if all are fake. */
  readonly rho: number;
  readonly rhoAlone: number;
  /** Epsilon if the other members are real, with the noise of the fewest survivors that the round allows. */
  readonly epsilon: number;
  /** Epsilon if the server runs every other member, so that this device's share is the only noise. */
  readonly alone: number;
  readonly oneClick: number;
  readonly oneClickAlone: number;
}

/**
 * The distance in steps of the fixed-point vector: scaling into a ball doesn't increase distances, but rounding may.
 */
export function clickSteps(click: OneClick, step: number): number {
  return click.distance / step + ROUNDED * Math.sqrt(click.coordinates);
}

/**
 * Returns the cost of a noisy sum; `protection.delta`, which the server chose, isn't used.
 *
 * survivors: the fewest with whom it may be opened. coordinates: length of a device's vector. delta: the device's own.
 * oneClickSteps: the largest change of the vector when one click is replaced; null: the same as when everything is
 * replaced. Throws RangeError for a sum without noise.
 */
export function sumPrices(
  protection: SecureSum,
  survivors: number,
  coordinates: number,
  delta: number,
  oneClickSteps: number | null = null,
): SumPrices {
  if (!protection.sigma) throw new RangeError("sigma: a sum without noise has no finite cost");
  const reach = reachSteps(protection);
  const near = oneClickSteps === null ? reach : Math.min(oneClickSteps, reach);
  const price = (steps: number, contributors: number): number =>
    rhoOfSum(steps, protection.sigma, contributors, coordinates);
  const [rho, rhoAlone] = [price(reach, survivors), price(reach, 1)];
  return {
    delta,
    rho,
    rhoAlone,
    epsilon: epsilonOf(rho, delta),
    alone: epsilonOf(rhoAlone, delta),
    oneClick: epsilonOf(price(near, survivors), delta),
    oneClickAlone: epsilonOf(price(near, 1), delta),
  };
}

/** Whether the figures are usable bounds: a zero or infinite cost isn't. */
export function possible(prices: SumPrices): boolean {
  return [prices.epsilon, prices.alone].every((one) => Number.isFinite(one) && one > 0);
}

/** What the ledger stores besides epsilon and delta. */
export function parametersOf(prices: SumPrices): Readonly<Record<string, number>> {
  return {
    [RHO]: prices.rho,
    [RHO_ALONE]: prices.rhoAlone,
    epsilon_alone: prices.alone,
    epsilon_one_click: prices.oneClick,
    epsilon_one_click_alone: prices.oneClickAlone,
  };
}

export const CHANNEL = "sums in which no other device is real";
const ROUNDING = 1e-9;

/** rho with one noise share each, summed over all channels: for this UTC day, and for the device's life. */
export class SumsAlone {
  constructor(
    readonly rhoToday = 0,
    readonly rhoInAll = 0,
  ) {}

  /** Epsilon of today's sums together, at delta. */
  today(delta: number): number {
    return epsilonOf(this.rhoToday, delta);
  }

  /** Epsilon of all sums together, at delta. */
  inAll(delta: number): number {
    return epsilonOf(this.rhoInAll, delta);
  }

  /**
   * Throws BudgetSpent if one more sum of this rho would exceed a ceiling, at a delta counted once for all sums.
   */
  check(rho: number, { aloneDay, aloneLife, delta }: Ceilings): void {
    for (const [before, ceiling, lifetime] of [
      [this.rhoToday, aloneDay, false],
      [this.rhoInAll, aloneLife, true],
    ] as const) {
      if (ceiling === null) continue;
      const [spent, after] = [epsilonOf(before, delta), epsilonOf(before + rho, delta)];
      if (after > ceiling * (1 + ROUNDING))
        throw new BudgetSpent(CHANNEL, after - spent, Math.max(0, ceiling - spent), lifetime);
    }
  }
}
