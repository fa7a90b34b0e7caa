// Fixed-point numbers as elements of the ring of integers mod 2^k, in which masked vectors are summed.
//
// Also the layout of a weighted update as one ring vector, and of an opened sum (Efficient-FedRec, section 3.4).
//
// A mask of any length is a 32-byte seed, expanded by ChaCha20 (@noble/ciphers) and added to a vector in place.
import { chacha20 } from "@noble/ciphers/chacha.js";
import type { Bytes } from "./forms";

/** These arrays' bytes are the wire format: little-endian, like every processor that runs a browser. */
export type RingVector =
  Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | BigUint64Array<ArrayBuffer>;

if (new Uint8Array(new Uint16Array([1]).buffer)[0] !== 1)
  throw new Error("this device runs on little-endian machines only");

/** Numbers that don't fit the ring; the message names them. */
export class RingError extends Error {}

/** Zeros. Throws RingError for a width other than 8, 16, 32 or 64. */
export function ringVector(length: number, bits: number): RingVector {
  if (bits === 8) return new Uint8Array(length);
  if (bits === 16) return new Uint16Array(length);
  if (bits === 32) return new Uint32Array(length);
  if (bits === 64) return new BigUint64Array(length);
  throw new RingError(`bits: a ring has 8, 16, 32, 64 bits, got ${bits}`);
}

/** k of a vector's ring. */
export function bitsOf(vector: RingVector): number {
  return 8 * vector.BYTES_PER_ELEMENT;
}

/** vector[place] = value mod 2^bits; value is an integer, exact as a double. */
export function put(vector: RingVector, place: number, value: number): void {
  if (vector instanceof BigUint64Array) vector[place] = BigInt.asUintN(64, BigInt(value));
  else vector[place] = value; // typed arrays reduce modulo their width exactly
}

/** Ring elements as centred integers: those from 2^(k-1) up are negative. As doubles, rounded beyond 2^53. */
export function centred(vector: RingVector): Float64Array<ArrayBuffer> {
  const { buffer, byteOffset, length } = vector;
  if (vector instanceof BigUint64Array) return Float64Array.from(new BigInt64Array(buffer, byteOffset, length), Number);
  if (vector instanceof Uint32Array) return Float64Array.from(new Int32Array(buffer, byteOffset, length));
  if (vector instanceof Uint16Array) return Float64Array.from(new Int16Array(buffer, byteOffset, length));
  return Float64Array.from(new Int8Array(buffer, byteOffset, length));
}

/** one += other, mod the ring. */
export function addTo(one: RingVector, other: RingVector): void {
  if (one instanceof BigUint64Array && other instanceof BigUint64Array)
    for (let place = 0; place < one.length; place++) one[place] = (one[place] ?? 0n) + (other[place] ?? 0n);
  else if (one instanceof BigUint64Array || other instanceof BigUint64Array) throw new RingError("bits: the two vectors have different widths");
  else for (let place = 0; place < one.length; place++) one[place] = (one[place] ?? 0) + (other[place] ?? 0);
}

/** Rounds to the nearest integer, ties to even. */
export function roundToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

/** Encodes real values as ring elements: enc(x) = round(clip(x, -X, X) 2^f) mod 2^k. */
export class FixedPoint {
  /**
   * k, f, X, the largest number of vectors in a sum, and steps reserved for noise. Throws RingError if a sum could
   * overflow.
   */
  constructor(
    readonly bits: number,
    readonly fractionBits: number,
    readonly bound: number,
    readonly contributors: number,
    readonly headroom = 0,
  ) {
    ringVector(0, bits);
    if (fractionBits < 0) throw new RingError(`fraction_bits: at least 0, got ${fractionBits}`);
    if (!(Number.isFinite(bound) && bound > 0)) throw new RingError(`bound: positive and finite, got ${bound}`);
    if (contributors < 1) throw new RingError(`contributors: at least 1, got ${contributors}`);
    const reach = contributors * bound * 2 ** fractionBits + headroom;
    if (!(reach < 2 ** (bits - 1)))
      throw new RingError(`overflow: n X 2^f + headroom = ${reach} must be below 2^(k-1) = ${2 ** (bits - 1)}`);
  }

  /** 2^-f: the distance between neighbouring encoded values. */
  get step(): number {
    return 2 ** -this.fractionBits;
  }

