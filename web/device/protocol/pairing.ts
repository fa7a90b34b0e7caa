// Keys between members of a secure sum: signed for one round, agreed in pairs, boxes sealed with them (Bonawitz 2017).
//
// `context` is always the digest of the round's terms: keys, boxes and signatures of one round are invalid in another,
// or under other terms.
import { chacha20poly1305 } from "@noble/ciphers/chacha.js";
import { messageBytes, type Bytes } from "./forms";
import { type Primitives, joined } from "./primitives";
import { sameBytes } from "./releases";
import {
  type AdvertisedKeys,
  type MemberSignature,
  type Roster,
  SHARE_BYTES,
  SecaggError,
  type SumTerms,
  roster,
  sumTerms,
} from "./secagg";
import { isElement } from "./shamir";

const NONCE = new Uint8Array(12);
const encode = (words: string): Bytes => new TextEncoder().encode(words);

/** Four bytes, big-endian. */
function number4(value: number): Bytes {
  const content = new Uint8Array(4);
  new DataView(content.buffer).setUint32(0, value);
  return content;
}

/** SHA-256 of a round's terms, to which the round's keys and signatures are bound. */
export function termsDigest(terms: SumTerms, primitives: Primitives): Promise<Bytes> {
  return primitives.sha256(messageBytes(sumTerms, terms));
}

/** SHA-256 of the roster that every member of a complete graph must have received. */
export function rosterDigest(received: Roster, primitives: Primitives): Promise<Bytes> {
  return primitives.sha256(messageBytes(roster, { ...received, me: 1 }));
}

/** The message of the `keys` stage: the public halves of two X25519 keys, signed with this round's Ed25519 key. */
export async function signKeys(
  context: Bytes,
  identity: Bytes,
  encryptionKey: Bytes,
  maskKey: Bytes,
  primitives: Primitives,
): Promise<AdvertisedKeys> {
  return {
    encryption_key: encryptionKey,
    mask_key: maskKey,
    verify_key: primitives.signingKey(identity),
    signature: await primitives.sign(identity, keysText(context, encryptionKey, maskKey)),
  };
}

/** Throws SecaggError unless the keys are signed for this round. */
export async function checkKeys(context: Bytes, keys: AdvertisedKeys, primitives: Primitives): Promise<void> {
  const received = keysText(context, keys.encryption_key, keys.mask_key);
  if (!(await primitives.verify(keys.verify_key, keys.signature, received)))
    throw new SecaggError("the keys are not signed for this round");
}

/** Throws SecaggError if any two keys of the members are equal. */
export function checkDistinct(members: readonly AdvertisedKeys[]): void {
  const every = members.flatMap((keys) => [keys.encryption_key, keys.mask_key, keys.verify_key]).map(String);
  if (new Set(every).size !== every.length) throw new SecaggError("the same key appears twice");
}

/** This device's signature on the round, the roster and U3. */
export async function signAgreement(
  context: Bytes,
  received: Roster,
  survivors: readonly number[],
  identity: Bytes,
  primitives: Primitives,
): Promise<Bytes> {
  return primitives.sign(identity, agreementText(context, await rosterDigest(received, primitives), survivors));
}

/** Throws SecaggError unless the member with that key has signed the same round, roster and U3. */
export async function checkAgreement(
  context: Bytes,
  digest: Bytes,
  survivors: readonly number[],
  verifyKey: Bytes,
  signature: Bytes,
  primitives: Primitives,
): Promise<void> {
  if (!(await primitives.verify(verifyKey, signature, agreementText(context, digest, survivors))))
    throw new SecaggError("a member did not sign this list of survivors");
}

/** This device's signature on the round, its number, and U3 among its neighbours. */
export function signAlive(
  context: Bytes,
  me: number,
  alive: Bytes,
  identity: Bytes,
  primitives: Primitives,
): Promise<Bytes> {
  return primitives.sign(identity, aliveText(context, me, alive));
}

