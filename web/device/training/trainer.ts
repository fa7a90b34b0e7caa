// Takes part in rounds: one step polls for a round and, if it is acceptable, joins its secure sum, or continues one.
import {
  AnswerMalformed,
  BackendRefused,
  BackendUnreachable,
  NoRelease,
  NotEligible,
  OfferRefused,
} from "../errors";
import type { Ledger } from "../privacy/accounting/ledger";
import type { PrivacySettings } from "../privacy/settings";
import type { NoiseSource } from "../privacy/exact_samplers";
import { sealCheckIn } from "../privacy/requests";
import type { Database } from "../store/database";
import type { Participations } from "../store/participations";
import type { RoundsUplink } from "../uplink/backend_client";
import { WireError, milliseconds, type Bytes } from "../protocol/forms";
import type { Primitives } from "../protocol/primitives";
import { SignatureRefused } from "../protocol/releases";
import { type CheckIn, type RoundOffer, type RoundStatus, type SignedOffer, verifyOffer } from "../protocol/rounds";
import type { ComputedUpdate } from "../privacy/protections/protection";
import { ownGroups, type Computation, type ComputationFactory, type OwnGroup } from "./computation";
import { checkOffer, checkReady, isMalformed, type ReaderConsent, type Readiness, type Terms } from "./eligibility";
import type { DueUpdate, DueUpdates } from "./due_updates";
import type { TrainingRelease } from "./gradients";
import { type Outcome, WORDS, participate } from "./participant";
import { SecAggClient } from "./secagg_client";
import type { Tasks } from "./tasks/registry";

const LOOK_BESIDE_MS = 10_000;
const ENDED: readonly string[] = ["applied", "failed"];
export type TrainerStage = "looking" | "checking in" | "computing" | "protecting" | "summing";

/**
 * What this device knows about rounds from its own polls. status: of the current round, otherwise the last one, as
 * received at receivedAt. lookedAt: when the server last listed the current rounds.
 */
export interface KnownRound {
  readonly status: RoundStatus | null;
  readonly receivedAt: number | null;
  readonly lookedAt: number | null;
}

/** What a trainer needs. */
export interface TrainerParts {
  /** The current release. Throws NoRelease on a device that never synced. */
  readonly release: () => Promise<TrainingRelease>;
  readonly computations: ComputationFactory;
  /** When updates are due. */
  readonly updates: DueUpdates;
  readonly database: Database;
  readonly participations: Participations;
  readonly uplink: RoundsUplink;
  readonly consent: ReaderConsent;
  /** The Ed25519 key that must have signed an offer; null while there is none. */
  readonly trustedKey: () => Bytes | null;
  readonly primitives: Primitives;
  /** Cryptographic on a device. */
  readonly noise: NoiseSource;
  readonly clock: () => number;
}

/** A device's training: what it does in a round, and the steps that do it. */
export class Trainer {
  private readonly ledger: Ledger;
  private readonly privacy: () => PrivacySettings;
  private readonly tasks: Tasks;
  readonly summing: SecAggClient;
  private computation: Computation | null = null;
  private offered: SignedOffer | null = null;
  private lookedAt: number | null = null;
  private open: readonly RoundStatus[] = [];
  private readonly due = new Map<string, DueUpdate>();
  stage: TrainerStage | null = null;
  seen: KnownRound = { status: null, receivedAt: null, lookedAt: null };

  constructor(private readonly parts: TrainerParts) {
    this.ledger = parts.consent.ledger;
    this.privacy = parts.consent.privacy;
    this.tasks = parts.computations.tasks;
    this.summing = new SecAggClient(parts, this);
  }

  /**
   * Continues running sums, then tries once to take part. Returns the outcome. Server errors and refusals are outcomes;
   * only faults of this device or of the release are thrown. One step at a time.
   */
  async step(): Promise<Outcome> {
    const summed = await this.goOn();
    return summed !== null && !this.looksBeside(summed) ? summed : this.takePart(summed);
  }

  /** Continues running sums, which need no release; returns the outcome, null if there is none. Like `step`. */
  async goOn(): Promise<Outcome | null> {
    try {
      this.giveUpCutOff();
      await this.followUp();
      return await this.goOnSumming();
    } finally {
      this.endStep();
    }
  }

  /** Returns whether to poll for another round besides a sum with this outcome. */
  looksBeside(summed: Outcome): boolean {
    return summed.state === "waiting" && this.mayLookAgain();
  }

  /** Tries once to take part in a round, besides the sum that `goOn` returned. Like `step`. */
  async takePart(summed: Outcome | null): Promise<Outcome> {
    try {
      const readiness = this.readiness(await this.releaseOrNull());
      const outcome = await participate(this, readiness, this.tasks);
      this.note(outcome);
      if (outcome.state === "waiting") return (await this.goOnSumming()) ?? outcome;
      return summed ?? outcome; // a waiting sum continues, whatever the outcome of another round
    } finally {
      this.endStep();
    }
  }

