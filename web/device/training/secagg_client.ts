// Takes a device through the secure sum of a round: what to send, what to wait for, and when to leave.\nNothing is kept
// in memory between two steps. Each step restores the part, sends its message if that hasn't arrived, requests the
// stage's answer, and stores the next state on disk before the next message leaves.
import {
  AnswerMalformed,
  BackendRefused,
  BackendUnreachable,
  BudgetSpent,
  type Hindrance,
  NotEligible,
  OfferRefused,
  ProtectionTooWeak,
  RoundTakenOver,
  SumAborted,
} from "../errors";
import { resolve } from "../privacy/protections/registry";
import { sealPoll } from "../privacy/requests";
import { type Reply, sealedMessage } from "../privacy/secagg/messages";
import { SumTransitions, beginSum, sumState, type Contribution, type MaskedVector, type SumState } from "../privacy/secagg/transitions";
import { RoundUploads, SumParts, type SumPart } from "../store/participations";
import { milliseconds, readMessage } from "../protocol/forms";
import { GROUP, type RoundOffer, type SignedOffer, roundManifest, signedOffer } from "../protocol/rounds";
import { SecaggError } from "../protocol/secagg";
import { isMalformed } from "./eligibility";
import { type Outcome, WORDS, hindranceOf, mayPass, outcome } from "./participant";
import type { Trainer, TrainerParts } from "./trainer";

const AGAIN_SEC = 1;
/** How long after a round's deadline a device without an answer keeps polling. */
const GRACE_MS = 60_000;
const PAID: readonly string[] = ["masked", "agree", "unmask"];
const WAITS = WORDS.table("waits");

/** Continues the running sums, each independently. */
export class SecAggClient {
  readonly parts: SumParts;
  private readonly uploads: RoundUploads;

  /** work: checks again what the reader may have changed, and whether the key is still trusted. */
  constructor(
    private readonly needs: TrainerParts,
    private readonly work: Trainer,
  ) {
    this.parts = new SumParts(needs.database);
    this.uploads = new RoundUploads(needs.database);
  }

  /** Creates keys for a round and stores them before any leaves. Throws RoundTakenOver if the round has keys. */
  begin(offer: RoundOffer, signed: SignedOffer): void {
    const { terms, round } = offer.manifest;
    if (terms === null) throw new RangeError(`${round} is not a secure sum`);
    const state = sumState.write(beginSum(terms, this.needs.noise));
    this.needs.database.transaction(() => {
      this.parts.begin({ round, offer: signedOffer.write(signed), state, payload: null, sent: false }, this.now());
      this.record(round, WORDS.say("joined"));
    });
  }

  /**
   * Advances each running sum as far as the server's answers allow. Returns null if there is none, and the outcome of a
   * waiting sum if there are several.
   */
  async goOn(): Promise<Outcome | null> {
    const outcomes: Outcome[] = [];
    for (const part of this.parts.underWay()) outcomes.push(await this.goOnWith(part));
    // the logs must not keep the keys of a sum that was left
    if (outcomes.some((each) => each.state !== "waiting")) this.needs.database.fold();
    return outcomes.find((each) => each.state === "waiting") ?? outcomes.at(-1) ?? null;
  }

  /**
   * Leaves a sum whose masked vector hasn't arrived. One that has arrived can't be recalled: the others open the sum.
   */
  forgetUnsent(): void {
    for (const part of this.parts.underWay())
      if (part.payload !== null && !part.sent) this.leave(part, offerOf(part)[0], "declined", WORDS.say("deleted"));
  }

  private async goOnWith(first: SumPart): Promise<Outcome> {
    const [offer, signed] = offerOf(first);
    let part = first;
    for (;;) {
      try {
        const further = await this.stage(part, offer, signed);
        if ("state" in further && "hindrances" in further) return further;
        part = further;
      } catch (trouble) {
        // the next step starts from the other process's state
        if (trouble instanceof RoundTakenOver) return this.wait(offer, trouble.message);
        throw trouble;
      }
    }
  }

