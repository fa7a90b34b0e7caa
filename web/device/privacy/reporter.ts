// What `sealed_reports` can seal: the reader's input, and the reporter that draws a noisy report from it.
//
// A report's number may provably mean the same under another release's codebook. A server may name its
// prototypes as it likes; this device uses what it can compute: the prototypes' own inner products.
import type { Memo } from "../store/report_memo";
import { meanOf, scaled, stacked, type Vectors } from "../vectors";
import type { Bytes } from "../protocol/forms";
import { digest } from "./sealed";
import type { Report } from "../protocol/recall";
import type { NoiseSource } from "./exact_samplers";

/**
 * The most by which an inner product of two carried prototypes may change. It decides what a number means, not what is
 * sent.
 */
const GRAM_TOLERANCE = 1e-4;

/**
 * What a report's number means: reports with the same `name` and number say the same.
 * name: hash of everything that the server influences and the true value is computed from. mechanism: its name, size
 * and epsilon. encoder: the encoder of the reader's vectors. directions: hash of the prototypes that the vectors are
 * compared with. gram: the directions' inner products [n x n], invariant under rotations of the space.
 */
export interface ReportMeaning {
  readonly name: string;
  readonly mechanism: string;
  readonly encoder: string;
  readonly directions: string;
  readonly gram: Float32Array;
}

/**
 * Whether a number sent under `kept` may be sent again, as drawn, under `offered`. True for the same meaning; for the
 * same directions in the space of the same encoder; and if the offered directions are a rotation of these, in the space
 * of another encoder. A rotation under the same encoder has no justification.
 */
export function carriedTo(kept: ReportMeaning, offered: ReportMeaning): boolean {
  if (kept.name === offered.name) return true;
  if (kept.mechanism !== offered.mechanism || !kept.gram.length || kept.gram.length !== offered.gram.length) return false;
  if (kept.encoder === offered.encoder) return kept.directions === offered.directions;
  return kept.gram.every((value, at) => Math.abs(value - (offered.gram[at] as number)) <= GRAM_TOLERANCE);
}

/** The meaning of the report in use. */
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

/** Inner products of all rows, [rows x rows], rounded to float32 once. */
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

/** SHA-256 of everything that a server influences and a true value is computed from: `ReportMeaning.name`. */
export function meaningName(...parts: readonly string[]): string {
  return digest(new TextEncoder().encode(parts.join("\n")));
}

/** A meaning's numbers as stored. */
export function gramBytes(meaning: ReportMeaning): Bytes {
  const { buffer, byteOffset, byteLength } = meaning.gram;
  return new Uint8Array(buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer);
}

/** The value under which a blank report is stored. */
export const UNKNOWN = -1;

/** The mean of clicks [H, D], scaled to length 1; zero if they cancel out or there are none. */
export function userVector(clicks: Vectors): Float32Array {
  const mean = meanOf(clicks);
  return mean ? scaled(mean) : new Float32Array(clicks.width);
}

/**
 * The input of a report; sensitive. clicks: [H, D], in interest clusters by labels [H]; searched: the second view's vector [D] of length 1, null if there
 * is none or it is excluded from reports. The views have equal weight: each contributes its vector, regardless of the
 * number of items behind it.
 */
export class ReportInput {
  constructor(
    readonly clicks: Vectors,
    readonly labels: readonly number[],
    readonly searched: Float32Array | null = null,
  ) {}

  get vector(): Float32Array {
    const read = userVector(this.clicks);
    return this.searched ? userVector(stacked([read, this.searched], read.length)) : read;
  }
}

/** A mechanism by a codebook, as the ledger and the page see it. */
export interface Mechanism {
  /** Cost of one new report. */
  readonly epsilon: number;
  /** The probability that the value sent is true, where that applies. */
  readonly truth?: number;
  /** The mechanism's numbers for people, by the names in its label's texts. */
  readonly figures: Readonly<Record<string, number>>;
  /** The mechanism's numbers, for the ledger. */
  readonly parameters: Readonly<Record<string, number>>;
}

/** Makes the reports of one mode under one release; see device_app/privacy/reporter.py. */
export interface Reporter {
  /** The name of its report mode. */
  readonly name: string;
  readonly mechanism: Mechanism;
  readonly meaning: ReportMeaning;
  /** The true value that is sent with noise; UNKNOWN for a blank report, which says nothing about the reader. */
  value(reader: ReportInput | null): number;
  /** What the report is made from, for the reader only: the true value and the steps to it. */
  shown(reader: ReportInput): readonly (readonly number[])[];
  /** Draws a report; for a blank one, of a uniformly drawn value, which is one more input at the same epsilon. */
  make(value: number, noise: NoiseSource): Report;
}
