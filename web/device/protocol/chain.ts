// The chain of releases and of signing keys.
//
// Each release names its predecessors, so that one short value stands for the whole history. A signing key hands over
// to the next by a statement that both keys sign; the statements form a chain.
import { WireError, bytes, integer, list, moment, readMessage, record, text, type Bytes, type ValueOf } from "./forms";
import { releaseId, releaseNumber, sha256Hex } from "./ids";
import { hex, type Primitives } from "./primitives";
import { sameBytes } from "./releases";

export const CHAIN_LIMIT = 65_536;
/** The only numbers of recent releases that can be requested, so that the requested number reveals next to nothing. */
export const LENGTHS = [16, 256, 4_096, 65_536] as const;
const SHOWN = 20;

/** One release of the chain. */
export const chainedRelease = record({ release: releaseId, manifest_sha256: sha256Hex, published_at: moment });
export type ChainedRelease = ValueOf<typeof chainedRelease>;

/** GET /v1/releases/chain: the latest releases, oldest first, the same for every device. */
export const releaseChain = record({ releases: list(chainedRelease, { max: CHAIN_LIMIT }) }, ({ releases }) => {
  const numbers = releases.map((each) => releaseNumber(each.release));
  if (numbers.some((number, place) => place > 0 && number !== (numbers[place - 1] ?? 0) + 1))
    throw new WireError("releases must follow one another, oldest first");
});

/** The chain's head after this release; `before` is the head of the previous release, null at the start. */
export async function nextHead(
  before: string | null,
  release: string,
  manifestSha256: string,
  primitives: Primitives,
): Promise<string> {
  const parts = ["ownfeed release chain", before ?? "", String(releaseNumber(release)), manifestSha256];
  return hex(await primitives.sha256(new TextEncoder().encode(parts.join("\n"))));
}

/** The head after these releases; `before` is the head of the release before them. */
export async function headAfter(
  before: string | null,
  releases: readonly ChainedRelease[],
  primitives: Primitives,
): Promise<string | null> {
  let head = before;
  for (const each of releases) head = await nextHead(head, each.release, each.manifest_sha256, primitives);
  return head;
}

/** The head's first 20 hexadecimal digits in groups of four, for two readers to compare. */
export function readable(head: string): string {
  return (head.slice(0, SHOWN).match(/.{4}/g) ?? []).join(" ");
}

export const ROTATIONS_LIMIT = 256;
export const KEYS_LIMIT_BYTES = 512 * 1024;
export const STATEMENT_LIMIT_CHARS = 400;

const encode = (words: string): Bytes => new TextEncoder().encode(words);
const SAID_BY_OLD = "ownfeed key rotation, old key\n";
const SAID_BY_NEW = "ownfeed key rotation, new key\n";

const key = bytes({ min: 32, max: 32 });
const signature = bytes({ min: 64, max: 64 });

/** A rotation isn't valid; the key trusted so far stays in use. */
export class RotationRefused extends Error {}

/** States that from now on new_key signs instead of old_key. */
export const keyRotation = record(
  { number: integer({ min: 1, max: ROTATIONS_LIMIT }), old_key: key, new_key: key, rotated_at: moment },
  (rotation) => {
    if (sameBytes(rotation.old_key, rotation.new_key)) throw new WireError("new_key: must differ from old_key");
  },
);
export type KeyRotation = ValueOf<typeof keyRotation>;

/** The exact bytes of a KeyRotation (UTF-8 JSON), signed by its old and its new key. */
export const signedRotation = record({
  rotation: text({ max: STATEMENT_LIMIT_CHARS }),
  by_old_key: signature,
  by_new_key: signature,
});
export type SignedRotation = ValueOf<typeof signedRotation>;

/** GET /v1/keys: the current signing key, and every rotation that led to it, oldest first. */
export const keyHistory = record({ public_key: key, rotations: list(signedRotation, { max: ROTATIONS_LIMIT }) });
export type KeyHistory = ValueOf<typeof keyHistory>;

/** The first 64 bits of the key's SHA-256 in hex, in groups of four, for people to compare. */
export async function fingerprint(publicKey: Bytes, primitives: Primitives): Promise<string> {
  const digits = hex(await primitives.sha256(publicKey)).slice(0, 16);
  return (digits.match(/.{4}/g) ?? []).join(" ");
}

/** Returns the statement if both keys that it names have signed it. Throws RotationRefused. */
export async function verifyRotation(signed: SignedRotation, primitives: Primitives): Promise<KeyRotation> {
  let rotation: KeyRotation;
  try {
    rotation = readMessage(keyRotation, signed.rotation);
  } catch (broken) {
    if (broken instanceof WireError) throw new RotationRefused(`a key rotation is malformed: ${broken.message}`);
    throw broken;
  }
  const signers = [
    ["old", rotation.old_key, signed.by_old_key, SAID_BY_OLD],
    ["new", rotation.new_key, signed.by_new_key, SAID_BY_NEW],
  ] as const;
  for (const [name, signer, by, words] of signers)
    if (!(await primitives.verify(signer, by, encode(words + signed.rotation))))
      throw new RotationRefused(`rotation ${rotation.number} is not signed by its ${name} key`);
  return rotation;
}

/**
 * The key to which the rotations lead from `trusted`, and the number of the last one followed; those up to `after` are
 * never followed. Throws RotationRefused if any statement isn't signed by the two keys that it names.
 */
export async function follow(
  history: KeyHistory,
  trusted: Bytes,
  after: number,
  primitives: Primitives,
): Promise<readonly [Bytes, number]> {
  let [now, last] = [trusted, after];
  for (const signed of history.rotations) {
    const rotation = await verifyRotation(signed, primitives);
    if (sameBytes(rotation.old_key, now) && rotation.number > last) [now, last] = [rotation.new_key, rotation.number];
  }
  return [now, last];
}
