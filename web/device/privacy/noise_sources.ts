// Where noise comes from.
import type { Bytes } from "../wire/values";

const AT_ONCE = 65_536;

/** Uniform bits that nobody can foresee (or, in a test, repeat). */
export interface NoiseSource {
  /** n bytes, each value equally likely, independent of all before. */
  uniformBits(n: number): Bytes;
}

/** The browser's cryptographic generator: what a reader's device uses. */
export const systemNoise: NoiseSource = {
  uniformBits(n) {
    const drawn = new Uint8Array(n);
    for (let start = 0; start < n; start += AT_ONCE) crypto.getRandomValues(drawn.subarray(start, start + AT_ONCE));
    return drawn;
  },
};

/** 64-bit words, little-endian. */
export function words(source: NoiseSource, n: number): BigUint64Array<ArrayBuffer> {
  return new BigUint64Array(source.uniformBits(8 * n).buffer);
}
