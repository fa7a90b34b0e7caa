// Takes part in rounds: one step looks for a round and, if all agrees, joins its secure sum or goes on with it.
import {
  AnswerMalformed,
  BackendRefused,
  BackendUnreachable,
  NoRelease,
  NotEligible,
  OfferRefused,
} from "../errors";
import type { Ledger } from "../privacy/ledger";
import type { NoiseSource } from "../privacy/noise_sources";
import { resolve } from "../privacy/protections/registry";
import { sealCheckIn } from "../privacy/requests";
import type { Contribution } from "../privacy/secagg/transitions";
import type { Database } from "../store/database";
import type { Participations } from "../store/participations";
import type { RoundsUplink } from "../uplink/rounds";
import { WireError } from "../wire/forms";
import type { Primitives } from "../wire/primitives";
import { SignatureRefused } from "../wire/releases";
import { type RoundOffer, type RoundStatus, type SignedOffer, verifyOffer } from "../wire/rounds";
import { type Bytes, milliseconds } from "../wire/values";
import type { Computation, ComputationFactory } from "./computation";
import type { ReaderConsent } from "./consent";
import { type Readiness, type Terms, checkClicks, checkIdle, checkOffer, checkReady } from "./eligibility";
import type { TrainingRelease } from "./gradients";
import { type Effect, type EffectReply, type Outcome, WORDS, drive, isMalformed, participate } from "./participant";
import type { ReaderSamples } from "./samples";
import { type OwnGroup, ownGroups } from "./own_groups";
import { SecAggClient } from "./secagg_client";
import type { Tasks } from "./tasks/registry";

const LOOK_BESIDE_MS = 10_000;
const ENDED: readonly string[] = ["applied", "failed"];
export type TrainerStage = "looking" | "gathering" | "checking in" | "computing" | "protecting" | "summing";

/**
 * What this device has heard of rounds by its own looks. status: of the round under way, else of the last one, as it was
 * told at toldAt. lookedAt: when the server last said which rounds are under way.
 */
export interface RoundSeen {
  readonly status: RoundStatus | null;
  readonly toldAt: number | null;
  readonly lookedAt: number | null;
}

/** What a trainer works with. */
export interface TrainerParts {
  /** The release in use. Throws NoRelease on a device that was never synced. */
  readonly release: () => Promise<TrainingRelease>;
  readonly computations: ComputationFactory;
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

/** A device's training. */
export class Trainer {
  private readonly ledger: Ledger;
  private readonly tasks: Tasks;
  readonly summing: SecAggClient;
  private samples: ReaderSamples | null = null;
  private computation: Computation | null = null;
  private offered: SignedOffer | null = null;
  private lookedAt: number | null = null;
  private open: readonly RoundStatus[] = [];
  stage: TrainerStage | null = null;
  seen: RoundSeen = { status: null, toldAt: null, lookedAt: null };

  constructor(private readonly parts: TrainerParts) {
    const { database, participations, uplink, primitives, noise, clock, consent } = parts;
    this.ledger = consent.ledger;
    this.tasks = parts.computations.tasks;
    this.summing = new SecAggClient({
      ...{ database, participations, uplink, primitives, noise, clock },
      ledger: this.ledger,
      contribution: (offer) => this.contribution(offer),
      checkSigner: async (signed) => void (await this.verified(signed)),
      checkWanted: (task) => consent.check(task),
    });
  }

  /**
   * Go on with what is under way, then try to take part once. Returns how the try ended. Errors of the backend and
   * refusals are outcomes; what is thrown is a fault of this device or of the release. One step at a time.
   */
  async step(): Promise<Outcome> {
    const summed = await this.goOn();
    return summed !== null && !this.looksBeside(summed) ? summed : this.takePart(summed);
  }

