// What `sealed_reports` can seal: the reader's input, and the reporter that draws a noisy report from it.
import { type Vectors, meanOf, scaled, stacked } from "../vectors";
import type { CodeReport } from "../protocol/recall";
import type { NoiseSource } from "./exact_samplers";
import type { RandomisedCode } from "./mechanisms/code";
import type { ReportMeaning } from "./report_meaning";

/** The value of a blank report. */
export const UNKNOWN = -1;

/** The mean of clicks [H, D], scaled to length 1; zero if they cancel out or there are none. */
export function userVector(clicks: Vectors): Float32Array {
  const mean = meanOf(clicks);
  return mean ? scaled(mean) : new Float32Array(clicks.width);
}

/**
 * The input of a report; sensitive. clicks: [H, D], in interest clusters by labels [H]; searched: the second view's vector [D] of length 1, null if there
 * is none or it is excluded from reports. The views have equal weight: each gives its vector, whatever number of items
 * it is based on.
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

/** Makes the reports of one mode under one release; see device_app/privacy/reporter.py. */
export interface Reporter {
  /** The name of its report mode. */
  readonly name: string;
  readonly mechanism: RandomisedCode;
  readonly meaning: ReportMeaning;
  /** The true value that is sent with noise; UNKNOWN for a blank report, which is about no reader. */
  value(reader: ReportInput | null): number;
  /** What the report is made of, for the reader alone: the true value, and the steps that led to it. */
  shown(reader: ReportInput): readonly (readonly number[])[];
  /** Draws a report; for a blank one, of a uniformly drawn value, which is one more input at the same epsilon. */
  make(value: number, noise: NoiseSource): CodeReport;
}
