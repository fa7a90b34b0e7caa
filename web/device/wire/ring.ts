// Fixed-point numbers as elements of the ring of integers mod 2^k, in which masked vectors are summed.

/** The bytes of these arrays are the wire's: little-endian, as every processor that a browser runs on is. */
export type RingVector =
  Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | BigUint64Array<ArrayBuffer>;
export type RingBits = 8 | 16 | 32 | 64;

if (new Uint8Array(new Uint16Array([1]).buffer)[0] !== 1)
  throw new Error("this device runs on little-endian machines only");

/** Numbers that don't fit the ring; the message names them. */
export class RingError extends Error {}

/** Zeros. Throws RingError for another width than 8, 16, 32 or 64. */
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

/** vector[place] = value, reduced mod 2^bits; value is a whole number, exact as a double. */
export function put(vector: RingVector, place: number, value: number): void {
  if (vector instanceof BigUint64Array) vector[place] = BigInt.asUintN(64, BigInt(value));
  else vector[place] = value; // typed arrays reduce modulo their width, exactly
}

/** Ring elements as centred integers: those of 2^(k-1) and above are negative. As doubles, beyond 2^53 the nearest. */
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
  else if (one instanceof BigUint64Array || other instanceof BigUint64Array) throw new RingError("bits: of two widths");
  else for (let place = 0; place < one.length; place++) one[place] = (one[place] ?? 0) + (other[place] ?? 0);
}

/** The nearest whole number, of two the even one. */
export function roundToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

/** How real values become ring elements: enc(x) = round(clip(x, -X, X) 2^f) mod 2^k. */
export class FixedPoint {
  /**
   * k, f, X, the most vectors in one sum, and steps left free for noise. Throws RingError where a sum could overflow.
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

  /** 2^-f: the distance of neighbouring encoded values. */
  get step(): number {
    return 2 ** -this.fractionBits;
  }

  /** Round to the nearest step, ties to even. Throws RingError for NaN or infinity. */
  encode(values: ArrayLike<number>): RingVector {
    return this.codes(values, (scaled) => roundToEven(scaled));
  }

  /** Round up with the probability of the fraction; one coin of 32 bits a value, little-endian, in their order. */
  encodeStochastic(values: ArrayLike<number>, uniformBits: (size: number) => Uint8Array<ArrayBuffer>): RingVector {
    const drawn = uniformBits(4 * values.length);
    const coins = new DataView(drawn.buffer, drawn.byteOffset, drawn.byteLength);
    return this.codes(values, (scaled, place) => {
      const floor = Math.floor(scaled);
      return (scaled - floor) * 2 ** 32 > coins.getUint32(4 * place, true) ? floor + 1 : floor;
    });
  }

  /** centred(y) / 2^f, of one code or of a sum. */
  decode(total: RingVector): Float64Array<ArrayBuffer> {
    return centred(total).map((code) => code * this.step);
  }

  /** The share of the non-zero values whose code is 0: what this step size loses. */
  roundedToZero(values: ArrayLike<number>, codes: RingVector): number {
    let [nonzero, lost] = [0, 0];
    for (let place = 0; place < values.length; place++) {
      if (values[place] === 0) continue;
      nonzero += 1;
      if (Number(codes[place]) === 0) lost += 1;
    }
    return nonzero ? lost / nonzero : 0;
  }

  private codes(values: ArrayLike<number>, round: (scaled: number, place: number) => number): RingVector {
    const vector = ringVector(values.length, this.bits);
    for (let place = 0; place < values.length; place++) {
      const value = values[place] ?? NaN;
      if (!Number.isFinite(value)) throw new RingError("values: NaN or infinity has no code");
      const scaled = Math.min(Math.max(value, -this.bound), this.bound) * 2 ** this.fractionBits;
      put(vector, place, round(scaled, place));
    }
    return vector;
  }
}
