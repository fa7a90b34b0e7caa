// A training round as the two ends speak of it, and the offer of a round as it travels.
import { type Form, type ValueOf, WireError, absent, byName, list, optional, readMessage, record } from "./forms";
import { pseudonym, releaseId, roundId, sha256Hex, shortRelease } from "./ids";
import type { Primitives } from "./primitives";
import { protection } from "./protections";
import { SignatureRefused, blobRef, sameBytes } from "./releases";
import { sumTerms } from "./secagg";
import { type Bytes, bytes, integer, literal, moment, real, text, truth } from "./values";

export const UPLOAD_LIMIT_BYTES = 64 * 1024 * 1024;
export const MATERIALS_LIMIT_BYTES = 128 * 1024 * 1024;
export const MATERIALS_LIMIT = 512;
/**
 * The field of a round-closed problem by which a member is told that the round goes on without the sum of its group.
 */
export const GROUP = "group";
export const OPEN_ROUNDS = "application/vnd.ownfeed.open-rounds+json";
const OFFER_DOMAIN = "ownfeed round offer v1\n";
export const MANIFEST_LIMIT = 4 * 1024 * 1024;

/** The release modulo 16, or in full, as devices of before say it. */
const shortOrFull: Form<number | string> = {
  read: (value) => (typeof value === "string" ? releaseId.read(value) : shortRelease.read(value)),
  write: (value) => (typeof value === "string" ? releaseId.write(value) : shortRelease.write(value)),
};

/** POST /v1/rounds/check-in: a device that may train says which release it holds and which tasks it can do. */
export const checkIn = record({
  protocol: integer({ min: 1 }),
  release: shortOrFull,
  tasks: list(text(), { max: 16 }),
  round: absent(roundId, { omitted: true }),
});
export type CheckIn = ValueOf<typeof checkIn>;

/** All a device needs to decide whether to join, and to compute its update. */
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
    dropout: optional(real({ min: 0, below: 1 }), 0, { omitted: (share) => share === 0 }),
    closes_at: moment,
    terms: absent(sumTerms),
  },
  (manifest) => {
    if ((manifest.protection.kind !== "local_laplace") !== (manifest.terms !== null))
      throw new WireError("terms: a secure sum has them, and nothing else does");
    if (manifest.terms !== null && manifest.terms.round !== manifest.round)
      throw new WireError(`terms: of ${manifest.terms.round}, the round is ${manifest.round}`);
  },
);
export type RoundManifest = ValueOf<typeof roundManifest>;

/** A place in a round, as either end works with it; it travels as a signed offer. */
export const roundOffer = record({ manifest: roundManifest, pseudonym });
export type RoundOffer = ValueOf<typeof roundOffer>;

/** Answer to a check-in that was chosen. The pseudonym is not signed, and lives for this round only. */
export const signedOffer = record({
  manifest: text({ max: MANIFEST_LIMIT }),
  signature: bytes({ min: 64, max: 64 }),
  public_key: bytes({ min: 32, max: 32 }),
  pseudonym,
});
export type SignedOffer = ValueOf<typeof signedOffer>;

/**
 * The offer, if the trusted key signed its manifest. Throws SignatureRefused before a byte of it is read; WireError.
 */
export async function verifyOffer(signed: SignedOffer, trusted: Bytes, primitives: Primitives): Promise<RoundOffer> {
  if (!sameBytes(signed.public_key, trusted))
    throw new SignatureRefused("the offer is signed by another key than the one this device trusts");
  const told = new TextEncoder().encode(OFFER_DOMAIN + signed.manifest);
  if (!(await primitives.verify(trusted, signed.signature, told)))
    throw new SignatureRefused("the offer's signature does not fit its bytes");
  return { manifest: readMessage(roundManifest, signed.manifest), pseudonym: signed.pseudonym };
}

/** Answer to an upload; a repeated one of the same bytes gets the same receipt. */
export const uploadReceipt = record({ round: roundId, sha256: sha256Hex, duplicate: truth });
export type UploadReceipt = ValueOf<typeof uploadReceipt>;

/** GET /v1/rounds/{id}: progress anyone may see. */
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
  summary: absent(text(), { alias: "says" }),
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

/** GET /v1/rounds/current where OPEN_ROUNDS is accepted: all rounds under way, oldest first. */
export const openRounds = record({ rounds: list(roundStatus, { max: 16 }) });
export type OpenRounds = ValueOf<typeof openRounds>;
