// The feed's random numbers: Python's `random.Random`, so that a seed gives the same draws on both devices (Matsumoto
// and Nishimura 1998; seeding as in CPython's `random.seed` version 2). In the product the seed comes from the
// browser's cryptographic generator.
import { sha512 } from "@noble/hashes/sha2.js";
import { systemNoise } from "../privacy/exact_samplers";

/** The feed's source of randomness. */
export interface Chance {
  /** 64 uniform bits. */
  bits64(): bigint;
}

/** The browser's cryptographic generator, which a reader's device uses. */
export const systemChance: Chance = {
  bits64: () => new DataView(systemNoise.uniformBits(8).buffer).getBigUint64(0, true),
};

/** Uniform in [0, 1), with 53 bits. */
export function uniform(chance: Chance): number {
  return Number(chance.bits64() >> 11n) / 2 ** 53;
}

const UTF_8 = new TextEncoder();
const N = 624;
const M = 397;
const SHA512_BYTES = 64;

/** `random.Random(seed)`: MT19937. Not for secrets. */
export class PythonRandom implements Chance {
  private readonly state: Uint32Array;
  private at = 0;

  /** Seeds with an integer's absolute value, or with a string's bytes (UTF-8) followed by their SHA-512. */
  constructor(seed: bigint | string) {
    this.state = UNSEEDED.slice();
    if (typeof seed === "bigint") this.seedBy(wordsOf(seed < 0n ? -seed : seed));
    else this.seedBy(bytesSeed(UTF_8.encode(seed)));
  }

  /** 32 bits. The state is twisted one word at a time, since a draw needs only two of its 624 words. */
  private next(): number {
    const { state, at } = this;
    this.at = (at + 1) % N;
    let y = ((state[at] as number) & 0x80000000) | ((state[this.at] as number) & 0x7fffffff);
    y = state[at] = (state[(at + M) % N] as number) ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    y ^= y >>> 18;
    return y >>> 0;
  }

  /** A double in [0, 1), with 53 bits. */
  random(): number {
    const [high, low] = [this.next() >>> 5, this.next() >>> 6];
    return (high * 67_108_864 + low) / 9_007_199_254_740_992;
  }

  bits64(): bigint {
    const low = BigInt(this.next());
    return (BigInt(this.next()) << 32n) | low;
  }

  private seedBy(key: Uint32Array): void {
    const { state } = this;
    let [i, j] = [1, 0];
    for (let k = Math.max(N, key.length); k; k--) {
      state[i] = ((state[i] as number) ^ mixed(state, i - 1, 1_664_525, 0)) + (key[j] as number) + j;
      if (++i >= N) [state[0], i] = [state[N - 1] as number, 1];
      if (++j >= key.length) j = 0;
    }
    for (let k = N - 1; k; k--) {
      state[i] = ((state[i] as number) ^ mixed(state, i - 1, 1_566_083_941, 0)) - i;
      if (++i >= N) [state[0], i] = [state[N - 1] as number, 1];
    }
    state[0] = 0x80000000;
  }
}

/** The state that every seed is mixed into, cached because computing it is half the cost of seeding. */
const UNSEEDED = new Uint32Array(N);
UNSEEDED[0] = 19_650_218;
for (let i = 1; i < N; i++) UNSEEDED[i] = mixed(UNSEEDED, i - 1, 1_812_433_253, 0) + i;

function mixed(state: Uint32Array, at: number, factor: number, plus: number): number {
  const word = state[at] as number;
  return (Math.imul(word ^ (word >>> 30), factor) + plus) >>> 0;
}

/** The bytes followed by their hash as one big integer, in words as in `wordsOf`. */
function bytesSeed(bytes: Uint8Array): Uint32Array {
  const whole = new Uint8Array(bytes.length + SHA512_BYTES);
  whole.set(bytes);
  whole.set(sha512(bytes), bytes.length);
  whole.reverse();
  const words = new Uint32Array(Math.ceil(whole.length / 4));
  whole.forEach((byte, at) => (words[at >> 2] = (words[at >> 2] as number) | (byte << (8 * (at & 3)))));
  let count = words.length;
  while (count > 1 && !words[count - 1]) count -= 1;
  return words.subarray(0, count);
}

/** 32-bit words, lowest first; at least one. */
function wordsOf(whole: bigint): Uint32Array {
  const found: number[] = [];
  for (let left = whole; left > 0n; left >>= 32n) found.push(Number(left & 0xffffffffn));
  return Uint32Array.from(found.length ? found : [0]);
}

/** One uniform number in [0, 1] per name. Adding or removing a name changes no other's number. */
export function lots(chance: Chance, names: Iterable<string>): Map<string, number> {
  const salt = chance.bits64();
  return new Map(Array.from(names, (name) => [name, new PythonRandom(`${salt} ${name}`).random()]));
}
