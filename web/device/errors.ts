// The device's errors. Names are those of device_app/errors.py; each message is one plain sentence.
import { brief } from "./protocol/formatting";
import type { Problem } from "./protocol/ids";

/** Base of all errors of the device. */
export class DeviceError extends Error {}

/** The backend did not answer. */
export class BackendUnreachable extends DeviceError {
  constructor(url: string, why: string) {
    super(`The server at ${url} does not answer (${why}).`);
  }
}

/** The backend answered with a problem. retryAfterSec: how many seconds it asks to wait, if it says so. */
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
    super(`The server's answer to ${what} is malformed: ${why}`);
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

/** The offer of a round failed verification; none of its contents were used. */
export class OfferRefused extends DeviceError {
  constructor(why: string) {
    super(`The offer of a round was refused: ${why}.`);
  }
}

/** A graph doesn't fit its weights or inputs; the message names the tensor. */
export class GraphMismatch extends DeviceError {
  constructor(why: string) {
    super(`A model of the release can't be used: ${why}.`);
  }
}

/** There is no verified release on this device yet. */
export class NoRelease extends DeviceError {
  constructor() {
    super("This device has no release yet. It needs to reach the server once.");
  }
}

/** The reader erased everything during this work; its results are neither kept nor shown. */
export class ErasedMeanwhile extends DeviceError {
  constructor() {
    super("Everything on this device has just been erased.");
  }
}

/** Spending `wanted` would exceed the day's budget or the device's lifetime budget. */
export class BudgetSpent extends DeviceError {
  constructor(
    readonly channel: string,
    readonly wanted: number,
    readonly left: number,
    readonly lifetime = false,
    message = `The privacy budget for ${channel} has ${brief(left)} left ${lifetime ? "in all" : "today"}; ` +
      `this would cost ${brief(wanted)}.`,
  ) {
    super(message);
  }
}

/** The server has published more new codebooks today than the reader's settings allow reports for. */
export class CodebooksSpent extends BudgetSpent {
  constructor(most: number) {
    const message =
      `The server has changed its interest groups too often: reports were drawn for ${most} versions of them ` +
      "today, the most that codebooks_per_day allows.";
    super("reports", 0, 0, false, message);
  }
}

/** The reader hasn't yet said whether they used Ownfeed in this browser before, so what was spent is unknown. */
export class FirstUseOpen extends BudgetSpent {
  constructor(channel: string, wanted: number) {
    const message =
      "Nothing about you is shared until you say in Settings whether you have used Ownfeed in this browser before.";
    super(channel, wanted, 0, false, message);
  }
}

/** A round's protection is weaker than the reader's settings allow. */
export class ProtectionTooWeak extends DeviceError {
  constructor(why: string) {
    super(`The round's protection is weaker than the settings require: ${why}`);
  }
}

/**
 * Why a device doesn't join a round: switched off or paused; budget spent; another release, or a task that this version
 * doesn't know; round over; no place; protection weaker than the reader accepts; no answer; any other reason.
 */
export type Hindrance =
  "off" | "spent" | "old" | "late" | "full" | "protection" | "unreachable" | "unfit";

/** This device can't take part in training now. */
export class NotEligible extends DeviceError {
  constructor(
    why: string,
    readonly hindrance: Hindrance = "unfit",
  ) {
    super(`This device is not taking part: ${why}`);
  }
}

/** This device leaves a secure sum; what it has sent so far can't be unmasked. */
export class SumAborted extends DeviceError {
  constructor(round: string, why: string) {
    super(`This device left the secure sum of ${round}: ${why}.`);
  }
}

/** Another process of this profile, or an earlier one, has continued this round; this one sends nothing. */
export class RoundTakenOver extends DeviceError {
  constructor(round: string) {
    super(`Another process of this profile has taken over ${round}, so this one sends nothing for it.`);
  }
}

/** No article with that id is on this device. */
export class NewsNotHere extends DeviceError {
  constructor(newsId: string) {
    super(
      `Story '${newsId}' is not on this device. Stories are removed after a while unless you opened, liked or saved them.`,
    );
  }
}

/** The device's database can't be opened or used, or was written by a newer version. */
export class StoreBroken extends DeviceError {
  constructor(why: string) {
    super(`What Ownfeed stores in this browser can't be used: ${why}.`);
  }
}

/** Another device's export can't be imported; nothing was written. */
export class ExportRefused extends DeviceError {
  constructor(why: string) {
    super(`Nothing was imported: ${why}.`);
  }
}

/** Returns the work's result; an empty list before the first release. */
export async function onceReleased<T>(work: () => Promise<T[]>): Promise<T[]> {
  try {
    return await work();
  } catch (trouble) {
    if (trouble instanceof NoRelease) return [];
    throw trouble;
  }
}
