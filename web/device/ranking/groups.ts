// FINDING's groups on the device: which of a ranker's group models is this reader's (CIKM 2023, section 4.2). The device
// finds its group by itself and tells nobody. All devices fetch all groups.
import { type Vectors, bestFirst, products, scaled } from "../vectors";
import type { Tensor } from "../wire/tensors";
import { type Values, leftPadded } from "./padding";
import { type Weights, usable } from "./session";

/**
 * A ranker's groups as a release brings them. weights: each parameter [K, ...shape]; centroids and nextCentroids [K, D];
 * vectors and nextVectors: the global weights that user vectors are computed with for each of the two.
 */
export interface GroupModels {
  readonly size: number;
  readonly weights: Weights;
  readonly centroids: Vectors;
  readonly vectors: Weights;
  readonly nextCentroids: Vectors;
  readonly nextVectors: Weights;
}

/** The weights of one group. */
export function weightsOf({ size, weights }: GroupModels, group: number): Weights {
  const block = (all: Tensor): Tensor => {
    const [data, each] = [all.data as Float32Array, all.data.length / size];
    return { dtype: "float32", shape: all.shape.slice(1), data: data.slice(group * each, (group + 1) * each) };
  };
  return new Map([...weights].map(([name, all]) => [name, block(all)]));
}

/** Runs a `score` graph with given weights: every output by name. */
export type ScoreGraph = (inputs: Readonly<Record<string, Values>>) => Promise<Float32Array | undefined>;

/**
 * The vector that a ranker gives a reader: its scores of the D axes of the news space, at length 1, from clicks [H, D],
 * oldest first; features count as zeros. A zero vector stays zero, and stands for scores that can't be had.
 */
export async function readerVector(score: ScoreGraph, clicks: Vectors, features: number): Promise<Float32Array> {
  const size = clicks.width;
  const axes = new Float32Array(size * size);
  for (let at = 0; at < size; at++) axes[at * size + at] = 1;
  const padded = leftPadded(clicks);
  const inputs = {
    clicks: padded.clicks,
    click_mask: padded.mask,
    candidates: { dims: [1, size, size], data: axes },
    ...(features && { features: { dims: [1, size, features], data: new Float32Array(size * features) } }),
  };
  const scores = async (): Promise<Float32Array> => (await score(inputs)) ?? new Float32Array(0);
  return scaled(Float64Array.from(await usable(scores, new Float32Array(size), "the reader's vector")));
}

/** The centroid of greatest inner product; the first of equals, so a zero vector's group is 0. */
export function nearestGroup(centroids: Vectors, vector: Float32Array): number {
  return bestFirst(products(centroids, vector))[0] ?? 0;
}

/** Which group a reader is in, by the centroids in force and by the draft of the next. */
export class GroupChoice {
  /** now and next: the `score` graph with the weights of user vectors for each. features: how many the graph takes. */
  constructor(
    private readonly groups: GroupModels,
    private readonly now: ScoreGraph,
    private readonly next: ScoreGraph,
    private readonly features: number,
  ) {}

  /** The group whose model this reader ranks with; 0 without clicks. */
  async inForce(clicks: Vectors): Promise<number> {
    if (!clicks.rows) return 0;
    return nearestGroup(this.groups.centroids, await readerVector(this.now, clicks, this.features));
  }

  /** The group by the draft, and the vector [D] that it was found with. clicks: at least one. */
  async drafted(clicks: Vectors): Promise<{ group: number; vector: Float32Array }> {
    const vector = await readerVector(this.next, clicks, this.features);
    return { group: nearestGroup(this.groups.nextCentroids, vector), vector };
  }
}