/** Throws SecaggError unless the member with that key has signed the same round and U3 under that number. */
export async function checkAlive(
  context: Bytes,
  { member, alive, signature }: MemberSignature,
  verifyKey: Bytes,
  primitives: Primitives,
): Promise<void> {
  if (!(await primitives.verify(verifyKey, signature, aliveText(context, member, alive ?? new Uint8Array(0)))))
    throw new SecaggError("a member did not sign this list of live members");
}

/** s_uv: the seed of the mask between two members; both compute the same. Throws SecaggError. */
export function pairSeed(
  context: Bytes,
  mine: Bytes,
  theirs: Bytes,
  members: readonly [number, number],
  primitives: Primitives,
): Promise<Bytes> {
  return agreed(context, "mask", mine, theirs, members, 32, primitives);
}

/** Keys of the boxes from the lower to the higher member, and back. Each encrypts a single box of this round. */
export async function channelKeys(
  context: Bytes,
  mine: Bytes,
  theirs: Bytes,
  members: readonly [number, number],
  primitives: Primitives,
): Promise<readonly [Bytes, Bytes]> {
  const both = await agreed(context, "box", mine, theirs, members, 64, primitives);
  return [both.slice(0, 32), both.slice(32)];
}

/** Encrypts (u, v, share of s_u, share of b_u). The nonce is fixed, since a key encrypts only one box. */
export function closeBox(key: Bytes, sender: number, receiver: number, keyShare: Bytes, seedShare: Bytes): Bytes {
  const header = joined(number4(sender), number4(receiver));
  return new Uint8Array(chacha20poly1305(key, NONCE, header).encrypt(joined(header, keyShare, seedShare)));
}

/** The two shares of a box. Throws SecaggError if it was altered, is for another pair, or holds no shares. */
export function openBox(key: Bytes, sender: number, receiver: number, closed: Bytes): readonly [Bytes, Bytes] {
  const header = joined(number4(sender), number4(receiver));
  let opened: Bytes;
  try {
    opened = new Uint8Array(chacha20poly1305(key, NONCE, header).decrypt(closed));
  } catch {
    throw new SecaggError(`the box from member ${sender} was altered, or is not for member ${receiver}`);
  }
  if (!sameBytes(opened.slice(0, 8), header))
    throw new SecaggError(`the box does not name ${sender} as its sender and ${receiver} as its receiver`);
  const shares = [opened.slice(8, 8 + SHARE_BYTES), opened.slice(8 + SHARE_BYTES)] as const;
  if (!shares.every(isElement)) throw new SecaggError(`the box from member ${sender} contains no field elements`);
  return shares;
}

/** A hash of a self mask's seed, bound to the round and the member. */
export function seedCommitment(context: Bytes, member: number, seed: Bytes, primitives: Primitives): Promise<Bytes> {
  return primitives.sha256(joined(encode("ownfeed secagg seed"), context, number4(member), seed));
}

async function agreed(
  context: Bytes,
  label: string,
  mine: Bytes,
  theirs: Bytes,
  members: readonly [number, number],
  size: number,
  primitives: Primitives,
): Promise<Bytes> {
  const [low, high] = [Math.min(...members), Math.max(...members)];
  const secret = await primitives.agree(mine, theirs);
  if (!secret) throw new SecaggError("a public key is of low order");
  return primitives.hkdf(secret, joined(encode(`ownfeed secagg ${label}`), context, number4(low), number4(high)), size);
}

function keysText(context: Bytes, encryptionKey: Bytes, maskKey: Bytes): Bytes {
  return joined(encode("ownfeed secagg keys"), context, encryptionKey, maskKey);
}

function aliveText(context: Bytes, member: number, alive: Bytes): Bytes {
  return joined(encode("ownfeed secagg alive"), context, number4(member), alive);
}

function agreementText(context: Bytes, digest: Bytes, survivors: readonly number[]): Bytes {
  return joined(encode("ownfeed secagg survivors"), context, digest, ...survivors.map(number4));
}
