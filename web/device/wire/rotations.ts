// How one signing key hands over to the next: a statement that both keys sign, and the chain of such statements.
import { type ValueOf, WireError, list, readMessage, record } from "./forms";
import { type Primitives, hex } from "./primitives";
import { sameBytes } from "./releases";
import { type Bytes, bytes, integer, moment, text } from "./values";

export const ROTATIONS_LIMIT = 256;
export const KEYS_LIMIT_BYTES = 512 * 1024;
export const STATEMENT_LIMIT_CHARS = 400;

const encode = (words: string): Bytes => new TextEncoder().encode(words);
const SAID_BY_OLD = "ownfeed key rotation, old key\n";
const SAID_BY_NEW = "ownfeed key rotation, new key\n";

const key = bytes({ min: 32, max: 32 });
const signature = bytes({ min: 64, max: 64 });

/** A rotation is not what it claims to be; the key trusted so far stays. */
export class RotationRefused extends Error {}

/** From this moment new_key signs what old_key signed. */
export const keyRotation = record(
  { number: integer({ min: 1, max: ROTATIONS_LIMIT }), old_key: key, new_key: key, rotated_at: moment },
  (rotation) => {
    if (sameBytes(rotation.old_key, rotation.new_key)) throw new WireError("new_key: must differ from old_key");
  },
);
export type KeyRotation = ValueOf<typeof keyRotation>;

/** The exact bytes of a KeyRotation (UTF-8 JSON), signed by its old key and by its new one. */
export const signedRotation = record({
  rotation: text({ max: STATEMENT_LIMIT_CHARS }),
  by_old_key: signature,
  by_new_key: signature,
});
export type SignedRotation = ValueOf<typeof signedRotation>;

/** GET /v1/keys: the key that signs now, and every rotation that led to it, oldest first. */
export const keyHistory = record({ public_key: key, rotations: list(signedRotation, { max: ROTATIONS_LIMIT }) });
export type KeyHistory = ValueOf<typeof keyHistory>;

/** The first 64 bits of the key's SHA-256 in hex, in groups of four, for people to compare. */
export async function fingerprint(publicKey: Bytes, primitives: Primitives): Promise<string> {
  const digits = hex(await primitives.sha256(publicKey)).slice(0, 16);
  return (digits.match(/.{4}/g) ?? []).join(" ");
}

/** The statement, if both keys that it names have signed it. Throws RotationRefused. */
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
 * The key that the rotations lead to from `trusted`, and the number of the last one followed; those up to `after` never
 * are. Throws RotationRefused if any statement is not signed by the two keys that it names.
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
