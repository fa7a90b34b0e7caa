// The reporter of the mode `code`: the number of the nearest prototype; see device_app/reports/reporters/by_codebook.py.
import { realText } from "../protocol/forms";
import { type CodeReport, codeReport } from "../protocol/recall";
import type { Codebook } from "../protocol/releases";
import { type NoiseSource, uniformBelow } from "../privacy/exact_samplers";
import { type RandomisedCode, nearest } from "../privacy/mechanisms/code";
import { type ReportMeaning, gram, meaningName } from "../privacy/report_meaning";
import { type ReportInput, type Reporter, UNKNOWN } from "../privacy/reporter";
import type { Vectors } from "../vectors";

/** Reports the nearest prototype of a codebook. */
export class CodeReporter implements Reporter {
  readonly name = "code";
  readonly meaning: ReportMeaning;

  /** generation: names the current state of the encoder's vectors on this device. */
  constructor(
    readonly mechanism: RandomisedCode,
    readonly codebook: Codebook,
    private readonly prototypes: Vectors,
    encoder: string,
    generation: string,
  ) {
    const drawn = `${this.name}/${codebook.size}/${realText(codebook.epsilon)}`;
    const { sha256 } = codebook.prototypes;
    const name = meaningName(drawn, sha256, generation);
    this.meaning = { name, mechanism: drawn, encoder, directions: sha256, gram: gram(prototypes) };
  }

  /** The nearest prototype; UNKNOWN for a blank report, which is about no reader. */
  value(reader: ReportInput | null): number {
    return reader ? nearest(this.prototypes.data, reader.vector) : UNKNOWN;
  }

  /** Draws a code; for a blank report, of a uniformly drawn value, which is one more input at the same epsilon. */
  make(value: number, noise: NoiseSource): CodeReport {
    const { size } = this.codebook;
    const true_ = value === UNKNOWN ? (uniformBelow(noise, size, 1)[0] ?? 0) : value;
    return codeReport.make({ codebook: size, code: this.mechanism.release(true_, noise) });
  }
}
