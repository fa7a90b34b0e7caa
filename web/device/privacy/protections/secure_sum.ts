// A device's part of a secure sum: its update is scaled into a ball, weighted, encoded in fixed point, perhaps with
// noise; which sums it accepts, and their worst-case cost.
import { ProtectionTooWeak } from "../../errors";
import { brief } from "../../protocol/formatting";
import { WireError } from "../../protocol/forms";
import { RingError, byCodePoint, put, ringVector, type RingVector, type UpdateLayout } from "../../protocol/ring";
import { type SecureSum, layoutOf, termsOf } from "../../protocol/protections";
import type { RoundManifest } from "../../protocol/rounds";
import { type SumTerms, fixedPointOf, sumTerms } from "../../protocol/secagg";
import { addNoiseShare, clipAndEncode } from "../noise_share";
import type { NoiseSource } from "../exact_samplers";
import { clickSteps, parametersOf, possible, sumPrices, type OneClick, type SumPrices, type SumsAlone } from "../accounting/cost_of_sums";
import { type UpdateTensors, SharedUpdate, elements } from "../private_parameters";
import type { Contribution } from "../secagg/transitions";
import { ceilingsOf } from "../accounting/limits";
import type { PrivacySettings } from "../settings";
import { type ComputedUpdate, type DeviceProtection, ROUNDING } from "./protection";

export const NAME = "secure_sum";
/** Tolerance for the L2 norm of float32 values scaled to a radius. */
const SLACK = 1e-6;

/**
 * The device's side of `secure_sum`.
 *
 * With sigma > 0 the opened sum is (epsilon, delta)-differentially private for replacing all of this reader's data,
 * with the noise of `cohort_minimum` survivors none of whom reveals its share to the server. Even if no other device is
 * real, the vector is never revealed with less than this device's own share of noise, whose cost is in the charge too.
 * Both costs are at the reader's own delta: the delta that the server proposes isn't used. Without noise no epsilon
 * bounds what the sum reveals, and the charge is 0.
 */
export class SecureSumProtection implements DeviceProtection {
  constructor(private readonly protection: SecureSum) {}

  check(privacy: PrivacySettings): void {
    if (privacy.secure_sum === "never") throw new ProtectionTooWeak("the settings allow no secure sums.");
    if (privacy.secure_sum === "noisy" && !this.protection.sigma)
      throw new ProtectionTooWeak("the sum has no noise, and the settings allow only sums with noise.");
  }

  /**
   * 0 for an exact sum, which no epsilon bounds. The sum's terms must be those that follow from the protection, from
   * which the cost is computed.
   */
  price(
    manifest: RoundManifest,
    coordinates: number,
    privacy: PrivacySettings,
    alone: SumsAlone,
    oneClick: OneClick | null,
  ): number {
    const prices = this.allowed(manifest, coordinates, privacy, oneClick);
    if (prices === null) return 0;
    alone.check(prices.rhoAlone, ceilingsOf(privacy));
    return prices.epsilon;
  }

  /**
   * Checks only the reader's limits for one sum, which may have changed since it was paid for; the ceilings for all
   * sums were checked then. How far one click moves the vector isn't checked again, since that ceiling was checked at
   * payment.
   */
  checkAgain(manifest: RoundManifest, privacy: PrivacySettings): void {
    this.check(privacy);
    const coordinates = [...manifest.shapes.values()].reduce((all, shape) => all + elements(shape), 0);
    this.allowed(manifest, coordinates, privacy, null);
  }

  /**
   * Under a protection whose cost assumes no negative values, such values count as 0: the server chooses the task of an
   * offer, and the reader's values must not decide whether anything is sent.
   */
  contribute(update: ComputedUpdate, manifest: RoundManifest, noise: NoiseSource, delta: number): Contribution {
    const { protection } = this;
    const terms = given(manifest);
    const shared = protection.nonnegative ? withoutNegative(update.shared) : update.shared;
    const clipped = clipNorm(shared, protection.clip);
    const { weight_limit: limit } = protection;
    const weight = limit === 1 ? 1 : Math.min(update.samples, limit);
    const layout = layoutOf(protection, shapesOf(clipped.tensors), terms);
    const plain = layout.encode(clipped.tensors, weight);
    const flat = layout.flat(clipped.tensors);
    const parameters = {
      clip: protection.clip,
      sigma: protection.sigma,
      survivors_at_least: terms.cohort_minimum,
      weight,
      rounded_to_zero: layout.fixed.roundedToZero(flat, plain.subarray(0, -1)),
    };
    const { channel, oneClick, paid } = update;
    const charge = { channel, mechanism: NAME, parameters, epsilon: 0, delta: 0, payloadSha256: "" };
    const subject = terms.round;
    if (!protection.sigma) return { vector: plain, charge: { ...charge, subject }, paid };
    const prices = this.priced(terms, layout.coordinates, delta, oneClick);
    if (!possible(prices))
      throw new RangeError(
        `sigma: noise of ${protection.sigma} costs epsilon ${brief(prices.epsilon)}, or ${brief(prices.alone)} if all other devices are fake`,
      );
    const costing = { parameters: { ...parameters, ...parametersOf(prices) }, epsilon: prices.epsilon, delta };
    return { vector: this.noisy(layout, flat, terms, noise), charge: { ...charge, ...costing, subject }, paid };
  }

  /** The layout's vector at weight 1, with a noise share on every coordinate. The final 1 is public. */
  private noisy(
    layout: UpdateLayout,
    flat: Float64Array<ArrayBuffer>,
    terms: SumTerms,
    noise: NoiseSource,
  ): RingVector {
    const code = clipAndEncode(flat, this.protection.clip, fixedPointOf(terms));
    const noisy = addNoiseShare(code, this.protection.sigma, noise, terms.bits);
    const vector = ringVector(layout.length, terms.bits);
    (vector.set as (codes: RingVector) => void).call(vector, noisy);
    put(vector, layout.coordinates, 1);
    return vector;
  }

