// A device's part of a secure sum: its update scaled into a ball, weighed, in fixed point, perhaps with noise; what it
// accepts of one, and what it costs at worst.
import { ProtectionTooWeak } from "../../errors";
import { brief } from "../../figures";
import { WireError } from "../../wire/forms";
import { type UpdateLayout, byCodePoint } from "../../wire/layout";
import { type SecureSum, layoutOf, termsOf } from "../../wire/protections";
import { RingError, type RingVector, put, ringVector } from "../../wire/ring";
import type { RoundManifest } from "../../wire/rounds";
import { type SumTerms, fixedPointOf, sumTerms } from "../../wire/secagg";
import { addNoiseShare, clipAndEncode } from "../discrete_noise";
import type { NoiseSource } from "../noise_sources";
import { type OneClick, type SumPrices, clickSteps, parametersOf, possible, sumPrices } from "../prices";
import { type UpdateTensors, SharedUpdate, elements } from "../private_parameters";
import type { Contribution } from "../secagg/transitions";
import type { PrivacySettings } from "../settings";
import type { SumsAlone } from "../worst_case_sums";
import { type ComputedUpdate, type DeviceProtection, ROUNDING } from "./protection";

export const NAME = "secure_sum";
/** Of the L2 norm of float32 values that were scaled to a radius. */
const SLACK = 1e-6;

/**
 * The device's side of `secure_sum`.
 *
 * With sigma > 0 the opened sum is (epsilon, delta)-differentially private for exchanging all of this reader's data,
 * with the noise of `cohort_minimum` survivors none of whom tells the server its share. Whoever else is real, the
 * vector is never told with less than this device's own share of noise, whose price is in the charge too. Both prices
 * are at the reader's own delta: the delta that the server proposes isn't read. Without noise no epsilon bounds what
 * the sum tells, and the charge is 0.
 */
export class SecureSumProtection implements DeviceProtection {
  constructor(private readonly protection: SecureSum) {}

  check(privacy: PrivacySettings): void {
    if (privacy.secure_sum === "never") throw new ProtectionTooWeak("its reader takes part in no secure sums.");
    if (privacy.secure_sum === "noisy" && !this.protection.sigma)
      throw new ProtectionTooWeak("the sum has no noise in it, and its reader takes part in noisy ones only.");
  }

  /**
   * 0 for an exact sum, which no epsilon bounds. The sum's terms must be those that follow from the protection, which is
   * what the price is figured from.
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
    alone.check(prices.rhoAlone, privacy);
    return prices.epsilon;
  }

  /**
   * What a reader asks of one sum may have changed since it was paid for, while what all sums may cost together has been
   * spent. The task isn't asked how far one click moves its vector: that ceiling is held to when it is paid for.
   */
  checkAgain(manifest: RoundManifest, privacy: PrivacySettings): void {
    this.check(privacy);
    const coordinates = [...manifest.shapes.values()].reduce((all, shape) => all + elements(shape), 0);
    this.allowed(manifest, coordinates, privacy, null);
  }

  /**
   * Under a protection that is priced for no value below 0, such values count as 0: which task an offer combines it with
   * is the server's choice, and a reader's values may not decide whether anything is sent.
   */
  contribute(update: ComputedUpdate, manifest: RoundManifest, noise: NoiseSource, delta: number): Contribution {
    const { protection } = this;
    const terms = given(manifest);
    const shared = protection.nonnegative ? withoutNegative(update.shared) : update.shared;
    const clipped = clipNorm(shared, protection.clip);
    const weight = Math.min(update.samples, protection.weight_limit);
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
        `sigma: noise of ${protection.sigma} comes to epsilon ${brief(prices.epsilon)}, alone ${brief(prices.alone)}`,
      );
    const costing = { parameters: { ...parameters, ...parametersOf(prices) }, epsilon: prices.epsilon, delta };
    return { vector: this.noisy(layout, flat, terms, noise), charge: { ...charge, ...costing, subject }, paid };
  }

  /** The layout's vector at weight 1, with a noise share on every coordinate. The 1 at the end is public. */
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

  /** The prices of a sum that the reader's settings allow, null for an exact one. Throws ProtectionTooWeak. */
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
        `the noise in its sum comes to epsilon ${brief(prices.epsilon)} at delta ${brief(delta)}, and to ` +
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
        `the sum may be opened with ${terms.cohort_minimum} devices in it; at least ${privacy.smallest_sum} are asked for.`,
      );
    const asked = privacy.secure_sum_mode;
    if (terms.mode !== "active" && (asked === "active" || (asked === "by_cohort" && terms.graph === "complete")))
      throw new ProtectionTooWeak("the sum has no consistency round, and its reader asks for one.");
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
      throw new ProtectionTooWeak("the terms of its sum do not follow from its protection.");
  }
}

/**
 * What is priced, in words, its price, and the most that the reader allows for it. A click of which nothing is proved
 * may weigh as much as all, and is held to the ceiling of all.
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

/** The terms of a round's sum. Throws RangeError for a round without; a manifest's own check lets none through. */
function given(manifest: RoundManifest): SumTerms {
  if (manifest.terms === null) throw new RangeError(`terms: ${manifest.round} is a secure sum without any`);
  return manifest.terms;
}

/**
 * Scale an update down to `norm` if it's longer: exchanging all of a reader's data then moves it by at most 2 norm in
 * L2. Throws RangeError for NaN or infinity: nothing is released.
 */
export function clipNorm(update: SharedUpdate, norm: number): SharedUpdate {
  const length = lengthOf(update.tensors);
  if (!Number.isFinite(length)) throw new RangeError("update: has values that are not finite: nothing is released");
  if (length <= norm) return update;
  const scaled = changed(update, (value) => value * (norm / length)); // in doubles, and then rounded once
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
