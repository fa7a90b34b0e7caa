// A device's messages in a secure sum, sealed one by one, and the server's possible answers.
//
// The members that the server names are checked: how many, who, and with which keys.
import {
  advertisedKeys,
  agreement,
  aliveBits,
  chooseNeighbourhood,
  complaints,
  fewestSharers,
  isWhole,
  requiredThreshold,
  revealedShares,
  SecaggError,
  sharedKeys,
  type AdvertisedKeys,
  type Agreements,
  type Roster,
  type Sharers,
  type Shares,
  type SumTerms,
  type Survivors,
} from "../../protocol/secagg";
import { checkDistinct, checkKeys, signAgreement, signAlive, termsDigest } from "../../protocol/pairing";
import { hex, type Primitives } from "../../protocol/primitives";
import { keysOf, type HeldShares, type SumState } from "./transitions";
import sentences from "../../../../device_app/privacy/words.toml";
import { TextCatalogue } from "../../protocol/text_catalogue";
import type { Bytes, Form } from "../../protocol/forms";
import { digest, free, OCTETS, Sealed } from "../sealed";

/** The conditions that a sum's members must meet. */
export interface RosterRules {
  /** Verification keys, in hex, of all devices that may be members; null without such a list. */
  readonly directory: ReadonlySet<string> | null;
  /** The fewest members, including this device, with whom its masks may be shared and its vector opened. */
  readonly smallest: number;
}

/** Throws SecaggError unless the terms allow the roster and it has this device's keys. */
export async function checkRoster(
  rules: RosterRules,
  terms: SumTerms,
  keys: AdvertisedKeys,
  received: Roster,
  primitives: Primitives,
): Promise<void> {
  const holders = received.members.length;
  if (received.round !== terms.round) throw new SecaggError(`the roster is for ${received.round}`);
  if (!(terms.cohort_minimum <= received.cohort && received.cohort <= terms.cohort))
    throw new SecaggError(`${received.cohort} members, the terms say ${terms.cohort_minimum} to ${terms.cohort}`);
  const due = terms.graph === "sparse" ? chooseNeighbourhood(received.cohort) : null;
  const wanted = due === null ? received.cohort : due.degree + 1;
  if (holders !== wanted)
    throw new SecaggError(`the roster names ${holders} members; with a cohort of ${received.cohort} there must be ${wanted}`);
  const last = received.members.at(-1)?.member ?? 0;
  if (last > received.cohort) throw new SecaggError(`member ${last} is beyond a cohort of ${received.cohort}`);
  if (holders < rules.smallest)
    throw new SecaggError(`the roster names ${holders} members; this device requires at least ${rules.smallest}`);
  const least = due === null ? Math.max(2, requiredThreshold(terms, holders)) : due.threshold;
  const most = due === null ? holders : due.threshold;
  if (!(least <= received.threshold && received.threshold <= most))
    throw new SecaggError(`the threshold is ${received.threshold}, this device accepts ${least} to ${most}`);
  checkDistinct(received.members.map((entry) => entry.keys));
  const mine = received.members.find((entry) => entry.member === received.me);
  if (!mine || advertisedKeys.write(mine.keys) !== advertisedKeys.write(keys))
    throw new SecaggError("the roster shows other keys for this device than it sent");
  const context = await termsDigest(terms, primitives);
  for (const entry of received.members) {
    if (rules.directory && !rules.directory.has(hex(entry.keys.verify_key)))
      throw new SecaggError(`member ${entry.member} is not in the directory`);
    if (terms.mode === "active") await checkKeys(context, entry.keys, primitives);
  }
}

