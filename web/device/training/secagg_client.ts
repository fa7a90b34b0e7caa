// A device's way through the secure sum of a round: what to send, what to wait for, and when to leave.
//
// Nothing of it is in memory between two steps. Each step restores the part, sends its message if that has not arrived,
// asks for the stage's answer, and keeps the next state on the disk before the next message leaves.
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
import type { Ledger } from "../privacy/ledger";
import type { NoiseSource } from "../privacy/noise_sources";
import { resolve } from "../privacy/protections/registry";
import { sealPoll } from "../privacy/requests";
import { type Reply, sealedMessage } from "../privacy/secagg/messages";
import { type SumState, beginSum, sumState } from "../privacy/secagg/state";
import { type Contribution, type MaskedVector, SumTransitions } from "../privacy/secagg/transitions";
import type { Database } from "../store/database";
import { type Participations, RoundUploads } from "../store/participations";
import { type SumPart, SumParts } from "../store/sum_parts";
import type { RoundsUplink } from "../uplink/rounds";
import { readMessage } from "../wire/forms";
import type { Primitives } from "../wire/primitives";
import { GROUP, type RoundOffer, type SignedOffer, roundManifest, signedOffer } from "../wire/rounds";
import { SecaggError } from "../wire/secagg";
import { milliseconds } from "../wire/values";
import { type Outcome, WORDS, hindranceOf, isMalformed, mayPass, outcome } from "./participant";

const AGAIN_SEC = 1;
/** How long past a round's deadline a device that gets no answer goes on asking. */
const GRACE_MS = 60_000;
const PAID: readonly string[] = ["masked", "agree", "unmask"];
const WAITS = WORDS.table("waits");

/** What a sum is gone on with. All that a reader may change or a key may lose between two steps is asked anew. */
export interface SumDuties {
  readonly database: Database;
  readonly participations: Participations;
  readonly uplink: RoundsUplink;
  readonly ledger: Ledger;
  readonly primitives: Primitives;
  readonly noise: NoiseSource;
  readonly clock: () => number;
  /** Computes the device's vector, when it's to be masked; throws as `checkOffer`. */
  contribution(offer: RoundOffer): Promise<Contribution>;
  /** Throws OfferRefused unless the key that this device trusts now has signed the offer. */
  checkSigner(signed: SignedOffer): Promise<void>;
  /** Throws NotEligible if the reader lets a device do no such task now. */
  checkWanted(task: string): void;
}

/** Goes on with the sums under way, each by itself. */
export class SecAggClient {
  readonly parts: SumParts;
  private readonly uploads: RoundUploads;

  constructor(private readonly duties: SumDuties) {
    this.parts = new SumParts(duties.database);
    this.uploads = new RoundUploads(duties.database);
  }

  /** Fresh keys for a round, kept before any leaves. Throws RoundTakenOver if the round has keys. */
  begin(offer: RoundOffer, signed: SignedOffer): void {
    const { terms, round } = offer.manifest;
    if (terms === null) throw new RangeError(`${round} is no secure sum`);
    const state = sumState.write(beginSum(terms, this.duties.noise));
    this.duties.database.transaction(() => {
      this.parts.begin({ round, offer: signedOffer.write(signed), state, payload: null, sent: false }, this.now());
      this.tell(round, WORDS.say("joined"));
    });
  }

  /**
   * As far as the server's answers allow, with each sum under way; null if there is none. Of several outcomes, that of
   * one that waits.
   */
  async goOn(): Promise<Outcome | null> {
    const outcomes: Outcome[] = [];
    for (const part of this.parts.underWay()) outcomes.push(await this.goOnWith(part));
    // the keys of a sum that was left stand in no log, either
    if (outcomes.some((each) => each.state !== "waiting")) this.duties.database.fold();
    return outcomes.find((each) => each.state === "waiting") ?? outcomes.at(-1) ?? null;
  }

