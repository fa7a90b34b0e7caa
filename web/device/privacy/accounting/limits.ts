// The ledger's ceilings, as the reader's settings set them.
import type { PrivacySettings } from "../settings";

export const CHANNELS = ["reports", "training", "counts"] as const;
export type Channel = (typeof CHANNELS)[number];

/**
 * What may be charged, in epsilon: by channel, and for noisy sums if every other device is fake (at delta). A lifetime
 * ceiling of null means no limit.
 */
export interface Ceilings {
  readonly day: Readonly<Record<Channel, number>>;
  readonly life: Readonly<Record<Channel, number | null>>;
  readonly aloneDay: number;
  readonly aloneLife: number | null;
  readonly delta: number;
}

/** The ceilings that the reader set. */
export function ceilingsOf(own: PrivacySettings): Ceilings {
  return {
    day: {
      reports: own.epsilon_per_day_reports,
      training: own.epsilon_per_day_training,
      counts: own.epsilon_per_day_counts,
    },
    life: {
      reports: own.epsilon_lifetime_reports,
      training: own.epsilon_lifetime_training,
      counts: own.epsilon_lifetime_counts,
    },
    aloneDay: own.epsilon_per_day_alone,
    aloneLife: own.epsilon_lifetime_alone,
    delta: own.delta_per_sum,
  };
}
