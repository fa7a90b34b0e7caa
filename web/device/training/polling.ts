// When a device polls for rounds: the schedule of the Python device's background loop, drawn the same way.
import type { Outcome } from "./participant";

/** A pause is the configured one times a uniform draw from this range, which keeps the mean. */
const SPREAD = [0.5, 1.5] as const;
/** When the backend asks for a delay, the device waits that long times a uniform draw from this range. */
const AGAIN_SPREAD = [1, 2] as const;

/** What polling needs. */
export interface Polling {
  /** Whether the reader allows this device to take part in anything. */
  readonly wanted: () => boolean;
  /** null if it failed. */
  readonly step: () => Promise<Outcome | null>;
  /** Mean seconds between polls. */
  readonly everySec: number;
  /** Uniform in [0, 1); cryptographic on a device. */
  readonly chance: () => number;
  /** Waits; returns false if the device stopped first. */
  readonly wait: (seconds: number) => Promise<boolean>;
}

/**
 * Steps until the device stops. Each step comes at a newly drawn time, so that neither rhythm nor order links them to
 * one device; the first one a drawn time after the start.
 */
export async function pollForRounds(polling: Polling): Promise<void> {
  const { everySec, chance, wait, wanted, step } = polling;
  let goesOn = await wait(everySec * chance());
  while (goesOn) {
    let outcome: Outcome | null = null;
    try {
      if (wanted()) outcome = await step();
    } catch (fault) {
      console.error("training failed; the polls go on:", fault);
    }
    goesOn = await wait(untilNextStep(polling, outcome));
  }
}

/**
 * Draws the seconds to the next step: around the usual pause, or the one for a waiting part in a round, and at least
 * what the backend asks for. Independent of what the reader does. A backend can only lengthen a pause, for all devices
 * the same way: if answers could bring the next request forward, it could ask repeatedly and time each answer. The
 * requested delay is randomised, too: an exact pause would mark the device it was given to.
 */
function untilNextStep({ everySec, chance }: Polling, outcome: Outcome | null): number {
  const usual = (outcome?.againSec ?? everySec) * drawn(SPREAD, chance);
  return Math.max(usual, (outcome?.notBeforeSec ?? 0) * drawn(AGAIN_SPREAD, chance));
}

function drawn([low, high]: readonly [number, number], chance: () => number): number {
  return low + (high - low) * chance();
}
