// Shamir's secret sharing over a prime field a little larger than 32 bytes (Shamir 1979).
import { SHARE_BYTES } from "./secagg";
import type { Bytes } from "./forms";

/** The smallest prime above 2^256, so that every 32-byte string is a field element. */
export const PRIME = 2n ** 256n + 297n;
export const SECRET_BYTES = 32;

/** Shares that can't be made or joined; the message names the number and the limit. */
export class SharingError extends Error {}

/** A uniform number below `bound`, by rejection: draws as many bits as it has until the number is below. */
export function uniformBelow(bound: bigint, uniformBits: (size: number) => Uint8Array): bigint {
  const width = bound.toString(2).length;
  const size = Math.ceil(width / 8);
  for (;;) {
    const drawn = fromBytes(uniformBits(size)) >> BigInt(8 * size - width);
    if (drawn < bound) return drawn;
  }
}

/**
 * Splits a 32-byte secret into shares of 33 bytes, by point: any `threshold` of them give the secret, and fewer are
 * independent of it if `uniformBits` are uniform. Throws SharingError.
 */
export function splitBytes(
  secret: Uint8Array,
  threshold: number,
  points: readonly number[],
  uniformBits: (size: number) => Uint8Array,
): ReadonlyMap<number, Bytes> {
  if (secret.length !== SECRET_BYTES) throw new SharingError(`secret: ${SECRET_BYTES} bytes, got ${secret.length}`);
  checkPoints(points);
  if (!(threshold >= 1 && threshold <= points.length))
    throw new SharingError(`threshold: 1 to the ${points.length} holders, got ${threshold}`);
  const falling = Array.from({ length: threshold - 1 }, () => uniformBelow(PRIME, uniformBits));
  falling.push(fromBytes(secret));
  return new Map(
    points.map((point) => {
      const at = BigInt(point);
      const value = falling.reduce((sum, coefficient) => (sum * at + coefficient) % PRIME, 0n);
      return [point, toBytes(value, SHARE_BYTES)];
    }),
  );
}

/** Whether these bytes are a field element. */
export function isElement(share: Uint8Array): boolean {
  return fromBytes(share) < PRIME;
}

function checkPoints(points: readonly number[]): void {
  if (new Set(points).size !== points.length) throw new SharingError("points: must be distinct");
  const wrong = points.find((point) => !(Number.isSafeInteger(point) && point >= 1));
  if (wrong !== undefined) throw new SharingError(`points: must be from 1 to the prime, got ${wrong}`);
}

function fromBytes(content: Uint8Array): bigint {
  let value = 0n;
  for (const byte of content) value = (value << 8n) | BigInt(byte);
  return value;
}

function toBytes(value: bigint, size: number): Bytes {
  const content = new Uint8Array(size);
  for (let place = size - 1, left = value; place >= 0; place--, left >>= 8n) content[place] = Number(left & 0xffn);
  return content;
}
