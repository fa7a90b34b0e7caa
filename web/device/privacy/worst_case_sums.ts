// What all noisy sums together have cost if no other device in them was real: each with one share of noise.
import { BudgetSpent } from "../errors";
import { epsilonOf } from "../wire/concentrated";
import type { PrivacySettings } from "./settings";

export const CHANNEL = "sums in which no other device is real";
const ROUNDING = 1e-9;

/** rho with one share each, which adds up over sums of any channel: of this UTC day, and of the device's life. */
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

  /** Throws BudgetSpent if one more sum of that rho would pass a ceiling; at `delta_per_sum`, once for all sums. */
  check(rho: number, privacy: PrivacySettings): void {
    const delta = privacy.delta_per_sum;
    for (const [before, ceiling, lifetime] of [
      [this.rhoToday, privacy.epsilon_per_day_alone, false],
      [this.rhoInAll, privacy.epsilon_lifetime_alone, true],
    ] as const) {
      if (ceiling === null) continue;
      const [spent, after] = [epsilonOf(before, delta), epsilonOf(before + rho, delta)];
      if (after > ceiling * (1 + ROUNDING))
        throw new BudgetSpent(CHANNEL, after - spent, Math.max(0, ceiling - spent), lifetime);
    }
  }
}
