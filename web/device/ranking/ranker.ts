// The local ranker: how well candidates fit the reader's clicks, by a graph of the release.
import { GraphMismatch } from "../errors";
import { type Vectors, finite, rowOf } from "../vectors";
import type { Tensor } from "../wire/tensors";
import { FEATURES, type FeatureContext, featureColumns } from "./features";
import { type Values, leftPadded } from "./padding";
import type { GraphSession } from "./session";

const FEATURES_INPUT = "features";

/** Scores [R] of candidates, higher fits better, and what each feature adds to them, [R] by name. */
export interface Fit {
  readonly scores: Float32Array;
  readonly contributions: ReadonlyMap<string, Float64Array>;
}

/** What ranks on this device. */
export interface LocalRanker {
  readonly name: string;
  readonly features: readonly string[];
  /** This reader's own private parameters, by the model's name, if the model has any. */
  takeOwn(parameters: (model: string) => Readonly<Record<string, Tensor>>): void;
  /** Vectors [n, D] of what is saved and followed, asked for by a ranker of views alone. */
  takeViews(searched: () => Vectors): void;
  /** How well candidates [R, D] fit clicks [H, D]. Throws GraphMismatch. */
  fit(clicks: Vectors, candidates: Vectors, context: FeatureContext): Promise<Fit>;
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
   * clicks [H, D] are oldest first. Without clicks the features decide; rankers without features give zeros then. Throws
   * GraphMismatch for scores that are not finite.
   *
   * Features enter a score by one weight each. The weights are read off the graph: below the candidates, in the same run,
   * the first one stands once without features and once with each of them alone.
   */
  async fit(clicks: Vectors, candidates: Vectors, context: FeatureContext): Promise<Fit> {
    const [count, { rows, width }] = [this.features.length, candidates];
    if (!rows || !(clicks.rows || count)) return { scores: new Float32Array(rows), contributions: new Map() };
    if (!count) {
      const asGiven = { dims: [1, rows, width], data: candidates.data };
      return { scores: this.finite(await this.scores(clicks, asGiven, null)), contributions: new Map() };
    }
    const columns = featureColumns(this.features, context).data;
    const all = rows + count + 1;
    const [below, data] = [new Float32Array(all * width), new Float32Array(all * count)];
    below.set(candidates.data);
    for (let at = rows; at < all; at++) below.set(rowOf(candidates, 0), at * width);
    data.set(columns);
    for (let at = 0; at < count; at++) data[(rows + 1 + at) * count + at] = 1;
    const copied = { dims: [1, all, width], data: below, spent: true };
    const found = await this.scores(clicks, copied, { dims: [1, all, count], data });
    const contributions = new Map(
      this.features.map((name, at) => {
        const weight = (found[rows + 1 + at] as number) - (found[rows] as number);
        return [name, Float64Array.from({ length: rows }, (_, row) => weight * (columns[row * count + at] as number))] as const;
      }),
    );
    return { scores: this.finite(found.subarray(0, rows)), contributions };
  }

  private finite(scores: Float32Array): Float32Array {
    if (finite(scores)) return scores;
    throw new GraphMismatch(`scores of ${this.name}: not finite; clicks or candidates hold NaN or huge values`);
  }

  /** candidates [1, R, D] and columns [1, R, F] -> [R]. */
  private async scores(clicks: Vectors, candidates: Values, columns: Values | null): Promise<Float32Array> {
    const padded = leftPadded(clicks);
    const found = await this.graph.run({
      clicks: padded.clicks,
      click_mask: padded.mask,
      candidates,
      ...(columns && { [FEATURES_INPUT]: columns }),
    });
    const { scores } = found;
    if (!scores || scores.data.length !== candidates.dims[1]) throw new GraphMismatch(`scores of ${this.name}: missing, or too few`);
    return scores.data;
  }
}