  private endStep(): void {
    this.stage = this.offered = this.computation = null;
    if (!this.due.size) return;
    const rounds = new Set(this.summing.parts.underWay().map((part) => part.round));
    for (const [round, update] of this.due) {
      if (rounds.has(round)) update.start();
      else this.due.delete(round);
    }
  }

  /**
   * Drops paid updates that have not arrived, since the reader has deleted something that they may be based on. They
   * aren't replaced: a second draw under the same charge would reveal what was deleted, by the difference.
   */
  forgetUnsent(): void {
    this.summing.forgetUnsent();
  }

  /** Why this device wouldn't train on its clicks now, as a sentence; null if it would. */
  async whyNot(): Promise<string | null> {
    const readiness: Readiness = { ...this.readiness(await this.releaseOrNull()), counting: false };
    try {
      checkReady(readiness);
    } catch (not) {
      if (not instanceof NotEligible) return not.message;
      throw not;
    }
    return null;
  }

  /** The reader's group for each ranker with groups. Throws ReleaseRefused. */
  async ownGroups(): Promise<OwnGroup[]> {
    const release = await this.releaseOrNull();
    const { reading, load } = this.parts.computations;
    return release ? ownGroups(release, reading, load) : [];
  }

  private async releaseOrNull(): Promise<TrainingRelease | null> {
    try {
      return await this.parts.release();
    } catch (none) {
      if (none instanceof NoRelease) return null;
      throw none;
    }
  }

  /**
   * Returns whether a device that waits in a sum may also poll for rounds: rarely, since the server counts each poll as
   * a waiting device.
   */
  private mayLookAgain(): boolean {
    return this.lookedAt === null || this.now() - this.lookedAt >= LOOK_BESIDE_MS;
  }

  private readiness(release: TrainingRelease | null): Readiness {
    return this.parts.consent.readiness(release?.id ?? null);
  }

  /** The current rounds, oldest first; `seen` keeps the last status. Throws the backend's errors. */
  async pollRounds(): Promise<readonly RoundStatus[]> {
    [this.stage, this.lookedAt] = ["looking", this.now()];
    this.open = await this.parts.uplink.openRounds();
    const [first] = this.open;
    const seen = first ? { ...this.seen, status: first, receivedAt: this.now() } : this.seen;
    this.seen = { ...seen, lookedAt: this.now() };
    return this.open;
  }

  /** Whether this device has taken part in that round, or may have. */
  mayHavePart(status: RoundStatus): boolean {
    return this.parts.participations.mayHave(status.round, milliseconds(status.opened_at));
  }

  /**
   * Sends the check-in; the offer, verified and recorded as joined, or null without a place. Throws the backend's
   * errors, OfferRefused and RoundTakenOver.
   */
  async askForPlace(message: CheckIn): Promise<RoundOffer | null> {
    this.stage = "checking in";
    const signed = await this.parts.uplink.checkIn(sealCheckIn(message));
    if (signed === null) return null;
    // Verified before anything is stored: a forged offer must not take the place of a round with the same number.
    const offer = await this.checkSigner(signed);
    this.offered = signed;
    const joined = this.open.find((each) => each.round === offer.manifest.round);
    if (joined) this.seen = { ...this.seen, status: joined };
    this.record(offer);
    return offer;
  }

  /**
   * Throws NotEligible, ProtectionTooWeak or BudgetSpent unless this device accepts the offer; keeps the round's
   * computation for `join`.
   */
  async checkOffer(offer: RoundOffer): Promise<void> {
    try {
      checkOffer(offer.manifest, await this.terms(await this.parts.release(), offer));
    } catch (broken) {
      if (isMalformed(broken)) throw new NotEligible(`the offer is malformed: ${broken.message}.`);
      throw broken;
    }
  }

  /** Creates and stores the sum's keys, and draws when the update is due. Throws like `checkWanted`. */
  async join(offer: RoundOffer): Promise<void> {
    if (this.offered === null) throw new RangeError("an offer must be joined in the step that received it");
    this.summing.begin(offer, this.offered);
    await this.dueUpdate(offer);
  }

  /** Throws NotEligible if the reader doesn't currently allow such a task. */
  checkWanted(task: string): void {
    this.parts.consent.check(task);
  }

  /** The offer, if the trusted key signed it. Throws OfferRefused. */
  async checkSigner(signed: SignedOffer): Promise<RoundOffer> {
    const trusted = this.parts.trustedKey();
    if (trusted === null) throw new OfferRefused("this device trusts no key yet");
    try {
      return await verifyOffer(signed, trusted, this.parts.primitives);
    } catch (broken) {
      if (broken instanceof SignatureRefused) throw new OfferRefused(broken.message);
      if (broken instanceof WireError) throw new OfferRefused(`its manifest is malformed: ${broken.message}`);
      throw broken;
    }
  }

