// When a device looks for rounds: the times of the Python device's background, drawn alike.
import type { Outcome } from "./participant";

/** A pause is so many times what the settings say, drawn uniformly: the mean stays. */
const SPREAD = [0.5, 1.5] as const;
/** A backend that asks to be left alone for a time is left alone so many times as long. */
const AGAIN_SPREAD = [1, 2] as const;

/** What polls are made with. */
export interface Polling {
  /** Whether the reader lets this device take part in anything. */
  readonly wanted: () => boolean;
  /** null where it failed. */
  readonly step: () => Promise<Outcome | null>;
  /** Seconds between polls, on average. */
  readonly everySec: number;
  /** Uniform in [0, 1); cryptographic on a device. */
  readonly chance: () => number;
  /** Ends early when the device stops; false then. */
  readonly wait: (seconds: number) => Promise<boolean>;
}

/**
 * Polls until the device stops. They come at times drawn for each anew, so that neither their rhythm nor their order
 * shows that they are one device's; the first a drawn while after the start.
 */
export async function pollForRounds(polling: Polling): Promise<void> {
  const { everySec, chance, wait } = polling;
  let goesOn = await wait(everySec * chance());
  while (goesOn) {
    try {
      await train(polling);
    } catch (fault) {
      console.error("training failed; the polls go on:", fault);
    }
    goesOn = await wait(everySec * drawn(SPREAD, chance));
  }
}

/**
 * A step, and more of them while a secure sum waits for its next stage, or when the backend asks to come back. Of what
 * the backend says, the pause is drawn anew: an exact one would be a mark, by which it knew the device again that it gave
 * it to. A sum's stages are asked for under one pseudonym anyway.
 */
async function train({ wanted, step, chance, wait }: Polling): Promise<void> {
  while (wanted()) {
    const outcome = await step();
    if (outcome?.againSec == null) return;
    const { againSec, state } = outcome;
    const pauseSec = state === "waiting" ? againSec : againSec * drawn(AGAIN_SPREAD, chance);
    if (!(await wait(pauseSec))) return;
  }
}

function drawn([low, high]: readonly [number, number], chance: () => number): number {
  return low + (high - low) * chance();
}
