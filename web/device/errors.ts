// What can go wrong on the device; the names are those of device_app/errors.py, the message is one plain sentence.
import { brief } from "./figures";
import type { Problem } from "./wire/problem";

/** Base of all errors of the device. */
export class DeviceError extends Error {}

/** The backend did not answer. */
export class BackendUnreachable extends DeviceError {
  constructor(url: string, why: string) {
    super(`The backend at ${url} does not answer (${why}).`);
  }
}

/** The backend answered with a problem; retryAfterSec: how long it asks to be left alone, where it says so. */
export class BackendRefused extends DeviceError {
  constructor(
    readonly problem: Problem,
    readonly retryAfterSec: number | null = null,
  ) {
    super(`${problem.title}: ${problem.detail}`);
  }
}

/** The backend's answer breaks the wire contract. */
export class AnswerMalformed extends DeviceError {
  constructor(what: string, why: string) {
    super(`The backend's answer to ${what} is malformed: ${why}`);
  }
}

/** A release failed verification; the current one stays in place. */
export class ReleaseRefused extends DeviceError {
  constructor(release: string, why: string) {
    super(`Release ${release} was refused: ${why}`);
  }
}

/** The server's releases don't follow from those that this device has used. */
export class ReleaseForked extends ReleaseRefused {}

/** The offer of a round failed verification; nothing in it was looked at. */
export class OfferRefused extends DeviceError {
  constructor(why: string) {
    super(`The offer of a round was refused: ${why}.`);
  }
}

/** A graph and the weights or inputs given to it do not fit; the message names the tensor. */
export class GraphMismatch extends DeviceError {
  constructor(why: string) {
    super(`A model of the release can't be used: ${why}.`);
  }
}

/** No verified release is on this device yet. */
export class NoRelease extends DeviceError {
  constructor() {
    super("This device has no release yet: it needs to reach the backend once.");
  }
}

/** The reader has erased everything while this was done: what was found of before is not kept, and not shown. */
export class ErasedMeanwhile extends DeviceError {
  constructor() {
    super("Everything on this device was erased meanwhile.");
  }
}

/** Spending `wanted` would pass the budget of the day, or of the device's life. */
export class BudgetSpent extends DeviceError {
  constructor(
    readonly channel: string,
    readonly wanted: number,
    readonly left: number,
    readonly lifetime = false,
    said = `The privacy budget for ${channel} has ${brief(left)} left ${lifetime ? "in all" : "today"}; ` +
      `this would cost ${brief(wanted)}.`,
  ) {
    super(said);
  }
}

/** The server has brought as many new codebooks today as the reader's settings let reports be drawn by. */
export class CodebooksSpent extends BudgetSpent {
  constructor(most: number) {
    const said =
      `The server has changed what reports are made with; a report was drawn under ${most} of them today, which ` +
      "is the most that codebooks_per_day allows.";
    super("reports", 0, 0, false, said);
  }
}

/** A round's protection is weaker than the reader's settings allow. */
export class ProtectionTooWeak extends DeviceError {
  constructor(why: string) {
    super(`The round's protection is weaker than this reader accepts: ${why}`);
  }
}

/**
 * What keeps a device out of a round: switched off or paused; its reader reads; the budget is spent; another release,
 * or a task that its version doesn't know; too little read; the round was over; no place; a protection weaker than its
 * reader accepts; no answer; anything else about device or offer.
 */
export type Hindrance =
  "off" | "busy" | "spent" | "old" | "few" | "late" | "full" | "protection" | "unreachable" | "unfit";

/** This device can't take part in training now. */
export class NotEligible extends DeviceError {
  constructor(
    why: string,
    readonly hindrance: Hindrance = "unfit",
  ) {
    super(`This device does not train now: ${why}`);
  }
}

/** This device leaves a secure sum; what it has revealed so far opens nothing. */
export class SumAborted extends DeviceError {
  constructor(round: string, why: string) {
    super(`This device left the secure sum of ${round}: ${why}.`);
  }
}

/** Another process of this profile, or an earlier one, has gone on with this round; this one sends nothing. */
export class RoundTakenOver extends DeviceError {
  constructor(round: string) {
    super(`Another process of this profile has gone on with ${round}; this one sends nothing for it.`);
  }
}

/** No news of that id is on this device. */
export class NewsNotHere extends DeviceError {
  constructor(newsId: string) {
    super(
      `No story '${newsId}' is on this device. Stories go after a while unless you opened, liked or saved them.`,
    );
  }
}

/** The device's database can't be opened or used, or was written by a newer version. */
export class StoreBroken extends DeviceError {
  constructor(why: string) {
    super(`What this device keeps in this browser can't be used: ${why}.`);
  }
}

/** What another device has exported can't be taken over; nothing was written. */
export class ExportRefused extends DeviceError {
  constructor(why: string) {
    super(`Nothing was taken over: ${why}.`);
  }
}

/** Nothing before the first release. */
export async function onceReleased<T>(work: () => Promise<T[]>): Promise<T[]> {
  try {
    return await work();
  } catch (trouble) {
    if (trouble instanceof NoRelease) return [];
    throw trouble;
  }
}
