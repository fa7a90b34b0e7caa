// Expands a 32-byte seed to a mask of any length by ChaCha20 (@noble/ciphers), and adds masks to a vector in place.
import { chacha20 } from "@noble/ciphers/chacha.js";
import { RingError, type RingVector, ringVector } from "./ring";
import type { Bytes } from "./forms";

export const SEED_BYTES = 32;
const BLOCK_BYTES = 64;
/** Per chunk of vector and mask; both stay in the processor's cache. */
const CHUNK_BYTES = 64 * 1024;
const NONCE = new Uint8Array(12);

/**
 * Writes a seed's ChaCha20 keystream (RFC 8439), nonce zero, to `out`, from byte `start` (a multiple of 64).
 *
 * Use a seed for one mask only: two vectors under one mask reveal their difference.
 */
function keystream(seed: Uint8Array, start: number, out: Uint8Array): void {
  if (seed.length !== SEED_BYTES) throw new RingError(`seed: ${SEED_BYTES} bytes, got ${seed.length}`);
  if (start % BLOCK_BYTES) throw new RingError(`start: a multiple of ${BLOCK_BYTES}, got ${start}`);
  out.fill(0);
  chacha20(seed, NONCE, out, out, start / BLOCK_BYTES);
}

/** The mask PRG(seed): `length` elements of Z_{2^bits}. */
export function expand(seed: Uint8Array, length: number, bits = 32): RingVector {
  const mask = ringVector(length, bits);
  applyMasks(mask, [seed], []);
  return mask;
}

/** vector += sum of PRG(plus) - sum of PRG(minus), in place and modulo the ring, chunk by chunk. */
export function applyMasks(vector: RingVector, plus: readonly Uint8Array[], minus: readonly Uint8Array[]): void {
  const width = vector.BYTES_PER_ELEMENT;
  const perChunk = CHUNK_BYTES / width;
  for (let start = 0; start < vector.length; start += perChunk) {
    const part = vector.subarray(start, start + perChunk);
    // whole blocks, since the cipher's counter counts blocks
    const stream = new Uint8Array(Math.ceil((part.length * width) / BLOCK_BYTES) * BLOCK_BYTES);
    for (const [seeds, sign] of [
      [plus, 1],
      [minus, -1],
    ] as const)
      for (const seed of seeds) {
        keystream(seed, start * width, stream);
        mix(part, stream.buffer, sign);
      }
  }
}

function mix(part: RingVector, stream: ArrayBuffer, sign: 1 | -1): void {
  if (part instanceof BigUint64Array) {
    const mask = new BigUint64Array(stream);
    const factor = BigInt(sign);
    for (let place = 0; place < part.length; place++)
      part[place] = BigInt.asUintN(64, (part[place] ?? 0n) + factor * (mask[place] ?? 0n));
    return;
  }
  const mask =
    part instanceof Uint32Array
      ? new Uint32Array(stream)
      : part instanceof Uint16Array
        ? new Uint16Array(stream)
        : new Uint8Array(stream);
  for (let place = 0; place < part.length; place++) part[place] = (part[place] ?? 0) + sign * (mask[place] ?? 0);
}

/** The bytes of vector + sum of PRG(plus) - sum of PRG(minus); doesn't change `vector`. */
export function maskedBytes(vector: RingVector, plus: readonly Uint8Array[], minus: readonly Uint8Array[]): Bytes {
  const masked = vector.slice() as RingVector;
  applyMasks(masked, plus, minus);
  return new Uint8Array(masked.buffer, masked.byteOffset, masked.byteLength);
}
