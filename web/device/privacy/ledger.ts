// The ledger: what each channel may cost a day and in all, spent before anything leaves, or refused.
import { epsilonOf } from "../wire/concentrated";
import { RHO_ALONE } from "./prices";

export const CHANNELS = ["reports", "training", "counts"] as const;
export type Channel = (typeof CHANNELS)[number];
/** Relative slack of the ceiling, so that three charges of 50.00000000000001 fit into 150. */
const ROUNDING = 1e-9;
const DAY_MS = 86_400_000;

/** The reader's limits, by the names that the settings have on both devices; null: no ceiling. */
export interface Ceilings {
  readonly epsilon_per_day_reports: number;
  readonly epsilon_per_day_training: number;
  readonly epsilon_per_day_counts: number;
  readonly epsilon_lifetime_reports: number | null;
  readonly epsilon_lifetime_training: number | null;
  readonly epsilon_lifetime_counts: number | null;
  readonly epsilon_per_day_alone: number;
  readonly epsilon_lifetime_alone: number | null;
  readonly delta_per_sum: number;
}

/** What a release of data costs, before it's in the ledger; epsilon and delta are of one whole release. */
export interface Charge {
  readonly channel: string;
  readonly mechanism: string;
  readonly parameters: Readonly<Record<string, number>>;
  readonly epsilon: number;
  readonly delta: number;
  readonly payloadSha256: string;
  readonly subject: string;
}

/** Where charges are kept, in the order they were made; `since` in milliseconds, from there on. */
export interface ChargeStore {
  /** Everything `work` does, or nothing; on the disk when it returns. */
  transaction<T>(work: () => T): T;
  append(at: number, charge: Charge): void;
  /** Sum of epsilon of a channel's charges. */
  spent(channel: Channel, since: number): number;
  /** Sum of what noisy sums come to with one share of noise each. */
  rhoAlone(since: number): number;
}

/** Spending `wanted` would pass the budget of the day, or of the device's life. */
export class BudgetSpent extends Error {
  constructor(
    readonly channel: string,
    readonly wanted: number,
    readonly left: number,
    readonly lifetime: boolean,
  ) {
    super(
      `the privacy budget for ${channel} has ${left} left ${lifetime ? "in all" : "today"}; this would cost ${wanted}`,
    );
  }
}

/**
 * One account of all that leaves; three channels, each with ceilings of pure epsilon: a UTC day, and a lifetime.
 *
 * The charges of a channel on one UTC day, and over the device's life, never exceed its ceilings (by more than one part
 * in 10^9); noisy sums together never cost more than the ceilings of sums in which no other device is real. Charges add
 * up (basic composition). What is charged is the mechanism's word.
 */
export class Ledger {
  constructor(
    private readonly store: ChargeStore,
    private readonly ceilings: Ceilings,
    private readonly clock: () => number,
  ) {}

  /** Write the charge down, or throw BudgetSpent and write nothing. Throws RangeError for a charge that can't be. */
  spend(charge: Charge): void {
    const channel = channelOf(charge.channel);
    for (const [name, value] of [
      ["epsilon", charge.epsilon],
      ["delta", charge.delta],
    ] as const)
      if (!(Number.isFinite(value) && value >= 0))
        throw new RangeError(`${name} of a charge must be finite and not negative; got ${value}`);
    this.store.transaction(() => {
      this.checkChannel(channel, charge.epsilon);
      const rho = charge.parameters[RHO_ALONE];
      if (rho !== undefined) this.checkAlone(rho);
      this.store.append(this.clock(), charge);
    });
  }

  /** Pure epsilon charged since midnight UTC; a charge dated later than now (a clock set back) counts too. */
  spentToday(channel: string): number {
    return this.store.spent(channelOf(channel), this.midnight());
  }

  /** Pure epsilon charged over the life of the device. */
  total(channel: string): number {
    return this.store.spent(channelOf(channel), -Infinity);
  }

  /** Pure epsilon that may still be charged today, under both ceilings; never below 0. */
  left(channel: string): number {
    const today = perDay(this.ceilings, channel) - this.spentToday(channel);
    const whole = lifetime(this.ceilings, channel);
    return Math.max(0, whole === null ? today : Math.min(today, whole - this.total(channel)));
  }

  private checkChannel(channel: Channel, epsilon: number): void {
    const [day, whole] = [perDay(this.ceilings, channel), lifetime(this.ceilings, channel)];
    const spent = this.spentToday(channel);
    if (spent + epsilon > day * (1 + ROUNDING))
      throw new BudgetSpent(channel, epsilon, Math.max(0, day - spent), false);
    if (whole === null) return;
    const total = this.total(channel);
    if (total + epsilon > whole * (1 + ROUNDING))
      throw new BudgetSpent(channel, epsilon, Math.max(0, whole - total), true);
  }

  /** One more sum of that rho, at `delta_per_sum`, once for all sums. */
  private checkAlone(rho: number): void {
    const delta = this.ceilings.delta_per_sum;
    for (const [since, ceiling, whole] of [
      [this.midnight(), this.ceilings.epsilon_per_day_alone, false],
      [-Infinity, this.ceilings.epsilon_lifetime_alone, true],
    ] as const) {
      if (ceiling === null) continue;
      const before = this.store.rhoAlone(since);
      const [spent, after] = [epsilonOf(before, delta), epsilonOf(before + rho, delta)];
      if (after > ceiling * (1 + ROUNDING))
        throw new BudgetSpent(
          "sums in which no other device is real",
          after - spent,
          Math.max(0, ceiling - spent),
          whole,
        );
    }
  }

  private midnight(): number {
    return Math.floor(this.clock() / DAY_MS) * DAY_MS;
  }
}

function channelOf(channel: string): Channel {
  const known = CHANNELS.find((each) => each === channel);
  if (!known) throw new RangeError(`channel ${channel}: the ledger has ${CHANNELS.join(", ")}`);
  return known;
}

/** What a channel may cost in one UTC day. Throws RangeError for an unknown one. */
export function perDay(ceilings: Ceilings, channel: string): number {
  return ceilings[`epsilon_per_day_${channelOf(channel)}`];
}

/**
 * What a channel may cost over the device's life, null for as much as it likes. Throws RangeError for an unknown one.
 */
export function lifetime(ceilings: Ceilings, channel: string): number | null {
  return ceilings[`epsilon_lifetime_${channelOf(channel)}`];
}
