// Reporters of a number by a codebook: of the basic interest that weighs most (the default), and of the prototype
// nearest to the mean of the clicks. The other reporters of device_app/reports/reporters.py are for comparison.
import { realText } from "../protocol/forms";
import { codeReport, type CodeReport } from "../protocol/recall";
import type { Codebook } from "../protocol/releases";
import { uniformBelow, type NoiseSource } from "../privacy/exact_samplers";
import { nearest, type RandomisedCode } from "../privacy/mechanisms/code";
import { gram, meaningName, UNKNOWN, type Reporter, type ReportInput, type ReportMeaning } from "../privacy/reporter";
import { counts } from "../reading/click_clusters";
import { onPrototypes, productsWith } from "../reading/decomposition";
import type { Vectors } from "../vectors";

/** Reports the nearest prototype of a codebook. */
export class CodeReporter implements Reporter {
  readonly meaning: ReportMeaning;

  /** generation: names the current state of the encoder's vectors on this device. */
  constructor(
    readonly mechanism: RandomisedCode,
    readonly codebook: Codebook,
    protected readonly prototypes: Vectors,
    encoder: string,
    generation: string,
    readonly name: string = "code",
  ) {
    const drawn = `${this.name}/${codebook.size}/${realText(codebook.epsilon)}`;
    const { sha256 } = codebook.prototypes;
    const meant = meaningName(drawn, sha256, generation);
    this.meaning = { name: meant, mechanism: drawn, encoder, directions: sha256, gram: gram(prototypes) };
  }

  /** The nearest prototype; UNKNOWN for a blank report, which says nothing about the reader. */
  value(reader: ReportInput | null): number {
    return reader ? nearest(this.prototypes.data, reader.vector) : UNKNOWN;
  }

  /** The value alone. */
  shown(reader: ReportInput): number[][] {
    return [[this.value(reader)]];
  }

  /** Draws a code; for a blank report, of a uniformly drawn value, which is one more input at the same epsilon. */
  make(value: number, noise: NoiseSource): CodeReport {
    const { size } = this.codebook;
    const true_ = value === UNKNOWN ? (uniformBelow(noise, size, 1)[0] ?? 0) : value;
    return codeReport.make({ codebook: size, code: this.mechanism.release(true_, noise) });
  }
}

/**
 * Reports the basic interest with the largest weight over all interest clusters. A cluster's weights are the inner
 * products of its mean click with the prototypes, and its quota is its share of the clicks. Saved searches and followed
 * topics are a second view of equal weight.
 */
export class InterestReporter extends CodeReporter {
  constructor(mechanism: RandomisedCode, codebook: Codebook, prototypes: Vectors, encoder: string, generation: string) {
    super(mechanism, codebook, prototypes, encoder, generation, "interest");
  }

  /** The basic interest with the largest weight, ties go to the first; UNKNOWN for a blank report. */
  override value(reader: ReportInput | null): number {
    if (!reader) return UNKNOWN;
    const weights = this.weights(reader, this.scores(reader));
    return weights.indexOf(Math.max(...weights));
  }

  /** The value; the weights by quota [K]; and for each cluster its number of clicks and its weights [K]. */
  override shown(reader: ReportInput): number[][] {
    const [scores, held] = [this.scores(reader), counts(reader.labels)];
    const rows = scores.map((row, at) => [held[at] as number, ...row.map((score) => rounded(score / (held[at] as number)))]);
    return [[this.value(reader)], this.weights(reader, scores).map(rounded), ...rows];
  }

  private scores({ clicks, labels }: ReportInput): number[][] {
    return onPrototypes(this.prototypes, clicks, labels);
  }

  /**
   * The weight of each basic interest [K]: the clusters' weights by quota, averaged with the weights of the searches.
   */
  private weights({ clicks, searched }: ReportInput, scores: readonly (readonly number[])[]): number[] {
    const total = Array.from({ length: this.codebook.size }, (_, k) =>
      scores.reduce((sum, row) => sum + (row[k] as number), 0),
    );
    if (!searched) return total.map((each) => each / Math.max(1, clicks.rows));
    const length = lengthOfSum(clicks) || 1;
    const theirs = productsWith(this.prototypes, searched);
    return total.map((each, k) => (each / length + (theirs[k] as number)) / 2);
  }
}

function lengthOfSum({ data, rows, width }: Vectors): number {
  let squares = 0;
  for (let axis = 0; axis < width; axis++) {
    let sum = 0;
    for (let row = 0; row < rows; row++) sum += data[row * width + axis] as number;
    squares += sum * sum;
  }
  return Math.sqrt(squares);
}

function rounded(weight: number): number {
  return Math.round(weight * 1e4) / 1e4;
}
