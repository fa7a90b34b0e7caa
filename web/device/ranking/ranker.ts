// The local ranker: how well candidates fit the reader's clicks, by a graph of the release. Besides vectors it may use
// features of a candidate that are computed on the device from the reader's own data.
import { GraphMismatch } from "../errors";
import type { Tensor } from "../protocol/tensors";
import { finite, rowOf, type Vectors } from "../vectors";
import { leftPadded, type Values } from "./padding";
import type { GraphSession } from "./session";

/**
 * R candidates beside the reader's H clicks. Sensitive: never leaves the device. sections and topics are [R],
 * clickedSections and clickedTopics [H]; recency [R] is 1 for articles published now and halves with every half-life;
 * popularity [R] is from -1 to 1, 0 if nothing is known.
 */
export interface FeatureContext {
  readonly sections: readonly string[];
  readonly topics: readonly string[];
  readonly clickedSections: readonly string[];
  readonly clickedTopics: readonly string[];
  readonly recency: Float64Array;
  readonly popularity: Float64Array;
}

/** [R]: the share of clicks with the candidate's name; zeros without clicks. */
export function shareOfClicks(column: readonly string[], clicked: readonly string[]): Float64Array {
  const counts = new Map<string, number>();
  for (const name of clicked) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Float64Array.from(column, (name) => (counts.get(name) ?? 0) / Math.max(1, clicked.length));
}

/** Every feature this program computes, by the name used in a release's model; each [R], within -1 to 1. */
export const FEATURES: ReadonlyMap<string, (seen: FeatureContext) => Float64Array> = new Map([
  ["section_affinity", (seen: FeatureContext) => shareOfClicks(seen.sections, seen.clickedSections)],
  ["topic_affinity", (seen: FeatureContext) => shareOfClicks(seen.topics, seen.clickedTopics)],
  ["popularity", (seen: FeatureContext) => seen.popularity],
  ["recency", (seen: FeatureContext) => seen.recency],
]);

/** [1, R, F], one column for each of `names`, in order. Throws RangeError for a name not in FEATURES. */
export function featureColumns(names: readonly string[], context: FeatureContext): Values {
  const columns = names.map((name) => {
    const feature = FEATURES.get(name);
    if (!feature) throw new RangeError(`feature ${name}: this program does not compute it`);
    return feature(context);
  });
  const [rows, width] = [context.sections.length, names.length];
  const data = new Float32Array(rows * width);
  columns.forEach((column, at) => column.forEach((value, row) => (data[row * width + at] = value)));
  return { dims: [1, rows, width], data };
}

const FEATURES_INPUT = "features";

/** Scores [R] of candidates, higher fits better, and each feature's contribution, [R] by name. */
export interface Fit {
  readonly scores: Float32Array;
  readonly contributions: ReadonlyMap<string, Float64Array>;
}

/** A ranker on this device. */
export interface LocalRanker {
  readonly name: string;
  readonly features: readonly string[];
  /** Sets this reader's private parameters, by the model's name, if the model has any. */
  takeOwn(parameters: (model: string) => Readonly<Record<string, Tensor>>): void;
  /** Sets vectors [n, D] of what is saved and followed; used only by multi-view rankers. */
  takeViews(searched: () => Vectors): void;
  /** Returns how well candidates [R, D] fit clicks [H, D]. Throws GraphMismatch. */
  fit(clicks: Vectors, candidates: Vectors, context: FeatureContext): Promise<Fit>;
}

/** Scores candidates with a `score` graph. */
export class Ranker implements LocalRanker {
  /**
   * features: the contents of the graph's input `features`, in order; empty for a graph without it. Throws
   * GraphMismatch if graph and features don't fit, or for a feature that this program doesn't compute.
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

  /** Sets this reader's private parameters, by the model's name, if the model has any. */
  takeOwn(parameters: (model: string) => Readonly<Record<string, Tensor>>): void {
    if (this.graph.private.size) this.graph.takePrivate(parameters(this.name));
  }

  /** Does nothing: this ranker uses clicks only. */
  takeViews(): void {}

  /**
   * clicks [H, D] are oldest first. Without clicks the features decide; rankers without features then give zeros.
   * Throws GraphMismatch for scores that aren't finite.
   *
   * Each feature enters a score with one weight. The weights are measured in the same run: after the candidates, the
   * first one is repeated once without features and once with each feature alone.
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
    throw new GraphMismatch(`scores of ${this.name}: not finite; clicks or candidates contain NaN or huge values`);
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
