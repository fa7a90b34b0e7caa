// What a report's number means, and when another release's codebook can be seen to mean the same. A server names its
// prototypes as it likes; this device goes by what it can compute: the prototypes' own inner products.
import type { Memo } from "../store/report_memo";
import type { Vectors } from "../vectors";
import type { Bytes } from "../wire/values";
import { digest } from "./sealed";

/**
 * Most that an inner product of two carried prototypes may differ from what it was: it decides what a number means, not
 * what is told.
 */
const GRAM_TOLERANCE = 1e-4;

/**
 * Of two reports with one `name` and one number, both say the same.
 *
 * name: hash of everything that the server has a hand in and that the true value is computed from. mechanism: by name,
 * with size and epsilon. encoder: whose vectors the reader's are. directions: hash of what these are compared with. gram:
 * the directions' inner products [n x n], which no turn of the space changes.
 */
export interface ReportMeaning {
  readonly name: string;
  readonly mechanism: string;
  readonly encoder: string;
  readonly directions: string;
  readonly gram: Float32Array;
}

/**
 * Whether a number said under `kept` may be said again, as it was drawn, under `offered`. It may under the same meaning;
 * by the same directions in the space of the same encoder; and where the offered directions are these under a turn of the
 * space, in the space of another news encoder. A turn that comes without another encoder has no reason to be.
 */
export function carriedTo(kept: ReportMeaning, offered: ReportMeaning): boolean {
  if (kept.name === offered.name) return true;
  if (kept.mechanism !== offered.mechanism || !kept.gram.length || kept.gram.length !== offered.gram.length) return false;
  if (kept.encoder === offered.encoder) return kept.directions === offered.directions;
  return kept.gram.every((value, at) => Math.abs(value - (offered.gram[at] as number)) <= GRAM_TOLERANCE);
}

/** What the report in use means. */
export function meaningOf(memo: Memo): ReportMeaning {
  const bytes = new Uint8Array(memo.gram);
  return {
    name: memo.meaning,
    mechanism: memo.mechanism,
    encoder: memo.encoder,
    directions: memo.directions,
    gram: new Float32Array(bytes.buffer, 0, Math.floor(bytes.length / 4)),
  };
}

/** Inner products of all rows together, [rows x rows], rounded to float32 once. */
export function gram(all: Vectors): Float32Array {
  const { data, rows, width } = all;
  const found = new Float32Array(rows * rows);
  for (let one = 0; one < rows; one++)
    for (let other = 0; other < rows; other++) {
      let sum = 0;
      for (let axis = 0; axis < width; axis++)
        sum += (data[one * width + axis] as number) * (data[other * width + axis] as number);
      found[one * rows + other] = sum;
    }
  return found;
}

/** SHA-256 of all that a server has a hand in and a true value is computed from: `ReportMeaning.name`. */
export function meaningName(...parts: readonly string[]): string {
  return digest(new TextEncoder().encode(parts.join("\n")));
}

/** A meaning's numbers as they are kept. */
export function gramBytes(meaning: ReportMeaning): Bytes {
  const { buffer, byteOffset, byteLength } = meaning.gram;
  return new Uint8Array(buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer);
}