  private priced(terms: SumTerms, coordinates: number, delta: number, oneClick: OneClick | null): SumPrices {
    const steps = oneClick === null ? null : clickSteps(oneClick, fixedPointOf(terms).step);
    return sumPrices(this.protection, terms.cohort_minimum, coordinates, delta, steps);
  }

  /** The cost of a sum within the reader's limits, null for an exact one. Throws ProtectionTooWeak. */
  private allowed(
    manifest: RoundManifest,
    coordinates: number,
    privacy: PrivacySettings,
    oneClick: OneClick | null,
  ): SumPrices | null {
    this.checkTerms(manifest, coordinates, privacy);
    if (!this.protection.sigma) return null;
    const delta = privacy.delta_per_sum;
    const prices = this.priced(given(manifest), coordinates, delta, oneClick);
    if (!possible(prices))
      throw new ProtectionTooWeak(
        `the noise in its sum costs epsilon ${brief(prices.epsilon)} at delta ${brief(delta)}, or ` +
          `${brief(prices.alone)} if no other device is real; a sum with noise costs more than 0 and less than infinity.`,
      );
    for (const [what, price, ceiling] of ceilings(prices, privacy, oneClick))
      if (price > ceiling * (1 + ROUNDING))
        throw new ProtectionTooWeak(
          `${what} costs epsilon ${brief(price, 3)} at delta ${brief(delta)}; at most ${brief(ceiling)} is allowed.`,
        );
    return prices;
  }

  private checkTerms(manifest: RoundManifest, coordinates: number, privacy: PrivacySettings): void {
    const terms = given(manifest);
    if (terms.cohort_minimum < privacy.smallest_sum)
      throw new ProtectionTooWeak(
        `the sum may be opened with ${terms.cohort_minimum} devices in it; the settings require at least ${privacy.smallest_sum}.`,
      );
    const noisy = this.protection.sigma > 0;
    if (terms.mode !== "active" && !(noisy && privacy.secure_sum_mode === "semi_honest")) {
      const asks = noisy ? "the settings require one" : "without noise it needs one";
      throw new ProtectionTooWeak(`the sum has no consistency round, and ${asks}.`);
    }
    let due: SumTerms;
    try {
      const { cohort, cohort_minimum: cohortMinimum } = terms;
      due = termsOf(this.protection, manifest.round, { cohort, cohortMinimum, coordinates });
      layoutOf(this.protection, manifest.shapes, due);
    } catch (impossible) {
      if (impossible instanceof WireError || impossible instanceof RingError || impossible instanceof RangeError)
        throw new ProtectionTooWeak(`${impossible.message}.`);
      throw impossible;
    }
    if (sumTerms.write(terms) !== sumTerms.write(due))
      throw new ProtectionTooWeak("the terms of its sum don't match its protection.");
  }
}

/**
 * Returns the label, cost and allowed maximum of each of a sum's costs. Without a proven bound for one click, the click
 * may have as much effect as all data, so the ceiling for all data applies.
 */
function ceilings(
  prices: SumPrices,
  privacy: PrivacySettings,
  oneClick: OneClick | null,
): readonly (readonly [string, number, number])[] {
  const click = oneClick === null ? privacy.epsilon_per_sum_alone : privacy.epsilon_per_click_alone;
  return [
    ["the opened sum", prices.epsilon, privacy.epsilon_per_sum],
    ["if no other device is real, the opened sum", prices.alone, privacy.epsilon_per_sum_alone],
    ["if no other device is real, one click in the opened sum", prices.oneClickAlone, click],
  ];
}

/** Returns the terms of a round's sum. Throws RangeError for a round without one, which the manifest's own check
 * excludes. */
function given(manifest: RoundManifest): SumTerms {
  if (manifest.terms === null) throw new RangeError(`terms: ${manifest.round} is a secure sum without any`);
  return manifest.terms;
}

/**
 * Scales an update down to `norm` if it is longer: replacing all of a reader's data then moves it by at most 2 norm in
 * L2. Throws RangeError for NaN or infinity: nothing is released.
 */
export function clipNorm(update: SharedUpdate, norm: number): SharedUpdate {
  const length = lengthOf(update.tensors);
  if (!Number.isFinite(length)) throw new RangeError("update: has values that are not finite: nothing is released");
  if (length <= norm) return update;
  // norm of doubles that were rounded to float32 once
  const scaled = changed(update, (value) => value * (norm / length));
  if (!(lengthOf(scaled.tensors) <= norm * (1 + SLACK))) throw new RangeError(`update: its L2 norm is above ${norm}`);
  return scaled;
}

function withoutNegative(update: SharedUpdate): SharedUpdate {
  return changed(update, (value) => Math.max(value, 0));
}

function changed(update: SharedUpdate, change: (value: number) => number): SharedUpdate {
  const tensors = [...update.tensors].map(
    ([name, { shape, values }]) => [name, { shape, values: values.map(change) }] as const,
  );
  return new SharedUpdate(new Map(tensors), update.model);
}

function lengthOf(tensors: UpdateTensors): number {
  let squares = 0;
  for (const name of [...tensors.keys()].sort(byCodePoint))
    for (const value of tensors.get(name)?.values ?? []) squares += value * value;
  return Math.sqrt(squares);
}

function shapesOf(tensors: UpdateTensors): ReadonlyMap<string, readonly number[]> {
  return new Map([...tensors].map(([name, { shape }]) => [name, shape]));
}
