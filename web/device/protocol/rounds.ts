// Training rounds on the wire, and the signed offer of a round.
import { WireError, absent, byName, bytes, integer, list, literal, moment, optional, readMessage, real, record, text, truth, type Bytes, type ValueOf } from "./forms";
import { pseudonym, releaseId, roundId, sha256Hex, shortRelease } from "./ids";
import type { Primitives } from "./primitives";
import { SUMMED, protection } from "./protections";
import { SignatureRefused, blobRef, sameBytes } from "./releases";
import { sumTerms } from "./secagg";

export const MATERIALS_LIMIT_BYTES = 128 * 1024 * 1024;
export const MATERIALS_LIMIT = 512;
/** Field of a round-closed problem that says that the round continues without its group's sum. */
export const GROUP = "group";
const OFFER_DOMAIN = "ownfeed round offer v1\n";
export const MANIFEST_LIMIT = 4 * 1024 * 1024;

/** POST /v1/rounds/check-in: a device that may train sends its release and the tasks it supports. */
export const checkIn = record({
  protocol: integer({ min: 1 }),
  release: shortRelease,
  tasks: list(text(), { max: 16 }),
  round: absent(roundId),
});
export type CheckIn = ValueOf<typeof checkIn>;

/** Everything a device needs to decide whether to join, and to compute its update. */
export const roundManifest = record(
  {
    round: roundId,
    release: releaseId,
    system: text({ max: 80 }),
    task: text({ max: 80 }),
    model: absent(text({ max: 80 })),
    shapes: optional(byName(list(integer()), { max: 4_096 }), new Map()),
    materials: optional(byName(blobRef, { max: MATERIALS_LIMIT }), new Map()),
    follows: absent(roundId),
    protection,
    negatives: optional(integer({ min: 1, max: 64 }), 1),
    samples_limit: optional(integer({ min: 1, max: 1_024 }), 32),
    held_out: optional(real({ min: 0, max: 0.5 }), 0),
    dropout: optional(real({ min: 0, below: 1 }), 0),
    closes_at: moment,
    terms: absent(sumTerms),
  },
  (manifest) => {
    if (SUMMED.has(manifest.protection.kind) !== (manifest.terms !== null))
      throw new WireError("terms: required for a secure sum, and not allowed otherwise");
    if (manifest.terms !== null && manifest.terms.round !== manifest.round)
      throw new WireError(`terms: for ${manifest.terms.round}, but the round is ${manifest.round}`);
  },
);
export type RoundManifest = ValueOf<typeof roundManifest>;

/** A place in a round, as both sides use it; it is sent as a signed offer. */
export const roundOffer = record({ manifest: roundManifest, pseudonym });
export type RoundOffer = ValueOf<typeof roundOffer>;

/** The answer to a selected check-in. The pseudonym isn't signed, and is valid for this round only. */
export const signedOffer = record({
  manifest: text({ max: MANIFEST_LIMIT }),
  signature: bytes({ min: 64, max: 64 }),
  public_key: bytes({ min: 32, max: 32 }),
  pseudonym,
});
export type SignedOffer = ValueOf<typeof signedOffer>;

/** The offer, if the trusted key signed its manifest. Throws SignatureRefused before parsing any of it; WireError. */
export async function verifyOffer(signed: SignedOffer, trusted: Bytes, primitives: Primitives): Promise<RoundOffer> {
  if (!sameBytes(signed.public_key, trusted))
    throw new SignatureRefused("the offer is not signed by the key that this device trusts");
  const signedBytes = new TextEncoder().encode(OFFER_DOMAIN + signed.manifest);
  if (!(await primitives.verify(trusted, signed.signature, signedBytes)))
    throw new SignatureRefused("the offer's signature does not match its bytes");
  return { manifest: readMessage(roundManifest, signed.manifest), pseudonym: signed.pseudonym };
}

/** The answer to an upload; repeating the same bytes gets the same receipt. */
export const uploadReceipt = record({ round: roundId, sha256: sha256Hex, duplicate: truth });
export type UploadReceipt = ValueOf<typeof uploadReceipt>;

/** GET /v1/rounds/{id}: public progress. */
export const roundStatus = record({
  round: roundId,
  system: text(),
  task: absent(text()),
  state: literal("open", "updates", "keys", "shares", "masked", "agree", "unmask", "applied", "failed"),
  stages: optional(literal("updates", "sum"), "updates"),
  reason: absent(text()),
  release: releaseId,
  published: absent(releaseId),
  follows: absent(roundId),
  orders: absent(text()),
  followed_by: absent(roundId),
  summary: absent(text()),
  cohort: integer(),
  cohort_minimum: integer(),
  joined: integer(),
  uploaded: integer(),
  received_bytes: integer(),
  opened_at: moment,
  closes_at: moment,
  finished_at: absent(moment),
  survivors: absent(integer()),
  epsilon: absent(real()),
  delta: absent(real()),
});
export type RoundStatus = ValueOf<typeof roundStatus>;

/** GET /v1/rounds/current: all current rounds, oldest first. */
export const openRounds = record({ rounds: list(roundStatus, { max: 16 }) });