  /** Rounds to the nearest step, ties to even. Throws RingError for NaN or infinity. */
  encode(values: ArrayLike<number>): RingVector {
    const vector = ringVector(values.length, this.bits);
    for (let place = 0; place < values.length; place++) {
      const value = values[place] ?? NaN;
      if (!Number.isFinite(value)) throw new RingError("values: NaN and infinity can't be encoded");
      const scaled = Math.min(Math.max(value, -this.bound), this.bound) * 2 ** this.fractionBits;
      put(vector, place, roundToEven(scaled));
    }
    return vector;
  }

  /** centred(y) / 2^f, for one code or a sum. */
  decode(total: RingVector): Float64Array<ArrayBuffer> {
    return centred(total).map((code) => code * this.step);
  }

  /** The share of nonzero values whose code is 0: what this step size loses. */
  roundedToZero(values: ArrayLike<number>, codes: RingVector): number {
    let [nonzero, lost] = [0, 0];
    for (let place = 0; place < values.length; place++) {
      if (values[place] === 0) continue;
      nonzero += 1;
      if (Number(codes[place]) === 0) lost += 1;
    }
    return nonzero ? lost / nonzero : 0;
  }
}

/** A tensor of an update: its values in C order, and its shape. */
export interface Values {
  readonly shape: readonly number[];
  readonly values: ArrayLike<number>;
}

/** Compares texts by code points, as Python does. */
export function byCodePoint(one: string, other: string): number {
  const [a, b] = [[...one], [...other]];
  for (let place = 0; place < Math.min(a.length, b.length); place++) {
    const difference = (a[place]?.codePointAt(0) ?? 0) - (b[place]?.codePointAt(0) ?? 0);
    if (difference) return difference;
  }
  return a.length - b.length;
}

/** The layout of the vector: [n_u g by ascending name, each in C order | n_u]. */
export class UpdateLayout {
  private readonly places: readonly { readonly name: string; readonly start: number; readonly size: number }[];
  /** Number of coordinates without n_u. */
  readonly coordinates: number;

  /** shapes: of the tensors, by name. fixed: the encoding of n_u g. samplesLimit: the cap of n_u. */
  constructor(
    readonly shapes: ReadonlyMap<string, readonly number[]>,
    readonly fixed: FixedPoint,
    readonly samplesLimit: number,
  ) {
    if (!shapes.size) throw new RangeError("shapes: an update has at least one tensor");
    if (samplesLimit < 1) throw new RangeError(`samples_limit: at least 1, got ${samplesLimit}`);
    if (fixed.contributors * samplesLimit >= 2 ** (fixed.bits - 1))
      throw new RingError(
        `overflow: ${fixed.contributors} x ${samplesLimit} samples must be below 2^${fixed.bits - 1}`,
      );
    let start = 0;
    this.places = [...shapes.keys()].sort(byCodePoint).map((name) => {
      const size = (shapes.get(name) ?? []).reduce((all, axis) => all * axis, 1);
      start += size;
      return { name, start: start - size, size };
    });
    this.coordinates = start;
  }

  /** Number of ring elements. */
  get length(): number {
    return this.coordinates + 1;
  }

  /**
   * Encodes a device's vector from its mean gradient g_u and its n_u. Throws RangeError for other names or shapes, or
   * n_u outside 0 .. samplesLimit; RingError for NaN.
   */
  encode(update: ReadonlyMap<string, Values>, samples: number): RingVector {
    if (!(samples >= 0 && samples <= this.samplesLimit))
      throw new RangeError(`samples: 0 to ${this.samplesLimit}, got ${samples}`);
    if (update.size !== this.shapes.size || [...update.keys()].some((name) => !this.shapes.has(name)))
      throw new RangeError(
        `tensors: expected ${[...this.shapes.keys()].join(", ")}, got ${[...update.keys()].join(", ")}`,
      );
    const vector = ringVector(this.length, this.fixed.bits);
    for (const { name, start, size } of this.places) {
      const tensor = update.get(name);
      const shape = this.shapes.get(name) ?? [];
      if (!tensor || tensor.values.length !== size || tensor.shape.join() !== shape.join())
        throw new RangeError(`tensor ${name}: shape ${tensor?.shape.join()}, expected ${shape.join()}`);
      const codes = this.fixed.encode(Float64Array.from(tensor.values, (value) => samples * value));
      (vector.set as (codes: RingVector, start: number) => void).call(vector, codes, start);
    }
    put(vector, this.coordinates, samples);
    return vector;
  }

  /** All values in vector order, as doubles. */
  flat(update: ReadonlyMap<string, Values>): Float64Array<ArrayBuffer> {
    const flat = new Float64Array(this.coordinates);
    for (const { name, start } of this.places) flat.set(Float64Array.from(update.get(name)?.values ?? []), start);
    return flat;
  }
}

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
