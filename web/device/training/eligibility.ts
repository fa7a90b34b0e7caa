// Whether this device may train now and accepts a round's terms: the reader's settings, pause and budgets decide on
// what the server proposes.
import { BudgetSpent, NotEligible } from "../errors";
import type { Ledger } from "../privacy/accounting/ledger";
import type { OneClick, SumsAlone } from "../privacy/accounting/cost_of_sums";
import { elements, type Shapes } from "../privacy/private_parameters";
import { ROUNDING } from "../privacy/protections/protection";
import { resolve } from "../privacy/protections/registry";
import type { PrivacySettings } from "../privacy/settings";
import type { RoundManifest } from "../protocol/rounds";
import { WireError, milliseconds } from "../protocol/forms";
import { RingError } from "../protocol/ring";
import type { Tasks } from "./tasks/registry";

/** Checked at every step: a reader may change their mind at any time. */
export class ReaderConsent {
  /** privacy: returns what the reader accepts now. paused: whether the reader has paused training. */
  constructor(
    readonly ledger: Ledger,
    readonly privacy: () => PrivacySettings,
    private readonly tasks: Tasks,
    readonly paused: () => boolean = () => false,
  ) {}

  /** What is known before any request, on a device with this release. */
  readiness(release: string | null): Readiness {
    const { ledger } = this;
    const { training, counting } = this.privacy();
    return {
      switchedOn: training,
      paused: this.paused(),
      release,
      epsilonLeft: ledger.left("training"),
      counting,
      countsLeft: ledger.left("counts"),
    };
  }

  /** Whether the reader allows this task, ignoring a pause. */
  switchedOn(task: string): boolean {
    return switchedOn(this.privacy(), this.tasks.get(task)?.channel ?? "training");
  }

  /** Throws NotEligible if the reader no longer allows it; last called just before the payment. */
  check(task: string): void {
    if (this.paused() || !this.switchedOn(task))
      throw new NotEligible("training has since been paused or switched off.", "off");
  }
}

/** A server opens no round of more than seven days. */
const LONGEST_ROUND_MS = 8 * 86_400_000;
export type TaskChannel = "training" | "counts";

/**
 * What is known before any request: whether to look for a round at all. Depends on settings and the ledger only:
 * otherwise the time at which a device joins would reveal what the reader does. switchedOn and epsilonLeft are for
 * training; counting and countsLeft for private counts.
 */
export interface Readiness {
  readonly switchedOn: boolean;
  readonly paused: boolean;
  readonly release: string | null;
  readonly epsilonLeft: number;
  readonly counting: boolean;
  readonly countsLeft: number;
}

/** Whether the reader's settings allow joining a private count. */
export function mayCount(readiness: Readiness): boolean {
  return readiness.counting && readiness.countsLeft > 0;
}

/**
 * What this device checks an offer against. trainable: the models it can run the offered task on, null for a task
 * without a model. shapes: those of the update that it would compute. channel: the ledger's channel that is charged,
 * with epsilonLeft in it. alone: the cost of all noisy sums so far if every other member was fake.
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

/** Throws NotEligible, with the reason in a sentence. */
export function checkReady(readiness: Readiness): void {
  if (!mayCount(readiness)) checkTraining(readiness);
  if (readiness.paused) throw new NotEligible("training is paused.", "off");
  if (readiness.release === null) throw new NotEligible("it has no release yet.", "old");
  if (!mayCount(readiness)) checkBudget(readiness);
}

/** Throws NotEligible unless the device may run a task of this channel. */
export function checkTask(readiness: Readiness, channel: TaskChannel): void {
  if (channel === "training") {
    checkTraining(readiness);
    checkBudget(readiness);
  } else if (!readiness.counting) throw new NotEligible("anonymous counts are switched off.", "off");
  else if (!mayCount(readiness))
    throw new NotEligible("today's limit for counts is reached, or set to 0.", "spent");
}

/** Whether the reader allows the kind of task that this ledger channel is for. */
export function switchedOn(privacy: PrivacySettings, channel: TaskChannel): boolean {
  return channel === "counts" ? privacy.counting : privacy.training;
}

/** Throws NotEligible unless training is allowed. */
export function checkTraining(readiness: Readiness): void {
  if (!readiness.switchedOn) throw new NotEligible("training is not switched on.", "off");
}

/** Throws NotEligible if the budget is spent. */
export function checkBudget(readiness: Readiness): void {
  if (readiness.epsilonLeft <= 0)
    throw new NotEligible("today's limit for training is reached, or set to 0.", "spent");
}

/** Throws NotEligible, ProtectionTooWeak or BudgetSpent; at this point nothing has been computed or charged. */
export function checkOffer(manifest: RoundManifest, terms: Terms): void {
  if (!terms.tasks.includes(manifest.task))
    throw new NotEligible(`it does not know the task '${manifest.task}'.`, "old");
  if (terms.readsRelease && manifest.release !== terms.release)
    throw new NotEligible(`the round is for release ${manifest.release}, this device has ${terms.release}.`, "old");
  if (terms.trainable !== null && !terms.trainable.includes(manifest.model ?? ""))
    throw new NotEligible(`the release has no gradient of '${manifest.model}' for '${manifest.task}'.`);
  if (shapesText(manifest.shapes) !== shapesText(terms.shapes))
    throw new NotEligible(`the round requests tensors that '${manifest.task}' does not compute.`);
  const closesAt = milliseconds(manifest.closes_at);
  if (closesAt <= terms.now) throw new NotEligible("the round has closed.", "late");
  if (closesAt > terms.now + LONGEST_ROUND_MS)
    throw new NotEligible(`the round would go on until ${manifest.closes_at}, more than a week from now.`);
  const protection = resolve(manifest.protection);
  protection.check(terms.privacy);
  const coordinates = [...terms.shapes.values()].reduce((all, shape) => all + elements(shape), 0);
  const cost = protection.price(manifest, coordinates, terms.privacy, terms.alone, terms.oneClick);
  if (cost > terms.epsilonLeft * (1 + ROUNDING)) throw new BudgetSpent(terms.channel, cost, terms.epsilonLeft);
}

function shapesText(shapes: Shapes): string {
  return JSON.stringify([...shapes].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Whether the error, which isn't a refusal, means that an offer's parts are inconsistent. */
export function isMalformed(fault: unknown): fault is Error {
  return [RangeError, TypeError, RingError, WireError].some((kind) => fault instanceof kind);
}