  /** Go on with what is under way, for which no release is needed: how its sum stands, null without one. As `step`. */
  async goOn(): Promise<Outcome | null> {
    try {
      this.giveUpCutOff();
      await this.followUp();
      return await this.goOnSumming();
    } finally {
      this.endStep();
    }
  }

  /** Whether another round is looked for beside a sum that stands so. */
  looksBeside(summed: Outcome): boolean {
    return summed.state === "waiting" && this.mayLookAgain();
  }

  /** Try to take part once, beside the sum that `goOn` told of. As `step`. */
  async takePart(summed: Outcome | null): Promise<Outcome> {
    try {
      const release = await this.releaseOrNull();
      const attempt = participate(this.readiness(release), this.tasks);
      const outcome = await drive(attempt, (effect) => this.fulfil(effect, release));
      this.note(outcome);
      if (outcome.state === "waiting") return (await this.goOnSumming()) ?? outcome;
      return summed ?? outcome; // a sum that waits is gone on with, whatever came of another round
    } finally {
      this.endStep();
    }
  }

  private endStep(): void {
    this.stage = this.offered = this.samples = this.computation = null;
  }

  /**
   * Drop what is paid for and has not arrived: its reader has deleted something that it may have come from. Nothing is
   * made in its place: a second drawing under one charge would tell by the difference what was deleted.
   */
  forgetUnsent(): void {
    this.summing.forgetUnsent();
  }

  /** Why this device would not train on its clicks now, in a sentence, or null if it would. */
  async whyNot(): Promise<string | null> {
    const readiness: Readiness = { ...this.readiness(await this.releaseOrNull()), counting: false };
    try {
      checkReady(readiness);
      checkIdle(readiness);
      checkClicks(readiness);
    } catch (not) {
      if (not instanceof NotEligible) return not.message;
      throw not;
    }
    return null;
  }

  /** The reader's group for each ranker of the release that has groups. Throws ReleaseRefused. */
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
   * Whether a device that waits for others in a sum looks for rounds beside it: seldom, since each look counts at the
   * server as a device that waits.
   */
  private mayLookAgain(): boolean {
    return this.lookedAt === null || this.now() - this.lookedAt >= LOOK_BESIDE_MS;
  }

  private readiness(release: TrainingRelease | null): Readiness {
    return this.parts.consent.readiness(release?.id ?? null);
  }

  /** Do what the participant wants done. */
  private async fulfil(effect: Effect, release: TrainingRelease | null): Promise<EffectReply> {
    if (release === null) throw new RangeError("the participant is not eligible without a release");
    const { uplink, participations } = this.parts;
    switch (effect.kind) {
      case "poll rounds": {
        [this.stage, this.lookedAt] = ["looking", this.now()];
        const found = await uplink.openRounds();
        this.open = found.rounds;
        const [first] = found.rounds;
        const told = first ? { ...this.seen, status: first, toldAt: this.now() } : this.seen;
        this.seen = { ...told, lookedAt: this.now() }; // the last one stays in sight
        return found;
      }
      case "ask if joined":
        return participations.mayHave(effect.status.round, milliseconds(effect.status.opened_at));
      case "gather":
        this.stage = "gathering";
        return this.gather(release);
      case "ask for place": {
        this.stage = "checking in";
        const signed = await uplink.checkIn(sealCheckIn(effect.message));
        if (signed === null) return null;
        // Verified before anything is kept: a forged offer must not stand in for a round of the same number.
        const offer = await this.verified(signed);
        this.offered = signed;
        const joined = this.open.find((each) => each.round === offer.manifest.round);
        if (joined) this.seen = { ...this.seen, status: joined };
        this.record(offer);
        return offer;
      }
      case "state terms":
        try {
          return await this.terms(release, effect.offer);
        } catch (broken) {
          if (isMalformed(broken)) throw new NotEligible(`the offer is malformed: ${broken.message}.`);
          throw broken;
        }
      case "join sum":
        if (this.offered === null) throw new RangeError("an offer is joined in the step that brought it");
        this.summing.begin(effect.offer, this.offered);
        return null;
    }
  }

