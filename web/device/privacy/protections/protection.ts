// What a device does with an update that is to be protected in one way: what every protection offers.
import type { RoundManifest } from "../../wire/rounds";
import type { NoiseSource } from "../noise_sources";
import type { OneClick } from "../prices";
import type { SharedUpdate } from "../private_parameters";
import type { Contribution } from "../secagg/transitions";
import type { PrivacySettings } from "../settings";
import type { SumsAlone } from "../worst_case_sums";

/** 0.01 / 0.1 is a little less than 0.1 in floating point. */
export const ROUNDING = 1e-9;

/**
 * What a task has computed, in clear and without private parameters, and what its price depends on.
 *
 * shared: neither clipped nor noisy yet. samples: how many went in. channel: of the ledger, which pays. oneClick: how
 * far one click exchanged for another moves the tensors; null: as far as exchanging everything. paid: called in the
 * transaction that pays.
 */
export interface ComputedUpdate {
  readonly shared: SharedUpdate;
  readonly samples: number;
  readonly channel: string;
  readonly oneClick: OneClick | null;
  readonly paid: () => void;
}

/** The device's side of a protection, made from its value on the wire (`registry`). */
export interface DeviceProtection {
  /** Throws ProtectionTooWeak for a protection below what the reader accepts. */
  check(privacy: PrivacySettings): void;
  /**
   * The epsilon that an update of so many numbers would cost. alone: what noisy sums have cost if nobody else in them
   * was real. Throws ProtectionTooWeak or BudgetSpent for terms that the reader doesn't accept.
   */
  price(
    manifest: RoundManifest,
    coordinates: number,
    privacy: PrivacySettings,
    alone: SumsAlone,
    oneClick: OneClick | null,
  ): number;
  /**
   * What the reader asks of one update, of one that is paid for and has messages left to send. Throws
   * ProtectionTooWeak.
   */
  checkAgain(manifest: RoundManifest, privacy: PrivacySettings): void;
  /** The vector to be masked and the charge at delta. Throws RangeError where there is no secure sum. */
  contribute(update: ComputedUpdate, manifest: RoundManifest, noise: NoiseSource, delta: number): Contribution;
}