  /** Leave a sum whose masked vector hasn't arrived. One that has can't be taken back: others open the sum. */
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
        // the next step starts from where the other one stands
        if (trouble instanceof RoundTakenOver) return this.wait(offer, trouble.message);
        throw trouble;
      }
    }
  }

  /** Send the stage's message, if that has not arrived, and go on to the next; or how this step ended. */
  private async stage(part: SumPart, offer: RoundOffer, signed: SignedOffer): Promise<SumPart | Outcome> {
    const state = readMessage(sumState, part.state);
    let now = part;
    try {
      this.duties.checkWanted(offer.manifest.task);
      if (PAID.includes(state.stage))
        resolve(offer.manifest.protection).checkAgain(offer.manifest, this.duties.ledger.settings);
      else {
        await this.duties.checkSigner(signed);
        if (this.overdue(offer)) return this.leave(now, offer, "failed", WORDS.say("overdue"), "late");
      }
      if (!now.sent) now = await this.send(now, state, offer);
      if (state.stage === "unmask") return this.leave(now, offer, "uploaded", null);
      const answer = await this.duties.uplink.sumAnswer(sealPoll(offer, state.stage), state.stage);
      if (answer === null) return this.wait(offer, WAITS[state.stage] ?? "");
      return await this.advance(now, state, offer, signed, answer);
    } catch (trouble) {
      return this.ended(now, state, offer, trouble);
    }
  }

  /** What becomes of a sum by what went wrong. Throws what isn't the sum's. */
  private ended(part: SumPart, state: SumState, offer: RoundOffer, trouble: unknown): Outcome {
    if (trouble instanceof NotEligible || trouble instanceof ProtectionTooWeak) {
      // Switched off means that nothing more leaves, whatever it has cost. The others' sum bears who vanishes.
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
      // The others needed no more of it: what became of the round is asked for like that of any upload.
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
    // A vector that can't be made or sealed won't be at the next try either; the fault itself is shown.
    if (isMalformed(trouble)) this.leave(part, offer, "failed", trouble);
    throw trouble;
  }

  private overdue(offer: RoundOffer): boolean {
    return this.now() > milliseconds(offer.manifest.closes_at) + GRACE_MS;
  }

  private async send(part: SumPart, state: SumState, offer: RoundOffer): Promise<SumPart> {
    const sealed = await sealedMessage(state, part.payload, this.duties.primitives);
    await this.duties.uplink.sumMessage(offer, state.stage, sealed);
    const arrived: SumPart = { ...part, sent: true };
    this.duties.database.transaction(() => {
      this.parts.goOn(part, arrived, this.now());
      this.tell(part.round, WAITS[state.stage] ?? "", sealed.payload.length);
    });
    return arrived;
  }

  /**
   * The next state. The masked vector, its price and the state that goes with it are one transaction, refused to all but
   * one that comes from this state, and to a vector other than the one the round is bound to.
   */
  private async advance(
    part: SumPart,
    state: SumState,
    offer: RoundOffer,
    signed: SignedOffer,
    { stage, told }: Reply,
  ): Promise<SumPart> {
    const { primitives, noise, ledger } = this.duties;
    const sum = new SumTransitions({ directory: null, smallest: ledger.settings.smallest_sum }, primitives, noise);
    switch (stage) {
      case "keys":
        return this.keep(part, await sum.share(state, told));
      case "shares":
        return this.keep(part, await sum.openBoxes(state, told));
      case "masked":
        return this.keep(part, sum.hearSurvivors(state, told));
      case "agree":
        return this.keep(part, await sum.hearAgreements(state, told));
      case "complaints": {
        const contribution = await this.duties.contribution(offer);
        const masked = await sum.mask(state, told, contribution);
        await this.duties.checkSigner(signed);
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
    return this.duties.database.transaction(() => {
      this.duties.ledger.spend(charge);
      this.parts.goOn(part, after, this.now());
      this.duties.checkWanted(offer.manifest.task);
      this.uploads.bind(part.round, charge.payloadSha256, this.now());
      this.tell(part.round, WORDS.say("paid"), 0, charge.epsilon);
      contribution.paid?.();
      return after;
    });
  }

  private wait(offer: RoundOffer, why: string): Outcome {
    return outcome("waiting", why, { offer, againSec: AGAIN_SEC });
  }

  /** Forget the keys; what was sent opens nothing by itself. */
  private leave(
    part: SumPart,
    offer: RoundOffer,
    state: "uploaded" | "declined" | "failed" | "not needed",
    why: Error | string | null,
    hindrance: Hindrance | null = null,
  ): Outcome {
    const words = why instanceof Error ? why.message : why;
    this.duties.database.transaction(() => {
      this.parts.drop(part);
      this.duties.participations.update(part.round, { state, at: this.now(), detail: words });
    });
    const kept = state === "uploaded" ? hindrance : (hindrance ?? hindranceOf(why));
    return outcome(state, words, { offer, hindrances: new Map(kept === null ? [] : [[part.round, kept]]) });
  }

  /** Keep on the page what this device does for the round, and all it has sent and spent. */
  private tell(round: string, words: string, sentBytes = 0, epsilon: number | null = null): void {
    const before = this.duties.participations.get(round)?.sentBytes ?? 0;
    const at = this.now();
    this.duties.participations.update(round, {
      state: "summing",
      at,
      detail: words,
      sentBytes: before + sentBytes,
      epsilon,
    });
  }

  private now(): number {
    return this.duties.clock();
  }
}

/** The offer of a part, and as it was signed. */
function offerOf(part: SumPart): readonly [RoundOffer, SignedOffer] {
  const signed = readMessage(signedOffer, part.offer);
  return [{ manifest: readMessage(roundManifest, signed.manifest), pseudonym: signed.pseudonym }, signed];
}
