// What a noisy sum costs this device, figured by the device itself: in honest company, and if nobody else is real.
import { epsilonOf, rhoOfSum } from "../wire/concentrated";
import { type SecureSum, reachSteps } from "../wire/protections";

/** Names in a charge's parameters. */
export const RHO = "rho";
export const RHO_ALONE = "rho_alone";
/** Steps by which rounding or cutting one coordinate can set two neighbouring vectors further apart, and a little. */
const ROUNDED = 1.5;

/** What one click, with its display, exchanged for another does to an update: it moves by `distance` in L2. */
export interface OneClick {
  readonly distance: number;
  /** At most so many are other than 0 before or after. */
  readonly coordinates: number;
}

/** The prices of one opened sum at this device's delta. */
export interface SumPrices {
  readonly delta: number;
  /** As concentrated differential privacy, which adds up over sums: in honest company, and alone. */
  readonly rho: number;
  readonly rhoAlone: number;
  /** If the other members are real, with the noise of as few survivors as the round allows. */
  readonly epsilon: number;
  /** If every other member is the server's own, so that this device's share is all the noise there is. */
  readonly alone: number;
  readonly oneClick: number;
  readonly oneClickAlone: number;
}

/** The same of the vector in fixed point: scaling into a ball brings nothing further apart, rounding may. */
export function clickSteps(click: OneClick, step: number): number {
  return click.distance / step + ROUNDED * Math.sqrt(click.coordinates);
}

/**
 * Price a sum with noise in it; `protection.delta`, which the server chose, is not read.
 *
 * survivors: the fewest with whom it may be opened. coordinates: numbers of a device's vector. delta: the device's own.
 * oneClickSteps: how far one click exchanged for another moves the vector at most; null: as far as everything does.
 * Throws RangeError for a sum without noise.
 */
export function sumPrices(
  protection: SecureSum,
  survivors: number,
  coordinates: number,
  delta: number,
  oneClickSteps: number | null = null,
): SumPrices {
  if (!protection.sigma) throw new RangeError("sigma: a sum without noise has no price");
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

/** Whether the figures bound anything: noise that costs nothing, or no finite number, is none. */
export function possible(prices: SumPrices): boolean {
  return [prices.epsilon, prices.alone].every((one) => Number.isFinite(one) && one > 0);
}

/** What the ledger keeps besides epsilon and delta. */
export function parametersOf(prices: SumPrices): Readonly<Record<string, number>> {
  return {
    [RHO]: prices.rho,
    [RHO_ALONE]: prices.rhoAlone,
    epsilon_alone: prices.alone,
    epsilon_one_click: prices.oneClick,
    epsilon_one_click_alone: prices.oneClickAlone,
  };
}
