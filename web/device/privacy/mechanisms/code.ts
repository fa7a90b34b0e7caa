// One code: the nearest of K public prototypes, sent by randomised response (docs/decisions/017).
import { CODEBOOK_LIMIT } from "../../protocol/recall";
import type { Codebook, RecallProtocol } from "../../protocol/releases";
import { randomisedResponse, rational, type NoiseSource } from "../exact_samplers";

/**
 * Sends a reader's code y in 0 .. K - 1 as itself with probability e^eps / (e^eps + K - 1), else as another.
 *
 * eps-local differential privacy of one drawn code, exactly; a code drawn before must be sent again unchanged. Not
 * covered: when and how often a report changes, that a device sends requests at all, and its address.
 */
export class RandomisedCode {
  /** size: K. epsilon: of one report. Throws RangeError for values that no release may offer. */
  constructor(
    readonly size: number,
    readonly epsilon: number,
  ) {
    if (!(Number.isInteger(size) && size >= 2 && size <= CODEBOOK_LIMIT))
      throw new RangeError(`size must be 2 to ${CODEBOOK_LIMIT}; got ${size}`);
    rational(epsilon);
  }

  /** P(the code sent is the true one): 0.7845 at K = 16, eps = 4. */
  get truth(): number {
    return 1 / (1 + (this.size - 1) * Math.exp(-this.epsilon));
  }

  /** Draws the code to send. Throws RangeError unless code is 0 .. K - 1. */
  release(code: number, source: NoiseSource): number {
    if (!(Number.isInteger(code) && code >= 0 && code < this.size))
      throw new RangeError(`code must be 0 to ${this.size - 1}; got ${code}`);
    return randomisedResponse(source, [code], this.size, this.epsilon)[0] ?? 0;
  }

  /** Returns the mechanism's numbers for people, by the names in its label's texts. */
  get figures(): Readonly<Record<string, number>> {
    return { size: this.size, last: this.size - 1, percent: 100 * this.truth };
  }

  /** Returns the mechanism's numbers, for the ledger. */
  get parameters(): Readonly<Record<string, number>> {
    return { size: this.size, epsilon: this.epsilon };
  }
}

/** The codebook of the greatest epsilon within the limit (ties: the largest); null if there is none. */
export function affordable(protocol: RecallProtocol, epsilonLimit: number): Codebook | null {
  const within = protocol.codebooks.filter((book) => book.epsilon <= epsilonLimit);
  within.sort((one, other) => other.epsilon - one.epsilon || other.size - one.size);
  return within[0] ?? null;
}

/**
 * argmax_k <prototype_k, u>; ties go to the first. prototypes [K, D] in rows, user [D]. Inner products are summed in
 * doubles, in float32 on the Python device: two prototypes within that rounding may swap.
 *
 * Throws RangeError for another shape, or a user vector that isn't finite.
 */
export function nearest(prototypes: Float32Array, user: Float32Array): number {
  const dimensions = user.length;
  if (!dimensions || !prototypes.length || prototypes.length % dimensions)
    throw new RangeError(`user has ${dimensions} numbers, prototypes ${prototypes.length}`);
  if (!user.every(Number.isFinite)) throw new RangeError("user has values that are not finite: nothing is released");
  let [best, most] = [0, -Infinity];
  for (let row = 0; row * dimensions < prototypes.length; row++) {
    let product = 0;
    for (let axis = 0; axis < dimensions; axis++)
      product += (prototypes[row * dimensions + axis] ?? 0) * (user[axis] ?? 0);
    if (product > most) [best, most] = [row, product];
  }
  return best;
}