  /**
   * What the offer is checked against; keeps the round's computation for later. before: a computation that already
   * exists.
   */
  private async terms(
    release: TrainingRelease,
    { manifest }: RoundOffer,
    before: Computation | null = null,
  ): Promise<Terms> {
    const { computations } = this.parts;
    const kind = this.tasks.get(manifest.task);
    const channel = kind?.channel ?? "training";
    const models = kind ? computations.trainable(release, kind) : [];
    const known = kind && (models === null || models.includes(manifest.model ?? ""));
    const computation = before ?? (known ? await computations.make(release, manifest, kind) : null);
    this.computation = computation;
    return {
      privacy: this.privacy(),
      release: release.id,
      tasks: [...this.tasks.keys()],
      readsRelease: kind?.readsRelease ?? true,
      trainable: models,
      shapes: computation?.shapes() ?? new Map(),
      oneClick: computation?.oneClick ?? null,
      epsilonLeft: this.ledger.left(channel),
      alone: this.ledger.alone(),
      now: this.now(),
      channel,
    };
  }

  private async goOnSumming(): Promise<Outcome | null> {
    this.stage = "summing";
    return this.summing.goOn();
  }

  /**
   * The update for this place, computed after this step, if it wasn't before. Throws NotEligible if the reader or
   * another release has ended the part.
   */
  private async dueUpdate({ manifest }: RoundOffer): Promise<DueUpdate> {
    this.parts.consent.check(manifest.task);
    const release = await this.parts.release();
    const kind = this.tasks.get(manifest.task);
    if (!kind) throw new NotEligible(`it does not know the task '${manifest.task}'.`, "old");
    if (kind.readsRelease && release.id !== manifest.release)
      throw new NotEligible(
        `the round is for release ${manifest.release}, this device now has ${release.id}.`,
        "old",
      );
    const due = this.due.get(manifest.round);
    if (due) return due;
    const atHand = this.computation?.round === manifest.round ? this.computation : null;
    // there is none if the place is from before a restart
    const update = this.parts.updates.begin(atHand ?? (await this.parts.computations.make(release, manifest, kind)));
    this.due.set(manifest.round, update);
    return update;
  }

  /** The update, to be masked; null before it is due. Throws like `checkOffer`, since settings may have changed. */
  async update(offer: RoundOffer): Promise<ComputedUpdate | null> {
    const due = await this.dueUpdate(offer);
    if (!due.isDue(this.now())) return null;
    this.due.delete(offer.manifest.round);
    // The reader may have tightened the settings since joining, and the server decides how long ago that was.
    checkOffer(offer.manifest, await this.terms(await this.parts.release(), offer, due.computation));
    this.stage = "computing";
    const found = await due.take();
    this.stage = "protecting";
    return found;
  }

  /** Marks as failed what was interrupted before its sum had keys. */
  private giveUpCutOff(): void {
    const underWay = new Set(this.summing.parts.underWay().map((part) => part.round));
    for (const mine of this.parts.participations.list())
      if (mine.state === "joined" && !underWay.has(mine.round))
        this.parts.participations.update(mine.round, {
          state: "failed",
          at: this.now(),
          detail: WORDS.say("cut_off"),
        });
  }

  /** Polls the result of the newest round to which this device has sent an update. */
  private async followUp(): Promise<void> {
    const { participations, consent, uplink } = this.parts;
    const newest = participations.list().find((mine) => mine.state === "uploaded");
    if (!newest || consent.paused() || !consent.switchedOn(newest.task)) return;
    let status: RoundStatus;
    try {
      status = await uplink.roundStatus(newest.round);
    } catch (trouble) {
      const willRetry = [BackendUnreachable, BackendRefused, AnswerMalformed].some((kind) => trouble instanceof kind);
      if (willRetry) return; // the next step polls again
      throw trouble;
    }
    this.seen = { ...this.seen, status, receivedAt: this.now() };
    this.conclude(status);
  }

  /** Records what a finished round did with this device's update, if it sent one. */
  private conclude(status: RoundStatus): void {
    if (!ENDED.includes(status.state)) return;
    const mine = this.parts.participations.get(status.round);
    if (mine?.state !== "uploaded") return;
    // The status is the same for every device: only the member itself was informed that its group is left out.
    const leftOut = status.state === "applied" && mine.detail === WORDS.say("left_out");
    const detail = leftOut ? WORDS.say("applied_without") : status.reason;
    this.parts.participations.update(mine.round, { state: status.state, at: this.now(), detail });
  }

  /** Records for the page how an offer ended. */
  private note({ offer, state, why }: Outcome): void {
    if (offer !== null && ["declined", "failed", "not needed"].includes(state))
      this.parts.participations.update(offer.manifest.round, { state, at: this.now(), detail: why });
  }

  private record({ manifest }: RoundOffer): void {
    const now = this.now();
    this.parts.participations.record({
      round: manifest.round,
      system: manifest.system,
      task: manifest.task,
      release: manifest.release,
      state: "joined",
      joinedAt: now,
      changedAt: now,
      detail: null,
      sentBytes: 0,
      epsilon: 0,
    });
  }

  private now(): number {
    return this.parts.clock();
  }
}