  /**
   * Sends the stage's message, if it hasn't arrived, and advances to the next stage; otherwise returns the step's
   * outcome.
   */
  private async stage(part: SumPart, offer: RoundOffer, signed: SignedOffer): Promise<SumPart | Outcome> {
    const state = readMessage(sumState, part.state);
    let now = part;
    try {
      this.work.checkWanted(offer.manifest.task);
      if (PAID.includes(state.stage))
        resolve(offer.manifest.protection).checkAgain(offer.manifest, this.needs.consent.privacy());
      else {
        await this.work.checkSigner(signed);
        if (this.overdue(offer)) return this.leave(now, offer, "failed", WORDS.say("overdue"), "late");
      }
      if (!now.sent) now = await this.send(now, state, offer);
      if (state.stage === "unmask") return this.leave(now, offer, "uploaded", null);
      const answer = await this.needs.uplink.sumAnswer(sealPoll(offer, state.stage), state.stage);
      if (answer === null) return this.wait(offer, WAITS[state.stage] ?? "");
      return (await this.advance(now, state, offer, signed, answer)) ?? this.wait(offer, WAITS[state.stage] ?? "");
    } catch (trouble) {
      return this.ended(now, state, offer, trouble);
    }
  }

  /** The outcome for a sum after an error. Rethrows errors that don't concern the sum. */
  private ended(part: SumPart, state: SumState, offer: RoundOffer, trouble: unknown): Outcome {
    if (trouble instanceof NotEligible || trouble instanceof ProtectionTooWeak) {
      // Switched off means that nothing more leaves, even if it is paid for. The others' sum tolerates dropouts.
      const arrived = state.stage === "agree" || state.stage === "unmask" || (state.stage === "masked" && part.sent);
      if (arrived) return this.leave(part, offer, "uploaded", WORDS.say("left_after"));
      return this.leave(part, offer, "declined", trouble);
    }
    if (trouble instanceof SecaggError)
      return this.leave(part, offer, "declined", new SumAborted(part.round, trouble.message));
    if (trouble instanceof OfferRefused || trouble instanceof BudgetSpent)
      return this.leave(part, offer, "declined", trouble);
    if (trouble instanceof BackendRefused) {
      if (mayPass(trouble)) return this.wait(offer, trouble.message);
      const { type, field } = trouble.problem;
      // The other devices needed no more from this one: the round's result is polled like that of any upload.
      if (PAID.includes(state.stage) && type.endsWith("round-closed"))
        return this.leave(part, offer, "uploaded", field === GROUP ? WORDS.say("left_out") : null);
      if (state.stage === "keys" && type.endsWith("sum-stage-closed"))
        return this.leave(part, offer, "not needed", WORDS.say("complete"), "full");
      return this.leave(part, offer, "failed", trouble);
    }
    if (trouble instanceof BackendUnreachable || trouble instanceof AnswerMalformed)
      return this.overdue(offer)
        ? this.leave(part, offer, "failed", trouble)
        : this.wait(offer, (trouble as Error).message);
    // A vector that can't be made or sealed now can't be at the next attempt either, so the error is shown.
    if (isMalformed(trouble)) this.leave(part, offer, "failed", trouble);
    throw trouble;
  }

  private overdue(offer: RoundOffer): boolean {
    return this.now() > milliseconds(offer.manifest.closes_at) + GRACE_MS;
  }

  private async send(part: SumPart, state: SumState, offer: RoundOffer): Promise<SumPart> {
    const sealed = await sealedMessage(state, part.payload, this.needs.primitives);
    await this.needs.uplink.sumMessage(offer, state.stage, sealed);
    // Without its payload, since every later step would read these megabytes again.
    const arrived: SumPart = { ...part, sent: true, payload: null };
    this.needs.database.transaction(() => {
      this.parts.goOn(part, arrived, this.now());
      this.record(part.round, WAITS[state.stage] ?? "", sealed.payload.length);
    });
    return arrived;
  }

