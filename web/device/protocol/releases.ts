// A release: graphs, weights and vector shards by hash, signed with Ed25519. Also the publisher's list of this app's
// builds, signed with the release key.
import { WireError, absent, byName, bytes, integer, list, literal, moment, nullable, optional, readMessage, real, record, text, truth, type Bytes, type ValueOf } from "./forms";
import { SHORT_RELEASES, distinct, releaseId, sha256Hex, shardName } from "./ids";
import type { Primitives } from "./primitives";
import { CODEBOOK_LIMIT } from "./recall";

export const BLOB_LIMIT_BYTES = 256 * 1024 * 1024;
export const GROUPS_LIMIT = 64;
/** Default for manifests that don't state it: recall answers this many of the last releases, including the newest. */
export const RELEASES_ANSWERED = 5;

/** An immutable blob, fetched from /v1/blobs/{sha256} and stored by its hash. */
export const blobRef = record({ sha256: sha256Hex, size_bytes: integer({ min: 0, max: BLOB_LIMIT_BYTES }) });
export type BlobRef = ValueOf<typeof blobRef>;

/** K personal models of one architecture, and how a device finds its own. */
export const groups = record({
  size: integer({ min: 1, max: GROUPS_LIMIT }),
  weights: blobRef,
  centroids: blobRef,
  vectors: blobRef,
  next_centroids: blobRef,
  next_vectors: blobRef,
});

/** One model of a release: graphs by purpose, and its weights as a safetensors blob. */
export const modelEntry = record({
  architecture: text({ max: 80 }),
  role: literal("recall", "ranker"),
  graphs: byName(blobRef),
  weights: absent(blobRef),
  private: optional(list(text(), { max: 64 }), []),
  features: optional(list(text(), { max: 64 }), []),
  groups: absent(groups),
});
export type ModelEntry = ValueOf<typeof modelEntry>;

/** K user prototypes, and the cost of a report by them. */
export const codebook = record(
  {
    size: integer({ min: 2, max: CODEBOOK_LIMIT }),
    epsilon: real({ above: 0, max: 64 }),
    prototypes: blobRef,
    lineage: absent(sha256Hex),
    shares: optional(list(real(), { max: CODEBOOK_LIMIT }), []),
  },
  ({ size, shares }) => {
    const sum = shares.reduce((all, one) => all + one, 0);
    if (shares.length && (shares.length !== size || Math.min(...shares) <= 0 || Math.abs(sum - 1) > 1e-6))
      throw new WireError(`shares: ${size} numbers above 0 that add up to 1`);
  },
);
export type Codebook = ValueOf<typeof codebook>;

/** A code means the same in two codebooks with the same origin, size and epsilon. */
export function origin(book: Codebook): string {
  return book.lineage ?? book.prototypes.sha256;
}

/** How interests are found and reported under a release. */
export const recallProtocol = record(
  {
    basis_size: integer({ min: 1, max: 512 }),
    channels_limit: integer({ min: 1, max: 5 }),
    cluster_distance: real({ above: 0 }),
    score_clip: real({ above: 0 }),
    score_noise: real({ min: 0 }),
    codebooks: optional(list(codebook, { max: 8 }), []),
    pool_codes: optional(truth, false),
  },
  ({ codebooks }) => {
    if (!distinct(codebooks.map((book) => book.size))) throw new WireError("codebooks must have distinct sizes");
  },
);
export type RecallProtocol = ValueOf<typeof recallProtocol>;

/** The article vectors of one publishing day, or part of it. */
export const shardRef = record({ name: shardName, blob: blobRef, count: integer({ min: 0 }) });

/** What a device needs to serve and to train under one release. */
export const releaseManifest = record({
  release: releaseId,
  previous: nullable(releaseId),
  created_at: moment,
  encoder: text({ max: 80 }),
  dimensions: integer({ min: 1, max: 4_096 }),
  opset: integer(),
  recall: recallProtocol,
  models: byName(modelEntry),
  default_ranker: text(),
  vocabulary: absent(blobRef),
  categories: absent(blobRef),
  chain: absent(sha256Hex),
  releases_answered: optional(integer({ min: 1, max: SHORT_RELEASES }), RELEASES_ANSWERED),
  kinship_floor: absent(real({ min: -1, max: 1 })),
  news: absent(integer({ min: 0 })),
});
export type ReleaseManifest = ValueOf<typeof releaseManifest>;

/** The manifest's exact bytes (UTF-8 JSON) with the server's signature over them. */
export const signedManifest = record({ manifest: text(), signature: bytes(), public_key: bytes() });
export type SignedManifest = ValueOf<typeof signedManifest>;

/** GET /v1/releases/{number}/vectors: the pool's vector shards. */
export const shardList = record({ release: releaseId, encoder: text(), shards: list(shardRef) });
export type ShardList = ValueOf<typeof shardList>;

/** The signature isn't by the trusted key. */
export class SignatureRefused extends Error {}

/** The manifest, if the pinned key signed it. Throws SignatureRefused before parsing any of it; WireError. */
export async function verifyRelease(
  signed: SignedManifest,
  pinned: Bytes,
  primitives: Primitives,
): Promise<ReleaseManifest> {
  if (!sameBytes(signed.public_key, pinned))
    throw new SignatureRefused("the release is not signed by the pinned key");
  if (!(await primitives.verify(pinned, signed.signature, new TextEncoder().encode(signed.manifest))))
    throw new SignatureRefused("the release's signature does not match its bytes");
  return readMessage(releaseManifest, signed.manifest);
}

/** Whether two byte strings are equal. Not for secrets: the time taken reveals where they differ. */
export function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, place) => byte === other[place]);
}

/** Prefix of the signed bytes, so that no other signature of the key can pass for this one. */
const DOMAIN = "ownfeed builds of the browser's device v1\n";

/** GET /reader/builds.json: the list's exact text, and the server's signature over it. */
const signedBuilds = record({ builds: text(), signature: bytes(), public_key: bytes() });
const knownBuilds = record({ builds: list(record({ build: sha256Hex, since: moment })) });

/**
 * Whether a list signed by the trusted key has the build. "forged": this key hasn't signed the list, or it can't be
 * read; "unknown": there is no list, or no key is trusted yet.
 */
export type BuildVerdict = "listed" | "unlisted" | "forged" | "unknown";

/**
 * What a server's list says about a build, by its SHA-256 in hex; the signature is checked before the list is parsed.
 */
export async function verdictOf(
  build: string,
  answer: Bytes,
  trusted: Bytes,
  primitives: Primitives,
): Promise<Exclude<BuildVerdict, "unknown">> {
  try {
    const signed: ValueOf<typeof signedBuilds> = readMessage(signedBuilds, answer);
    const content = new TextEncoder().encode(DOMAIN + signed.builds);
    const genuine = sameBytes(signed.public_key, trusted) && (await primitives.verify(trusted, signed.signature, content));
    if (!genuine) return "forged";
    const { builds } = readMessage(knownBuilds, `{"builds":${signed.builds}}`);
    return builds.some((each) => each.build === build) ? "listed" : "unlisted";
  } catch (broken) {
    if (broken instanceof WireError) return "forged";
    throw broken;
  }
}
