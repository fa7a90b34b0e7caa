// The interface of a protection: how a device checks, prices and protects an update.
import type { RoundManifest } from "../../protocol/rounds";
import type { NoiseSource } from "../exact_samplers";
import type { OneClick, SumsAlone } from "../accounting/cost_of_sums";
import type { SharedUpdate } from "../private_parameters";
import type { Contribution } from "../secagg/transitions";
import type { PrivacySettings } from "../settings";

/** Allowed relative error: in floating point, 0.01 / 0.1 is slightly less than 0.1. */
export const ROUNDING = 1e-9;

/**
 * A task's result, in the clear and without private parameters, and what its cost depends on.
 *
 * shared: neither clipped nor noised yet. samples: the number used. channel: the ledger's channel that pays. oneClick:
 * how far replacing one click by another moves the tensors; null: as far as replacing everything. paid: called in the
 * transaction that pays.
 */
export interface ComputedUpdate {
  readonly shared: SharedUpdate;
  readonly samples: number;
  readonly channel: string;
  readonly oneClick: OneClick | null;
  readonly paid: () => void;
}

/** The device's side of a protection, made from its wire value (`registry`). */
export interface DeviceProtection {
  /** Throws ProtectionTooWeak for a protection below what the reader accepts. */
  check(privacy: PrivacySettings): void;
  /**
   * The epsilon that an update of this many coordinates would cost. alone: what noisy sums have cost if every other
   * member was fake. Throws ProtectionTooWeak or BudgetSpent for terms that the reader doesn't accept.
   */
  price(
    manifest: RoundManifest,
    coordinates: number,
    privacy: PrivacySettings,
    alone: SumsAlone,
    oneClick: OneClick | null,
  ): number;
  /**
   * Checks again an update that is paid for and has messages left to send, against the reader's limits for one update.
   * Throws ProtectionTooWeak.
   */
  checkAgain(manifest: RoundManifest, privacy: PrivacySettings): void;
  /** The vector to be masked, and the charge at delta. Throws RangeError if there is no secure sum. */
  contribute(update: ComputedUpdate, manifest: RoundManifest, noise: NoiseSource, delta: number): Contribution;
}
