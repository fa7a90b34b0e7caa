// The ledger: each channel's daily and lifetime budget, charged before anything leaves, or refused.
import { BudgetSpent, FirstUseOpen } from "../../errors";
import { RHO_ALONE, SumsAlone } from "./cost_of_sums";
import type { Charge } from "../sealed";
import { CHANNELS, type Ceilings, type Channel } from "./limits";

/** Relative tolerance of the ceiling, so that three charges of 50.00000000000001 fit into 150. */
export const ROUNDING = 1e-9;
const DAY_MS = 86_400_000;

/** Stores charges in the order they were made. since: milliseconds since 1970, inclusive. */
export interface ChargeStore {
  /** Runs `work` in a transaction, which is on disk when this returns. */
  transaction<T>(work: () => T): T;
  append(at: number, charge: Charge): void;
  /** Sum of epsilon over a channel's charges. */
  spent(channel: Channel, since: number): number;
  /** Sum of rho of the noisy sums, with one noise share each. */
  rhoAlone(since: number): number;
  /** The charge that paid for exactly these bytes, or undefined. */
  charged(payloadSha256: string): Charge | undefined;
}

/**
 * The account of everything that leaves: three channels, each with daily (UTC) and lifetime ceilings in pure epsilon.
 *
 * The charges of a channel on one UTC day, and over the device's life, never exceed its ceilings (by more than one part
 * in 10^9); noisy sums together never cost more than the ceilings of sums in which no other device is real. Charges add
 * up (basic composition). The ledger trusts each mechanism's stated cost. While `open` returns true, the spending
 * before this ledger is unknown: every charge is refused, and no budget is left in any channel.
 */
export class Ledger {
  private ended = false;

  /**
   * allowed: returns the ceilings in effect, which the reader may change at any time. clock: milliseconds since 1970.
   * open: whether an earlier ledger of this reader may have been lost (store/first_use.ts).
   */
  constructor(
    readonly store: ChargeStore,
    private readonly allowed: () => Ceilings,
    private readonly clock: () => number,
    private readonly open: () => boolean = () => false,
  ) {}

  /** Whether all charges are refused until the reader has answered whether there was earlier use. */
  get isOpen(): boolean {
    return this.ended || this.open();
  }

  /** Refuses every charge from now on, because another ledger continues this one. */
  end(): void {
    this.ended = true;
  }

  get ceilings(): Ceilings {
    return this.allowed();
  }

  /**
   * Records the charge and returns its time, or throws BudgetSpent and records nothing. Throws RangeError for an
   * invalid charge.
   */
  spend(charge: Charge): number {
    const channel = channelOf(charge.channel);
    for (const [name, value] of [
      ["epsilon", charge.epsilon],
      ["delta", charge.delta],
    ] as const)
      if (!(Number.isFinite(value) && value >= 0))
        throw new RangeError(`${name} of a charge must be finite and not negative; got ${value}`);
    return this.store.transaction(() => {
      if (this.isOpen) throw new FirstUseOpen(channel, charge.epsilon);
      this.checkChannel(channel, charge.epsilon);
      const rho = charge.parameters[RHO_ALONE];
      if (rho !== undefined) this.alone().check(rho, this.ceilings);
      const at = this.clock();
      this.store.append(at, charge);
      return at;
    });
  }

  now(): number {
    return this.clock();
  }

  /** The cost of the noisy sums of all channels if every other member was fake: today, and in total. */
  alone(): SumsAlone {
    return new SumsAlone(this.store.rhoAlone(this.midnight()), this.store.rhoAlone(-Infinity));
  }

  /** Pure epsilon charged since midnight UTC; a charge dated in the future (a clock set back) counts too. */
  spentToday(channel: string): number {
    return this.store.spent(channelOf(channel), this.midnight());
  }

  /** Pure epsilon charged over the device's life. */
  total(channel: string): number {
    return this.store.spent(channelOf(channel), -Infinity);
  }

  /** Returns the pure epsilon that may still be charged today, under both ceilings; never below 0. */
  left(channel: string): number {
    if (this.isOpen) return 0;
    const [day, whole] = this.ceilingsOf(channelOf(channel));
    const today = day - this.spentToday(channel);
    return Math.max(0, whole === null ? today : Math.min(today, whole - this.total(channel)));
  }

  private checkChannel(channel: Channel, epsilon: number): void {
    const [day, whole] = this.ceilingsOf(channel);
    const spent = this.spentToday(channel);
    if (spent + epsilon > day * (1 + ROUNDING))
      throw new BudgetSpent(channel, epsilon, Math.max(0, day - spent), false);
    if (whole === null) return;
    const total = this.total(channel);
    if (total + epsilon > whole * (1 + ROUNDING))
      throw new BudgetSpent(channel, epsilon, Math.max(0, whole - total), true);
  }

  private ceilingsOf(channel: Channel): readonly [number, number | null] {
    const { day, life } = this.ceilings;
    return [day[channel], life[channel]];
  }

  /** The start of the current UTC day, to which the daily ceiling applies. */
  midnight(): number {
    return Math.floor(this.clock() / DAY_MS) * DAY_MS;
  }
}

function channelOf(channel: string): Channel {
  const known = CHANNELS.find((each) => each === channel);
  if (!known) throw new RangeError(`channel ${channel}: the ledger has ${CHANNELS.join(", ")}`);
  return known;
}
