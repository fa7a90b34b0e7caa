// A device's part in a round, top to bottom: take part -> compute -> send.
//
// `participate`, and `secagg_client` from there, say what is done in which order; a `Trainer` does it. Backend errors
// and refusals are outcomes; any other error is rethrown.
import sentences from "../../../device_app/training/words.toml";
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
} from "../errors";
import { TextCatalogue } from "../protocol/text_catalogue";
import { PROTOCOL_VERSION, shortened } from "../protocol/ids";
import type { CheckIn, RoundOffer, RoundStatus } from "../protocol/rounds";
import { type Readiness, checkReady, checkTask } from "./eligibility";
import type { Tasks } from "./tasks/registry";
import type { Trainer } from "./trainer";

export const WORDS = new TextCatalogue(sentences);

/**
 * How a step ended.
 *
 * idle: nothing to do, or not eligible; declined: this device refused an offer; waiting: the secure sum's stage
 * isn't closed; uploaded: everything is sent; failed: the server refused it; not needed: the round was complete
 * before. why: a sentence. againSec: the mean pause before the next step, if not the usual one; notBeforeSec: the
 * minimum pause, as requested by the server. hindrances: codes of the reasons for single rounds, by round; hindrance:
 * the code of `why`, for all other rounds. Neither leaves the device.
 */
export interface Outcome {
  readonly state: "idle" | "declined" | "waiting" | "uploaded" | "failed" | "not needed";
  readonly why: string | null;
  readonly offer: RoundOffer | null;
  readonly againSec: number | null;
  readonly notBeforeSec: number;
  readonly hindrance: Hindrance | null;
  readonly hindrances: ReadonlyMap<string, Hindrance>;
}

export function outcome(state: Outcome["state"], why: string | null, more: Partial<Outcome> = {}): Outcome {
  return { state, why, offer: null, againSec: null, notBeforeSec: 0, hindrance: null, hindrances: new Map(), ...more };
}

/**
 * Takes part in a round: of several current ones, the oldest that accepts this device and whose task this program
 * supports; "waiting" once it has joined. Only settings and ledger decide whether and when it checks in. The check-in
 * contains the tasks of this program and the round.
 */
export async function participate(work: Trainer, readiness: Readiness, tasks: Tasks): Promise<Outcome> {
  let rounds: readonly RoundStatus[];
  try {
    checkReady(readiness);
    rounds = await work.pollRounds();
  } catch (trouble) {
    if (trouble instanceof NotEligible) return outcome("idle", trouble.message, { hindrance: trouble.hindrance });
    return notNow(trouble);
  }
  const whyNot: string[] = [];
  const hindrances = new Map<string, Hindrance>();
  for (const status of rounds) {
    try {
      const kind = tasks.get(status.task ?? "");
      if (!kind) throw new NotEligible(`it does not know the task '${status.task}'.`, "old");
      checkRound(status, kind.readsRelease ? readiness.release : null);
      if (work.mayHavePart(status)) {
        whyNot.push(WORDS.say("had_its_part", { round: status.round }));
        continue;
      }
      checkTask(readiness, kind.channel);
    } catch (not) {
      if (!(not instanceof NotEligible)) throw not;
      whyNot.push(not.message);
      hindrances.set(status.round, not.hindrance);
      continue;
    }
    const ended = await takePlace(work, status, tasks);
    if (ended.hindrance !== null) hindrances.set(status.round, ended.hindrance);
    if (ended.why !== WORDS.say("no_place")) return { ...ended, hindrance: null, hindrances };
    whyNot.push(WORDS.say("no_place"));
  }
  return outcome("idle", whyNot[0] ?? WORDS.say("no_round"), { hindrances });
}

/** Checks in to this round, and joins it if the offer is acceptable. */
async function takePlace(work: Trainer, status: RoundStatus, tasks: Tasks): Promise<Outcome> {
  // For a round that reads no release, the round's own is repeated, the same from every device: whatever a server
  // puts there, no check-in reveals which release this device has.
  const release = shortened(status.release);
  const message: CheckIn = { protocol: PROTOCOL_VERSION, release, tasks: [...tasks.keys()], round: status.round };
  let offer: RoundOffer | null;
  try {
    offer = await work.askForPlace(message);
  } catch (trouble) {
    if (trouble instanceof RoundTakenOver) return outcome("idle", trouble.message);
    if (trouble instanceof OfferRefused)
      return outcome("declined", trouble.message, { hindrance: hindranceOf(trouble) });
    return notNow(trouble);
  }
  if (offer === null) return outcome("idle", WORDS.say("no_place"), { hindrance: "full" });
  try {
    await work.checkOffer(offer);
    await work.join(offer);
    return outcome("waiting", WORDS.say("joined"), { offer });
  } catch (trouble) {
    if (trouble instanceof RoundTakenOver) return outcome("idle", trouble.message);
    const refused = [NotEligible, ProtectionTooWeak, BudgetSpent].some((kind) => trouble instanceof kind);
    if (!refused) throw trouble;
    return outcome("declined", (trouble as Error).message, { offer, hindrance: hindranceOf(trouble) });
  }
}

/** Whether the same request may succeed later: the server's problem, not this device's. */
export function mayPass(refusal: BackendRefused): boolean {
  return refusal.problem.status >= 500;
}

/** The hindrance for an error that kept a device out of a round. */
export function hindranceOf(trouble: unknown): Hindrance {
  if (trouble instanceof NotEligible) return trouble.hindrance;
  if (trouble instanceof BudgetSpent) return "spent";
  if (trouble instanceof ProtectionTooWeak) return "protection";
  if (trouble instanceof BackendRefused && /(round-closed|sum-stage-closed)$/.test(trouble.problem.type)) return "late";
  const unheard = [BackendUnreachable, BackendRefused, AnswerMalformed].some((kind) => trouble instanceof kind);
  return unheard ? "unreachable" : "unfit";
}

/** The outcome if nothing was joined; retried after the usual pause, or a longer one if the backend asks for it. */
function notNow(trouble: unknown): Outcome {
  const refused = trouble instanceof BackendRefused ? trouble : null;
  if (!refused && !(trouble instanceof BackendUnreachable || trouble instanceof AnswerMalformed)) throw trouble;
  return outcome("idle", (trouble as Error).message, {
    notBeforeSec: refused?.retryAfterSec ?? 0,
    hindrance: "unreachable",
  });
}

/** Throws NotEligible unless the round is for this release. release: the current one, null if the round's task uses
 * none. */
function checkRound(status: RoundStatus, release: string | null): void {
  if (!["open", "updates", "keys"].includes(status.state))
    throw new NotEligible(`${status.round} is ${status.state}.`, "late");
  if (release !== null && status.release !== release)
    throw new NotEligible(`${status.round} is for release ${status.release}, this device has ${release}.`, "old");
  if (status.uploaded >= status.cohort) throw new NotEligible(`${status.round} has all its updates.`, "full");
}
