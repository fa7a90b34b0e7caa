// How similar two articles must be before a page calls them close: a similarity that random pairs rarely have. Both
// sides compute it the same way, over pairs picked by a seeded generator: numpy's `default_rng(0)`, PCG64 (O'Neill
// 2014), and bounded integers by Lemire's method (2019).
import { lengthOf, product, rowOf, type Vectors } from "../vectors";

const SIMILARITY_PERCENTILE = 99.985;
const PAIRS = 200_000;
/** With fewer articles, rarity can't be estimated. */
const FEWEST_NEWS = 50;

/** State and increment of `numpy.random.default_rng(0)`. */
const SEEDED = [35399562948360463058890781895381311971n, 87136372517582989555478159403783844777n] as const;
const FACTOR = 47026247687942121848144207491837523525n;
const MASK_128 = (1n << 128n) - 1n;
const MASK_64 = (1n << 64n) - 1n;

/** numpy's PCG64, 32 bits at a time: the low half of a word first. */
class Pcg64 {
  private state: bigint = SEEDED[0];
  private kept: number | null = null;

  bits32(): number {
    if (this.kept !== null) {
      const high = this.kept;
      this.kept = null;
      return high;
    }
    this.state = (this.state * FACTOR + SEEDED[1]) & MASK_128;
    const [folded, turn] = [((this.state >> 64n) ^ this.state) & MASK_64, this.state >> 122n];
    const word = ((folded >> turn) | (folded << (-turn & 63n))) & MASK_64;
    this.kept = Number(word >> 32n);
    return Number(word & 0xffffffffn);
  }

  /** Integers below `limit`. */
  below(limit: number, count: number): Int32Array {
    const [wide, threshold] = [BigInt(limit), (0x1_0000_0000 - limit) % limit];
    return Int32Array.from({ length: count }, () => {
      if (limit === 1) return 0;
      let found = BigInt(this.bits32()) * wide;
      while (Number(found & 0xffffffffn) < threshold) found = BigInt(this.bits32()) * wide;
      return Number(found >> 32n);
    });
  }
}

/**
 * The cosine above which two of these articles [n, D] count as similar, from -1 to 1: a percentile of the cosines of
 * random pairs of different rows; null for fewer than FEWEST_NEWS. The same rows give the same floor.
 */
export function similarityFloor(vectors: Vectors): number | null {
  const { rows } = vectors;
  if (rows < FEWEST_NEWS) return null;
  const random = new Pcg64();
  const first = random.below(rows, PAIRS);
  const apart = random.below(rows - 1, PAIRS);
  const lengths = Float32Array.from({ length: rows }, (_, row) => Math.max(lengthOf(rowOf(vectors, row)), 1e-12));
  const found = new Float32Array(PAIRS);
  for (let pair = 0; pair < PAIRS; pair++) {
    const one = first[pair] as number;
    const other = (one + (apart[pair] as number) + 1) % rows;
    const scale = Math.fround((lengths[one] as number) * (lengths[other] as number));
    found[pair] = product(rowOf(vectors, one), rowOf(vectors, other)) / scale;
  }
  found.sort();
  const place = (SIMILARITY_PERCENTILE / 100) * (PAIRS - 1);
  const [low, high] = [found[Math.floor(place)] as number, found[Math.ceil(place)] as number];
  return Math.min(1, Math.max(-1, low + (high - low) * (place - Math.floor(place))));
}