/** Throws SecaggError unless this device and enough others are in the sum, and it holds shares from all of them. */
export function checkSharers(
  rules: RosterRules,
  terms: SumTerms,
  held: readonly HeldShares[],
  received: Roster,
  sharers: Sharers,
): void {
  if (!sharers.members.includes(received.me))
    throw new SecaggError("the server left this device out, because of a complaint by or about this device");
  const known = new Set(held.map((one) => one.member));
  const unknown = sharers.members.find((member) => !known.has(member));
  if (unknown !== undefined)
    throw new SecaggError(`member ${unknown} is listed in the sum, but this device holds no share of its keys`);
  const due = isWhole(received) ? null : chooseNeighbourhood(received.cohort);
  const least = Math.max(fewest(rules, terms, received), due === null ? 0 : fewestSharers(due));
  if (sharers.members.length < least)
    throw new SecaggError(`${sharers.members.length} members are in the sum, at least ${least} are needed`);
}

/**
 * The fewest members of its roster, including itself, with whom this device continues. In the sparse form it sees only
 * its neighbours; the server counts the whole cohort.
 */
export function fewest(rules: RosterRules, terms: SumTerms, received: Roster): number {
  return Math.max(received.threshold, rules.smallest, isWhole(received) ? terms.cohort_minimum : 0);
}

const WORDS = new TextCatalogue(sentences);
const MECHANISM = "secure_sum";

/** The answer of each stage. */
export type Reply =
  | { readonly stage: "keys"; readonly answer: Roster }
  | { readonly stage: "shares"; readonly answer: Shares }
  | { readonly stage: "complaints"; readonly answer: Sharers }
  | { readonly stage: "masked"; readonly answer: Survivors }
  | { readonly stage: "agree"; readonly answer: Agreements };

/** Ring elements, little-endian, concatenated: uniform noise to anyone without the masks. */
export interface MaskedInput {
  readonly round: string;
  readonly payload: Bytes;
}

/**
 * Seals the message of the state's stage. The state, and for the `masked` stage the payload, must be on disk before it
 * leaves.
 *
 * Only the masked vector depends on clicks, and it was paid for when it was made: keys, shares and signatures are
 * random. Throws SecaggError if the masked vector was not stored: a second one must not be made.
 */
export async function sealedMessage(
  state: SumState,
  payload: Bytes | null,
  primitives: Primitives,
): Promise<Sealed<unknown>> {
  const { round } = state.terms;
  const seal = <M>(form: Form<M>, message: M, words: string): Sealed<M> =>
    Sealed.closeJson(form, message, free(MECHANISM, round), words);
  switch (state.stage) {
    case "keys":
      return seal(advertisedKeys, await keysOf(state, primitives), WORDS.say("sum_keys"));
    case "shares": {
      const shared = whole(state.shared);
      return seal(sharedKeys, shared, WORDS.say("sum_shares", { others: shared.boxes.length }));
    }
    case "complaints": {
      const list = whole(state.complaints);
      return seal(complaints, list, WORDS.say("sum_complaints", { accused: list.members.length || "none" }));
    }
    case "masked": {
      if (payload === null || digest(payload) !== state.masked_sha256)
        throw new SecaggError("the masked vector was not stored, and a second one must not be made");
      const words = WORDS.say("sum_masked", { length: state.terms.length });
      return Sealed.close<MaskedInput>(
        { round, payload },
        payload,
        OCTETS,
        free(MECHANISM, round, state.masked_sha256),
        words,
      );
    }
    case "agree": {
      const context = await termsDigest(state.terms, primitives);
      const [received, identity] = [whole(state.roster), state.identity_secret];
      const signature = isWhole(received)
        ? await signAgreement(context, received, state.survivors, identity, primitives)
        : await signAlive(context, received.me, aliveBits(state.survivors, received.cohort), identity, primitives);
      return seal(agreement, { signature }, WORDS.say("sum_agree"));
    }
    case "unmask":
      return seal(revealedShares, whole(state.revealed), WORDS.say("sum_unmask"));
  }
}

function whole<T>(part: T | null): T {
  if (part === null) throw new SecaggError("the stored state of this sum is incomplete");
  return part;
}
