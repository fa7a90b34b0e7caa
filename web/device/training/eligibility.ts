// Whether this device may train now and accepts a round's terms: the server proposes, the device disposes.
import { BudgetSpent, NotEligible } from "../errors";
import type { OneClick } from "../privacy/prices";
import { type Shapes, elements } from "../privacy/private_parameters";
import { ROUNDING } from "../privacy/protections/protection";
import { resolve } from "../privacy/protections/registry";
import type { PrivacySettings } from "../privacy/settings";
import type { SumsAlone } from "../privacy/worst_case_sums";
import type { RoundManifest } from "../wire/rounds";
import { milliseconds } from "../wire/values";

/** A server opens none of more than seven days. */
const LONGEST_ROUND_MS = 8 * 86_400_000;
export const ENOUGH_CLICKS = 5;
export type TaskChannel = "training" | "counts";

/**
 * What is known before any request: whether to look for a round at all. switchedOn and epsilonLeft are of training;
 * counting and countsLeft of private counts.
 */
export interface Readiness {
  readonly switchedOn: boolean;
  readonly paused: boolean;
  readonly release: string | null;
  readonly clicks: number;
  readonly epsilonLeft: number;
  readonly idle: boolean;
  readonly counting: boolean;
  readonly countsLeft: number;
}

/** Whether a private count could be joined, as far as the reader's settings go. */
export function mayCount(readiness: Readiness): boolean {
  return readiness.counting && readiness.countsLeft > 0;
}

/**
 * What this device holds an offer against. trainable: the models that it can do the offered task on; null for a task of
 * no particular model. shapes: of the update it would compute. channel: of the ledger that pays, and epsilonLeft in it;
 * alone: what noisy sums have cost so far if nobody else in them was real.
 */
export interface Terms {
  readonly privacy: PrivacySettings;
  readonly release: string;
  readonly tasks: readonly string[];
  readonly readsRelease: boolean;
  readonly trainable: readonly string[] | null;
  readonly shapes: Shapes;
  readonly oneClick: OneClick | null;
  readonly epsilonLeft: number;
  readonly alone: SumsAlone;
  readonly now: number;
  readonly channel: TaskChannel;
}

/** Throws NotEligible, saying why in a sentence. */
export function checkReady(readiness: Readiness): void {
  if (!mayCount(readiness)) checkTraining(readiness);
  if (readiness.paused) throw new NotEligible("its reader has paused training.", "off");
  if (readiness.release === null) throw new NotEligible("it has no release yet.", "old");
  if (!mayCount(readiness)) checkBudget(readiness);
}

/**
 * Throws NotEligible while the reader reads. Asked once a round is under way: polls that fell out would tell when
 * somebody reads.
 */
export function checkIdle(readiness: Readiness): void {
  if (!readiness.idle) throw new NotEligible("its reader is reading just now.", "busy");
}

/** For a task of this channel. Throws NotEligible. */
export function checkTask(readiness: Readiness, channel: TaskChannel): void {
  if (channel === "training") {
    checkTraining(readiness);
    checkBudget(readiness);
  } else if (!readiness.counting) throw new NotEligible("its reader has switched private counts off.", "off");
  else if (!mayCount(readiness))
    throw new NotEligible("today's privacy budget for counts is spent, or set to 0.", "spent");
}

/** Whether the reader lets a device take part in what this channel of the ledger pays for. */
export function switchedOn(privacy: PrivacySettings, channel: TaskChannel): boolean {
  return channel === "counts" ? privacy.counting : privacy.training;
}

/** Throws NotEligible. */
export function checkTraining(readiness: Readiness): void {
  if (!readiness.switchedOn) throw new NotEligible("its reader has not switched training on.", "off");
}

/** Throws NotEligible. */
export function checkBudget(readiness: Readiness): void {
  if (readiness.epsilonLeft <= 0)
    throw new NotEligible("today's privacy budget for training is spent, or set to 0.", "spent");
}

/** For tasks that need samples. Throws NotEligible. */
export function checkClicks(readiness: Readiness): void {
  if (readiness.clicks >= ENOUGH_CLICKS) return;
  const held = readiness.clicks === 1 ? "1 click" : `${readiness.clicks} clicks`;
  throw new NotEligible(`it holds ${held}; ${ENOUGH_CLICKS} are needed.`, "few");
}

/** Throws NotEligible, ProtectionTooWeak or BudgetSpent; nothing has been computed or charged by then. */
export function checkOffer(manifest: RoundManifest, terms: Terms): void {
  if (!terms.tasks.includes(manifest.task))
    throw new NotEligible(`it does not know the task '${manifest.task}'.`, "old");
  if (terms.readsRelease && manifest.release !== terms.release)
    throw new NotEligible(`the round is for release ${manifest.release}, this device holds ${terms.release}.`, "old");
  if (terms.trainable !== null && !terms.trainable.includes(manifest.model ?? ""))
    throw new NotEligible(`the release has no gradient of '${manifest.model}' for '${manifest.task}'.`);
  if (shapesText(manifest.shapes) !== shapesText(terms.shapes))
    throw new NotEligible(`the round wants an update of other tensors than '${manifest.task}' computes.`);
  const closesAt = milliseconds(manifest.closes_at);
  if (closesAt <= terms.now) throw new NotEligible("the round has closed.", "late");
  if (closesAt > terms.now + LONGEST_ROUND_MS)
    throw new NotEligible(`the round would go on until ${manifest.closes_at}, over a week from now.`);
  const protection = resolve(manifest.protection);
  protection.check(terms.privacy);
  const coordinates = [...terms.shapes.values()].reduce((all, shape) => all + elements(shape), 0);
  const cost = protection.price(manifest, coordinates, terms.privacy, terms.alone, terms.oneClick);
  if (cost > terms.epsilonLeft * (1 + ROUNDING)) throw new BudgetSpent(terms.channel, cost, terms.epsilonLeft);
}

function shapesText(shapes: Shapes): string {
  return JSON.stringify([...shapes].sort(([one], [other]) => (one < other ? -1 : 1)));
}
