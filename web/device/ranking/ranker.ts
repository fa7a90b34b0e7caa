// The local ranker: how well candidates fit the reader's clicks, by a graph of the release.
import { GraphMismatch } from "../errors";
import { type Vectors, finite, rowOf } from "../vectors";
import type { Tensor } from "../wire/tensors";
import { FEATURES, type FeatureContext, featureColumns } from "./features";
import { type Values, leftPadded } from "./padding";
import type { GraphSession } from "./session";

const FEATURES_INPUT = "features";

/** What ranks on this device. */
export interface LocalRanker {
  readonly name: string;
  readonly features: readonly string[];
  /** This reader's own private parameters, by the model's name, if the model has any. */
  takeOwn(parameters: (model: string) => Readonly<Record<string, Tensor>>): void;
  /** Vectors [n, D] of what is saved and followed, asked for by a ranker of views alone. */
  takeViews(searched: () => Vectors): void;
  /** Scores [R] of candidates [R, D] for clicks [H, D], higher fits better. Throws GraphMismatch. */
  score(clicks: Vectors, candidates: Vectors, context: FeatureContext): Promise<Float32Array>;
  /** What each feature adds to `score`, [R] by name. */
  contributions(clicks: Vectors, candidates: Vectors, context: FeatureContext): Promise<Map<string, Float64Array>>;
}

/** Scores candidates with a `score` graph. */
export class Ranker implements LocalRanker {
  /**
   * features: what the graph's input `features` holds, in order; none for a graph without that input. Throws
   * GraphMismatch if graph and features do not fit, or for a feature that this program does not compute.
   */
  constructor(
    private readonly graph: GraphSession,
    readonly name: string,
    readonly features: readonly string[],
  ) {
    const unknown = features.find((each) => !FEATURES.has(each));
    if (unknown) throw new GraphMismatch(`feature ${unknown} of ${name}: this program does not compute it`);
    const declared = graph.inputs.includes(FEATURES_INPUT);
    if (declared === features.length > 0) return;
    const named = features.join(", ") || "none";
    const does = declared ? "declares" : "does not declare";
    throw new GraphMismatch(`input ${FEATURES_INPUT} of ${name}: the graph ${does} it; features named: ${named}`);
  }

  /** This reader's own private parameters, by the model's name, if the model has any. */
  takeOwn(parameters: (model: string) => Readonly<Record<string, Tensor>>): void {
    if (this.graph.private.size) this.graph.takePrivate(parameters(this.name));
  }

  /** Nothing: it weighs clicks, whatever other views a reader has. */
  takeViews(): void {}

  /**
   * clicks [H, D] oldest first, candidates [R, D] -> scores [R], higher fits better. Without clicks the features decide;
   * rankers without features give zeros then. Throws GraphMismatch for scores that are not finite.
   */
  async score(clicks: Vectors, candidates: Vectors, context: FeatureContext): Promise<Float32Array> {
    if (!candidates.rows || !(clicks.rows || this.features.length)) return new Float32Array(candidates.rows);
    const columns = this.features.length ? featureColumns(this.features, context) : null;
    const scores = await this.scores(clicks, candidates, columns);
    if (finite(scores)) return scores;
    throw new GraphMismatch(`scores of ${this.name}: not finite; clicks or candidates hold NaN or huge values`);
  }

  /**
   * What each feature adds to `score`, [R] by name; empty for a ranker without features. Features enter a score by one
   * weight each; the weights are read off the graph by scoring one candidate with each feature alone.
   */
  async contributions(clicks: Vectors, candidates: Vectors, context: FeatureContext): Promise<Map<string, Float64Array>> {
    const count = this.features.length;
    if (!count || !candidates.rows) return new Map();
    const alone = new Float32Array((count + 1) * count);
    for (let at = 0; at < count; at++) alone[(at + 1) * count + at] = 1;
    const first = rowOf(candidates, 0);
    const same = new Float32Array((count + 1) * candidates.width);
    for (let at = 0; at <= count; at++) same.set(first, at * candidates.width);
    const repeated = { data: same, rows: count + 1, width: candidates.width };
    const found = await this.scores(clicks, repeated, { dims: [1, count + 1, count], data: alone });
    const columns = featureColumns(this.features, context).data;
    return new Map(
      this.features.map((name, at) => {
        const weight = (found[at + 1] as number) - (found[0] as number);
        const of = (_: unknown, row: number) => weight * (columns[row * count + at] as number);
        return [name, Float64Array.from({ length: candidates.rows }, of)] as const;
      }),
    );
  }

  private async scores(clicks: Vectors, candidates: Vectors, columns: Values | null): Promise<Float32Array> {
    const padded = leftPadded(clicks);
    const found = await this.graph.run({
      clicks: padded.clicks,
      click_mask: padded.mask,
      candidates: { dims: [1, candidates.rows, candidates.width], data: candidates.data },
      ...(columns && { [FEATURES_INPUT]: columns }),
    });
    const { scores } = found;
    if (scores?.data.length !== candidates.rows) throw new GraphMismatch(`scores of ${this.name}: missing, or too few`);
    return scores.data;
  }
}
