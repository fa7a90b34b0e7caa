// The messages of a device in a secure sum, sealed one by one, and what the server may answer.
import sentences from "../../../../device_app/privacy/words.toml";
import { Prose } from "../../prose";
import type { Form } from "../../wire/forms";
import { signAgreement, termsDigest } from "../../wire/pairing";
import type { Primitives } from "../../wire/primitives";
import {
  type Agreements,
  type Roster,
  SecaggError,
  type Sharers,
  type Shares,
  type Survivors,
  advertisedKeys,
  agreement,
  complaints,
  revealedShares,
  sharedKeys,
} from "../../wire/secagg";
import type { Bytes } from "../../wire/values";
import { OCTETS, Sealed, digest, free } from "../sealed";
import { type SumState, keysOf } from "./state";

const WORDS = new Prose(sentences);
const MECHANISM = "secure_sum";

/** The answer of each stage. */
export type Reply =
  | { readonly stage: "keys"; readonly told: Roster }
  | { readonly stage: "shares"; readonly told: Shares }
  | { readonly stage: "complaints"; readonly told: Sharers }
  | { readonly stage: "masked"; readonly told: Survivors }
  | { readonly stage: "agree"; readonly told: Agreements };

/** Ring elements, little-endian, one after the other: uniform noise to whoever lacks the masks. */
export interface MaskedInput {
  readonly round: string;
  readonly payload: Bytes;
}

/**
 * The message of the state's stage. The state, and for stage masked the payload, must be on the disk before it leaves.
 *
 * No click has had a part in any but the masked vector, which was paid for when it was made: keys, shares and
 * signatures are random. Throws SecaggError for a masked vector that was not kept: a second one must not be made.
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
      const said = whole(state.complaints);
      return seal(complaints, said, WORDS.say("sum_complaints", { accused: said.members.length || "none" }));
    }
    case "masked": {
      if (payload === null || digest(payload) !== state.masked_sha256)
        throw new SecaggError("the masked vector was not kept, and a second one must not be made");
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
      const identity = state.identity_secret;
      const signature = await signAgreement(context, whole(state.roster), state.survivors, identity, primitives);
      return seal(agreement, { signature }, WORDS.say("sum_agree"));
    }
    case "unmask":
      return seal(revealedShares, whole(state.revealed), WORDS.say("sum_unmask"));
  }
}

function whole<T>(part: T | null): T {
  if (part === null) throw new SecaggError("the state of this sum is not whole");
  return part;
}
