// When a device polls the backend, also for rounds: the schedule of the Python device's background loops, drawn the same
// way. Times depend only on the settings, random draws and the server's answers; never on what the reader does.
import type { Outcome } from "./training/participant";

/** A pause is the configured one times a uniform draw from this range, which keeps the mean. */
const SPREAD = [0.5, 1.5] as const;
/** When the backend asks for a delay, the device waits that long, times a uniform draw from this range. */
const AGAIN_SPREAD = [1, 2] as const;
/** The first request for candidates comes this many usual pauses after the first poll. */
const FIRST_RECALL = [0.02, 0.2] as const;
/** Seconds for which requests wait at the start, so that the page of an earlier visit is drawn first. */
const START_SEC = 2;
const SYNCED_CHECK_SEC = 1;

/** The random source and timer that the schedule uses. */
export interface Times {
  /** Uniform in [0, 1); cryptographic on a device. */
  readonly chance: () => number;
  /** Waits this many seconds; returns false if the device stopped first. */
  readonly wait: (seconds: number) => Promise<boolean>;
}

/** Requests that the device makes at drawn times; none of them throws. */
export interface Asking {
  /** Whether a list from an earlier visit is stored here. */
  readonly hasList: () => boolean;
  /** The first poll for changes. */
  readonly first: () => Promise<void>;
  readonly poll: () => Promise<void>;
  /** Mean number of seconds between polls. */
  readonly pollSec: () => number;
  /** Whether a poll has succeeded. */
  readonly synced: () => boolean;
  /** Requests candidates; returns how many seconds the backend asks to wait, or null. */
  readonly recall: () => Promise<number | null>;
  readonly recallSec: number;
}

/** Polls for changes until the device stops. `begun` resolves after the first poll. */
export function polls({ hasList, first, poll, pollSec }: Asking, { chance, wait }: Times): { readonly begun: Promise<void> } {
  const begin = async (): Promise<void> => {
    if (hasList()) await wait(START_SEC * drawn(SPREAD, chance)); // a drawn time, whichever page is being made
    await first();
  };
  const begun = begin();
  const goOn = async (): Promise<void> => {
    await begun;
    while (await wait(pollSec() * drawn(SPREAD, chance))) await poll();
  };
  void goOn();
  return { begun };
}

/**
 * Requests candidates until the device stops. A pause is never shorter than usual, and longer if the backend asks for
 * it.
 */
export async function recalls({ synced, recall, recallSec }: Asking, { chance, wait }: Times): Promise<void> {
  while (!synced()) if (!(await wait(SYNCED_CHECK_SEC))) return;
  let goesOn = await wait(recallSec * drawn(FIRST_RECALL, chance));
  while (goesOn) {
    const againSec = (await recall()) ?? 0;
    goesOn = await wait(Math.max(recallSec * drawn(SPREAD, chance), againSec * drawn(AGAIN_SPREAD, chance)));
  }
}

function drawn([low, high]: readonly [number, number], chance: () => number): number {
  return low + (high - low) * chance();
}

/** What polling for rounds needs. */
export interface Polling extends Times {
  /** Whether the reader allows this device to take part in anything. */
  readonly wanted: () => boolean;
  /** null if it failed. */
  readonly step: () => Promise<Outcome | null>;
  /** Mean seconds between polls. */
  readonly everySec: number;
}

/**
 * Steps until the device stops. Each step comes at a newly drawn time, so that neither their rhythm nor their order
 * links them to one device; the first one comes a random time after the start.
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
 * Draws the seconds until the next step: around the usual pause, or the pause of a participation that waits, and at
 * least what the server asks for. Independent of what the reader does. A server can only lengthen a pause, equally for
 * all devices: if answers could bring the next request forward, it could keep polling and time each answer. The
 * requested delay is randomised too: an exact pause would mark the device it was given to.
 */
function untilNextStep({ everySec, chance }: Polling, outcome: Outcome | null): number {
  const usual = (outcome?.againSec ?? everySec) * drawn(SPREAD, chance);
  return Math.max(usual, (outcome?.notBeforeSec ?? 0) * drawn(AGAIN_SPREAD, chance));
}
