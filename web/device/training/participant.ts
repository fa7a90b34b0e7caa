// A device's part in a round as a generator without I/O: it yields what it wants done and is sent what came of it.
//
//     look at the rounds -> gather samples -> check in -> join the secure sum
//
// Whoever drives it does the work, or throws into it what went wrong: errors of the backend and refusals of the ledger
// end the attempt with an outcome; anything else ends it with that error.
import sentences from "../../../device_app/training/words.toml";
import {
  AnswerMalformed,
  BackendRefused,
  BackendUnreachable,
  BudgetSpent,
  DeviceError,
  type Hindrance,
  NotEligible,
  OfferRefused,
  ProtectionTooWeak,
  RoundTakenOver,
} from "../errors";
import { Prose } from "../prose";
import { WireError } from "../wire/forms";
import { PROTOCOL_VERSION, shortened } from "../wire/ids";
import { RingError } from "../wire/ring";
import type { CheckIn, OpenRounds, RoundOffer, RoundStatus } from "../wire/rounds";
import { type Readiness, type Terms, checkClicks, checkIdle, checkOffer, checkReady, checkTask } from "./eligibility";
import type { Tasks } from "./tasks/registry";

export const WORDS = new Prose(sentences);

/** What is wanted: the rounds under way; whether this device may have had to do with one; how many samples it has; a
 * place in one, as an offer that is verified and noted as joined; what the offer is held against; keys for its sum. */
export type Effect =
  | { readonly kind: "poll rounds" }
  | { readonly kind: "ask if joined"; readonly status: RoundStatus }
  | { readonly kind: "gather" }
  | { readonly kind: "ask for place"; readonly message: CheckIn }
  | { readonly kind: "state terms"; readonly offer: RoundOffer }
  | { readonly kind: "join sum"; readonly offer: RoundOffer };

export type EffectReply = OpenRounds | RoundOffer | Terms | boolean | number | null;

/**
 * How a step ended.
 *
 * idle: nothing to do, or not eligible; declined: an offer was refused by this device; waiting: the stage of a secure
 * sum isn't closed; uploaded: all is sent; failed: the server refused it; not needed: the round was complete before. why
 * is a sentence; againSec: when to try again, where that isn't the usual time. hindrance: the same as why, of every round
 * that isn't among `hindrances`, by round. Neither leaves the device.
 */
export interface Outcome {
  readonly state: "idle" | "declined" | "waiting" | "uploaded" | "failed" | "not needed";
  readonly why: string | null;
  readonly offer: RoundOffer | null;
  readonly againSec: number | null;
  readonly hindrance: Hindrance | null;
  readonly hindrances: ReadonlyMap<string, Hindrance>;
}

export function outcome(state: Outcome["state"], why: string | null, more: Partial<Outcome> = {}): Outcome {
  return { state, why, offer: null, againSec: null, hindrance: null, hindrances: new Map(), ...more };
}

type Attempt = Generator<Effect, Outcome, EffectReply>;

/**
 * One attempt to take part in a round: of several under way, the oldest that takes this device and whose task this
 * program knows. What it says at the check-in is what this program can do, the round, and nothing of its reader.
 */
export function* participate(readiness: Readiness, tasks: Tasks): Attempt {
  let found: OpenRounds;
  try {
    checkReady(readiness);
    found = (yield { kind: "poll rounds" }) as OpenRounds;
  } catch (trouble) {
    if (trouble instanceof NotEligible) return outcome("idle", trouble.message, { hindrance: trouble.hindrance });
    return notNow(trouble);
  }
  const whyNot: string[] = [];
  const hindrances = new Map<string, Hindrance>();
  for (const status of found.rounds) {
    try {
      const kind = tasks.get(status.task ?? "");
      if (!kind) throw new NotEligible(`it does not know the task '${status.task}'.`, "old");
      checkRound(status, kind.readsRelease ? readiness.release : null);
      if (yield { kind: "ask if joined", status }) {
        whyNot.push(WORDS.say("had_its_part", { round: status.round }));
        continue;
      }
      checkIdle(readiness);
      checkTask(readiness, kind.channel);
      if (kind.needsSamples) {
        checkClicks(readiness);
        if (!(yield { kind: "gather" })) throw new NotEligible(WORDS.say("nothing_to_learn_from"), "few");
      }
    } catch (not) {
      if (!(not instanceof NotEligible)) throw not;
      whyNot.push(not.message);
      hindrances.set(status.round, not.hindrance);
      continue;
    }
    // Of a round that reads no release the round's own is repeated, the same from every device: whatever a server names
    // there, no check-in tells which one this device holds.
    const message: CheckIn = {
      protocol: PROTOCOL_VERSION,
      release: shortened(status.release),
      tasks: [...tasks.keys()],
      round: status.round,
    };
    const ended = yield* takePart(message);
    if (ended.hindrance !== null) hindrances.set(status.round, ended.hindrance);
    if (ended.why !== WORDS.say("no_place")) return { ...ended, hindrance: null, hindrances };
    whyNot.push(WORDS.say("no_place"));
  }
  return outcome("idle", whyNot[0] ?? WORDS.say("no_round"), { hindrances });
}

