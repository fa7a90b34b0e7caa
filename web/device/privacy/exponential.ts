// Whether a uniform number lies below exp(-x), with as many digits of both as it takes.
import type { NoiseSource } from "./noise_sources";

/** Bits beyond those of the uniform number to which exp(-x) is figured. */
const GUARD = 64n;

/**
 * Whether a uniform number that begins with these 64 bits is below exp(-x), x = numerator / denominator: further bits
 * are drawn, 8 bytes a time, until the two differ.
 */
export function atMostExp(
  word: bigint,
  [numerator, denominator]: readonly [bigint, bigint],
  source: NoiseSource,
): boolean {
  let bits = 64n;
  let uniform = word;
  for (;;) {
    const scale = bits + GUARD;
    const [low, high] = exponential(numerator, denominator, scale);
    if ((uniform + 1n) << GUARD <= low) return true;
    if (uniform << GUARD >= high) return false;
    uniform = (uniform << 64n) | new DataView(source.uniformBits(8).buffer).getBigUint64(0, true);
    bits += 64n;
  }
}

/**
 * Bounds of 2^scale exp(-x), a few units apart: exp(-x) = exp(-x / 2^k)^(2^k) with x / 2^k below 1, by Taylor's series.
 */
function exponential(numerator: bigint, denominator: bigint, scale: bigint): readonly [bigint, bigint] {
  let halvings = 0n;
  while (numerator >> halvings >= denominator) halvings++;
  // Each squaring doubles the error: more digits from the start, for it, for the series, and for x below 1.
  const inner = scale + halvings + 32n;
  const one = 1n << inner;
  const x = (numerator << inner) / (denominator << halvings);
  let [term, sum] = [one, one];
  for (let k = 1n; term > 0n; k++) {
    term = (term * x) / (k << inner);
    sum += k % 2n === 1n ? -term : term;
  }
  for (let squared = 0n; squared < halvings; squared++) sum = (sum * sum) >> inner;
  const cut = inner - scale;
  const value = sum >> cut;
  return [value - 2n, value + 3n];
}