  /**
   * The next state; null before the update is due. The masked vector, its charge and its state are one transaction,
   * which fails unless it starts from this state, and for a vector other than the one the round is bound to.
   */
  private async advance(
    part: SumPart,
    state: SumState,
    offer: RoundOffer,
    signed: SignedOffer,
    { stage, answer }: Reply,
  ): Promise<SumPart | null> {
    const { primitives, noise, consent } = this.needs;
    const sum = new SumTransitions({ directory: null, smallest: consent.privacy().smallest_sum }, primitives, noise);
    switch (stage) {
      case "keys":
        return this.keep(part, await sum.share(state, answer));
      case "shares":
        return this.keep(part, await sum.openBoxes(state, answer));
      case "masked":
        return this.keep(part, sum.receiveSurvivors(state, answer));
      case "agree":
        return this.keep(part, await sum.receiveAgreements(state, answer));
      case "complaints": {
        const update = await this.work.update(offer);
        if (update === null) return null;
        const protection = resolve(offer.manifest.protection);
        const contribution = protection.contribute(update, offer.manifest, noise, consent.privacy().delta_per_sum);
        const masked = await sum.mask(state, answer, contribution);
        await this.work.checkSigner(signed);
        return this.pay(part, offer, masked, contribution);
      }
    }
  }

  private keep(part: SumPart, state: SumState): SumPart {
    const after: SumPart = { ...part, state: sumState.write(state), payload: null, sent: false };
    this.parts.goOn(part, after, this.now());
    return after;
  }

  private pay(
    part: SumPart,
    offer: RoundOffer,
    { state, payload, charge }: MaskedVector,
    contribution: Contribution,
  ): SumPart {
    const after: SumPart = { ...part, state: sumState.write(state), payload, sent: false };
    return this.needs.database.transaction(() => {
      this.needs.consent.ledger.spend(charge);
      this.parts.goOn(part, after, this.now());
      this.work.checkWanted(offer.manifest.task);
      this.uploads.bind(part.round, charge.payloadSha256, this.now());
      this.record(part.round, WORDS.say("paid"), 0, charge.epsilon);
      contribution.paid?.();
      return after;
    });
  }

  private wait(offer: RoundOffer, why: string): Outcome {
    return outcome("waiting", why, { offer, againSec: AGAIN_SEC });
  }

  /** Deletes the keys; what was sent reveals nothing by itself. */
  private leave(
    part: SumPart,
    offer: RoundOffer,
    state: "uploaded" | "declined" | "failed" | "not needed",
    why: Error | string | null,
    hindrance: Hindrance | null = null,
  ): Outcome {
    const words = why instanceof Error ? why.message : why;
    this.needs.database.transaction(() => {
      this.parts.drop(part);
      this.needs.participations.update(part.round, { state, at: this.now(), detail: words });
    });
    const kept = state === "uploaded" ? hindrance : (hindrance ?? hindranceOf(why));
    return outcome(state, words, { offer, hindrances: new Map(kept === null ? [] : [[part.round, kept]]) });
  }

  /** Records for the page what this device does in the round, and all it has sent and spent. */
  private record(round: string, words: string, sentBytes = 0, epsilon: number | null = null): void {
    const before = this.needs.participations.get(round)?.sentBytes ?? 0;
    const at = this.now();
    this.needs.participations.update(round, {
      state: "summing",
      at,
      detail: words,
      sentBytes: before + sentBytes,
      epsilon,
    });
  }

  private now(): number {
    return this.needs.clock();
  }
}

/** A part's offer, and its signed form. */
function offerOf(part: SumPart): readonly [RoundOffer, SignedOffer] {
  const signed = readMessage(signedOffer, part.offer);
  return [{ manifest: readMessage(roundManifest, signed.manifest), pseudonym: signed.pseudonym }, signed];
}