function* takePart(message: CheckIn): Attempt {
  let offer: RoundOffer | null;
  try {
    offer = (yield { kind: "ask for place", message }) as RoundOffer | null;
  } catch (trouble) {
    if (trouble instanceof RoundTakenOver) return outcome("idle", trouble.message);
    if (trouble instanceof OfferRefused)
      return outcome("declined", trouble.message, { hindrance: hindranceOf(trouble) });
    return notNow(trouble);
  }
  if (offer === null) return outcome("idle", WORDS.say("no_place"), { hindrance: "full" });
  try {
    const terms = (yield { kind: "state terms", offer }) as Terms;
    checkWhole(offer, terms);
    yield { kind: "join sum", offer };
    return outcome("waiting", WORDS.say("joined"), { offer });
  } catch (trouble) {
    if (trouble instanceof RoundTakenOver) return outcome("idle", trouble.message);
    const refused = [NotEligible, ProtectionTooWeak, BudgetSpent].some((kind) => trouble instanceof kind);
    if (!refused) throw trouble;
    return outcome("declined", (trouble as Error).message, { offer, hindrance: hindranceOf(trouble) });
  }
}

/** As `checkOffer`; an offer that can't even be checked is declined, too. Throws NotEligible then. */
function checkWhole(offer: RoundOffer, terms: Terms): void {
  try {
    checkOffer(offer.manifest, terms);
  } catch (broken) {
    if (isMalformed(broken)) throw new NotEligible(`the offer is malformed: ${broken.message}.`);
    throw broken;
  }
}

/** Run an attempt to its end; what goes wrong with an effect is thrown where it was asked for. */
export async function drive(attempt: Attempt, fulfil: (effect: Effect) => Promise<EffectReply>): Promise<Outcome> {
  let step = attempt.next();
  while (!step.done) {
    let reply: EffectReply;
    try {
      reply = await fulfil(step.value);
    } catch (trouble) {
      if (!(trouble instanceof DeviceError)) throw trouble;
      step = attempt.throw(trouble);
      continue;
    }
    step = attempt.next(reply);
  }
  return step.value;
}

/** What an offer throws, besides refusals, whose parts don't go together. */
export function isMalformed(fault: unknown): fault is Error {
  return [RangeError, TypeError, RingError, WireError].some((kind) => fault instanceof kind);
}

/** Whether the same request may succeed later: the server's trouble, and not this device's. */
export function mayPass(refusal: BackendRefused): boolean {
  return refusal.problem.status >= 500;
}

/** What kept a device out of a round, by what was thrown. */
export function hindranceOf(trouble: unknown): Hindrance {
  if (trouble instanceof NotEligible) return trouble.hindrance;
  if (trouble instanceof BudgetSpent) return "spent";
  if (trouble instanceof ProtectionTooWeak) return "protection";
  if (trouble instanceof BackendRefused && /(round-closed|sum-stage-closed)$/.test(trouble.problem.type)) return "late";
  const unheard = [BackendUnreachable, BackendRefused, AnswerMalformed].some((kind) => trouble instanceof kind);
  return unheard ? "unreachable" : "unfit";
}

/** Nothing was joined; asked again when the backend says, where it does. */
function notNow(trouble: unknown): Outcome {
  const refused = trouble instanceof BackendRefused ? trouble : null;
  if (!refused && !(trouble instanceof BackendUnreachable || trouble instanceof AnswerMalformed)) throw trouble;
  const againSec = refused && mayPass(refused) ? refused.retryAfterSec : null;
  return outcome("idle", (trouble as Error).message, { againSec, hindrance: "unreachable" });
}

/** release: the one in use, null where the round's task reads none. Throws NotEligible. */
function checkRound(status: RoundStatus, release: string | null): void {
  if (!["open", "updates", "keys"].includes(status.state))
    throw new NotEligible(`${status.round} is ${status.state}.`, "late");
  if (release !== null && status.release !== release)
    throw new NotEligible(`${status.round} is for release ${status.release}, this device holds ${release}.`, "old");
  if (status.uploaded >= status.cohort) throw new NotEligible(`${status.round} has all its updates.`, "full");
}
