// What a device must remember of a secure sum, so that a kill at any point neither loses nor repeats anything.
import { type ValueOf, absent, list, optional, record } from "../../wire/forms";
import { signKeys, termsDigest } from "../../wire/pairing";
import type { Primitives } from "../../wire/primitives";
import {
  type AdvertisedKeys,
  SHARE_BYTES,
  type SumTerms,
  complaints,
  revealedShares,
  roster,
  sharedKeys,
  sumTerms,
} from "../../wire/secagg";
import { bytes, integer, literal, text } from "../../wire/values";
import type { NoiseSource } from "../noise_sources";

const share = bytes({ min: SHARE_BYTES, max: SHARE_BYTES });

/** The two shares that this device holds for one member, or for itself. */
export const heldShares = record({ member: integer(), key_share: share, seed_share: share });
export type HeldShares = ValueOf<typeof heldShares>;

/**
 * A device's memory of one secure sum. Never on the wire: it holds every secret. The JSON is that of the Python device.
 *
 * stage names the message that is being sent, or has been. Messages are kept as they were sent, since a second, other
 * message of the same stage could open what the first one hid.
 */
export const sumState = record({
  terms: sumTerms,
  stage: literal("keys", "shares", "complaints", "masked", "agree", "unmask"),
  identity_secret: bytes(),
  encryption_secret: bytes(),
  mask_secret: bytes(),
  roster: absent(roster),
  seed: absent(bytes()),
  own: absent(heldShares),
  shared: absent(sharedKeys),
  complaints: absent(complaints),
  held: optional(list(heldShares), []),
  masked_sha256: absent(text()),
  survivors: optional(list(integer()), []),
  revealed: absent(revealedShares),
});
export type SumState = ValueOf<typeof sumState>;

/** Fresh keys for one round. */
export function beginSum(terms: SumTerms, source: NoiseSource): SumState {
  return sumState.make({
    terms,
    stage: "keys",
    identity_secret: source.uniformBits(32),
    encryption_secret: source.uniformBits(32),
    mask_secret: source.uniformBits(32),
  });
}

/** The message of stage keys; Ed25519 signatures are deterministic, so it's the same bytes every time. */
export async function keysOf(state: SumState, primitives: Primitives): Promise<AdvertisedKeys> {
  const publics = [state.encryption_secret, state.mask_secret].map((secret) => primitives.agreementKey(secret));
  const [encryption = new Uint8Array(0), mask = new Uint8Array(0)] = publics;
  return signKeys(await termsDigest(state.terms, primitives), state.identity_secret, encryption, mask, primitives);
}
