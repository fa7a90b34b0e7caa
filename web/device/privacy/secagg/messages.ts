// A device's messages in a secure sum, sealed one by one, and the server's possible answers.
import sentences from "../../../../device_app/privacy/words.toml";
import { TextCatalogue } from "../../protocol/text_catalogue";
import type { Bytes, Form } from "../../protocol/forms";
import { signAgreement, signAlive, termsDigest } from "../../protocol/pairing";
import type { Primitives } from "../../protocol/primitives";
import {
  type Agreements,
  type Roster,
  SecaggError,
  type Sharers,
  type Shares,
  type Survivors,
  advertisedKeys,
  agreement,
  aliveBits,
  complaints,
  isWhole,
  revealedShares,
  sharedKeys,
} from "../../protocol/secagg";
import { OCTETS, Sealed, digest, free } from "../sealed";
import { type SumState, keysOf } from "./transitions";

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
 * random. Throws SecaggError for a masked vector that wasn't kept: a second one must not be made.
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
  if (part === null) throw new SecaggError("the state of this sum is not whole");
  return part;
}