  /** Keep the reader's samples at hand for this step; how many there are, or would be with vectors of all news. */
  private gather(release: TrainingRelease): number {
    this.samples = this.parts.computations.reading.samples(release.manifest.encoder);
    return this.samples.learnable;
  }

  /** The offer, if the trusted key signed it. Throws OfferRefused. */
  private async verified(signed: SignedOffer): Promise<RoundOffer> {
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

  /** What the offer is held against; the computation of the round it is for is at hand from then on. */
  private async terms(release: TrainingRelease, { manifest }: RoundOffer): Promise<Terms> {
    const { computations } = this.parts;
    const kind = this.tasks.get(manifest.task);
    const channel = kind?.channel ?? "training";
    const models = kind ? computations.trainable(release, kind) : [];
    const known = kind && (models === null || models.includes(manifest.model ?? ""));
    const made = known ? await computations.make(release, manifest, kind, this.samples) : null;
    this.computation = made;
    return {
      privacy: this.ledger.settings,
      release: release.id,
      tasks: [...this.tasks.keys()],
      readsRelease: kind?.readsRelease ?? true,
      trainable: models,
      shapes: made?.shapes() ?? new Map(),
      oneClick: made?.oneClick ?? null,
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

  /** This device's vector for a secure sum, from samples drawn now. Throws as `checkOffer`. */
  private async contribution(offer: RoundOffer): Promise<Contribution> {
    const { manifest } = offer;
    this.parts.consent.check(manifest.task);
    const release = await this.parts.release();
    const kind = this.tasks.get(manifest.task);
    if (kind?.readsRelease !== false && release.id !== manifest.release)
      throw new NotEligible(
        `the round is for release ${manifest.release}, this device now holds ${release.id}.`,
        "old",
      );
    if (kind?.needsSamples !== false && !this.gather(release))
      throw new NotEligible("none of its clicks has a feed and earlier clicks to learn from.", "few");
    // The reader may have asked for more since the round was joined, and the server decides how long that was.
    checkOffer(manifest, await this.terms(release, offer));
    this.stage = "computing";
    if (this.computation === null) throw new RangeError("checkOffer refuses what can't be computed");
    const update = await this.computation.update();
    this.stage = "protecting";
    const { delta_per_sum: delta } = this.ledger.settings;
    return resolve(manifest.protection).contribute(update, manifest, this.parts.noise, delta);
  }

  /** Note as failed what was cut off before its sum had keys. */
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

  /** Learn what became of the newest round this device has sent an update to. */
  private async followUp(): Promise<void> {
    const { participations, consent, uplink } = this.parts;
    const newest = participations.list().find((mine) => mine.state === "uploaded");
    if (!newest || consent.paused() || !consent.switchedOn(newest.task)) return;
    let status: RoundStatus;
    try {
      status = await uplink.roundStatus(newest.round);
    } catch (trouble) {
      const heard = [BackendUnreachable, BackendRefused, AnswerMalformed].some((kind) => trouble instanceof kind);
      if (heard) return; // the next step asks again
      throw trouble;
    }
    this.seen = { ...this.seen, status, toldAt: this.now() };
    this.conclude(status);
  }

  /** Note what a round that has ended made of the update that this device has sent to it, if it has. */
  private conclude(status: RoundStatus): void {
    if (!ENDED.includes(status.state)) return;
    const mine = this.parts.participations.get(status.round);
    if (mine?.state !== "uploaded") return;
    // The status is the same for everybody: only the member itself was told that its group is left out.
    const leftOut = status.state === "applied" && mine.detail === WORDS.say("left_out");
    const detail = leftOut ? WORDS.say("applied_without") : status.reason;
    this.parts.participations.update(mine.round, { state: status.state, at: this.now(), detail });
  }

  /** Keep on the page how an offer ended. */
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
