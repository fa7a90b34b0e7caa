// The ledger: what each channel may cost a day and in all, spent before anything leaves, or refused.
import { BudgetSpent } from "../errors";
import { RHO_ALONE } from "./prices";
import type { Charge } from "./sealed";
import type { PrivacySettings } from "./settings";
import { SumsAlone } from "./worst_case_sums";

export const CHANNELS = ["reports", "training", "counts"] as const;
export type Channel = (typeof CHANNELS)[number];
/** Relative slack of the ceiling, so that three charges of 50.00000000000001 fit into 150. */
export const ROUNDING = 1e-9;
const DAY_MS = 86_400_000;

/** Where charges are kept, in the order they were made; `since` in milliseconds, from there on. */
export interface ChargeStore {
  /** Everything `work` does, or nothing; on the disk when it returns. */
  transaction<T>(work: () => T): T;
  append(at: number, charge: Charge): void;
  /** Sum of epsilon of a channel's charges. */
  spent(channel: Channel, since: number): number;
  /** Sum of what noisy sums come to with one share of noise each. */
  rhoAlone(since: number): number;
  /** The charge that paid for exactly these bytes, or undefined. */
  charged(payloadSha256: string): Charge | undefined;
}

/**
 * One account of all that leaves; three channels, each with ceilings of pure epsilon: a UTC day, and a lifetime.
 *
 * The charges of a channel on one UTC day, and over the device's life, never exceed its ceilings (by more than one part
 * in 10^9); noisy sums together never cost more than the ceilings of sums in which no other device is real. Charges add
 * up (basic composition). What is charged is the mechanism's word.
 */
export class Ledger {
  private readonly listeners: ((channel: string) => void)[] = [];

  /** settings: what holds now, asked anew each time. clock: milliseconds since 1970. */
  constructor(
    readonly store: ChargeStore,
    private readonly chosen: () => PrivacySettings,
    private readonly clock: () => number,
  ) {}

  get settings(): PrivacySettings {
    return this.chosen();
  }

  /** Have the channel of each refused charge told from now on. */
  listen(listener: (channel: string) => void): void {
    this.listeners.push(listener);
  }

  /**
   * Write the charge down, or throw BudgetSpent and write nothing. Throws RangeError for a charge that can't be. Returns
   * when it was charged.
   */
  spend(charge: Charge): number {
    try {
      return this.charged(charge);
    } catch (refused) {
      if (refused instanceof BudgetSpent) for (const listener of this.listeners) listener(charge.channel);
      throw refused;
    }
  }

  private charged(charge: Charge): number {
    const channel = channelOf(charge.channel);
    for (const [name, value] of [
      ["epsilon", charge.epsilon],
      ["delta", charge.delta],
    ] as const)
      if (!(Number.isFinite(value) && value >= 0))
        throw new RangeError(`${name} of a charge must be finite and not negative; got ${value}`);
    return this.store.transaction(() => {
      this.checkChannel(channel, charge.epsilon);
      const rho = charge.parameters[RHO_ALONE];
      if (rho !== undefined) this.alone().check(rho, this.settings);
      const at = this.clock();
      this.store.append(at, charge);
      return at;
    });
  }

  /** The ledger's clock. */
  now(): number {
    return this.clock();
  }

  /** What noisy sums of all channels have cost together if nobody else in them was real: today, and in all. */
  alone(): SumsAlone {
    return new SumsAlone(this.store.rhoAlone(this.midnight()), this.store.rhoAlone(-Infinity));
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
    const today = perDay(this.settings, channel) - this.spentToday(channel);
    const whole = lifetime(this.settings, channel);
    return Math.max(0, whole === null ? today : Math.min(today, whole - this.total(channel)));
  }

  private checkChannel(channel: Channel, epsilon: number): void {
    const [day, whole] = [perDay(this.settings, channel), lifetime(this.settings, channel)];
    const spent = this.spentToday(channel);
    if (spent + epsilon > day * (1 + ROUNDING))
      throw new BudgetSpent(channel, epsilon, Math.max(0, day - spent), false);
    if (whole === null) return;
    const total = this.total(channel);
    if (total + epsilon > whole * (1 + ROUNDING))
      throw new BudgetSpent(channel, epsilon, Math.max(0, whole - total), true);
  }

  /** When today began, in UTC: the day whose ceiling counts. */
  midnight(): number {
    return Math.floor(this.clock() / DAY_MS) * DAY_MS;
  }
}

function channelOf(channel: string): Channel {
  const known = CHANNELS.find((each) => each === channel);
  if (!known) throw new RangeError(`channel ${channel}: the ledger has ${CHANNELS.join(", ")}`);
  return known;
}

/** What a channel may cost in one UTC day. Throws RangeError for an unknown one. */
export function perDay(ceilings: PrivacySettings, channel: string): number {
  return ceilings[`epsilon_per_day_${channelOf(channel)}`];
}

/**
 * What a channel may cost over the device's life, null for as much as it likes. Throws RangeError for an unknown one.
 */
export function lifetime(ceilings: PrivacySettings, channel: string): number | null {
  return ceilings[`epsilon_lifetime_${channelOf(channel)}`];
}
