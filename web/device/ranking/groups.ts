// FINDING's groups on the device: which of a ranker's group models is this reader's (CIKM 2023, section 4.2). The device
// finds its group by itself and reports it to nobody. All devices download the models of all groups.
import type { Tensor } from "../protocol/tensors";
import { bestFirst, products, scaled, type Vectors } from "../vectors";
import { Ranker, type FeatureContext, type Fit, type LocalRanker } from "./ranker";
import { leftPadded, type Values } from "./padding";
import { type GraphSession, type Graphs, type Weights, usable } from "./session";

/**
 * A ranker's groups as in a release. weights: each parameter [K, ...shape]; centroids and nextCentroids [K, D]; vectors
 * and nextVectors: the global weights with which user vectors are computed for each of the two.
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

/** Runs a `score` graph with given weights; returns every output by name. */
export type ScoreGraph = (inputs: Readonly<Record<string, Values>>) => Promise<Float32Array | undefined>;

/**
 * A ranker's user vector: its scores of the D axes of the news space, scaled to length 1, from clicks [H, D], oldest
 * first; features count as zeros. A zero vector stays zero, and also stands for unusable scores.
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

/** The centroid with the greatest inner product; ties go to the first, so a zero vector's group is 0. */
export function nearestGroup(centroids: Vectors, vector: Float32Array): number {
  return bestFirst(products(centroids, vector))[0] ?? 0;
}

/** A reader's group, by the current centroids and by the draft of the next. */
export class GroupChoice {
  /** now and next: the `score` graph with the user-vector weights of each. features: how many the graph takes. */
  constructor(
    private readonly groups: GroupModels,
    private readonly now: ScoreGraph,
    private readonly next: ScoreGraph,
    private readonly features: number,
  ) {}

  /** The group whose model ranks for this reader; 0 without clicks. */
  async inForce(clicks: Vectors): Promise<number> {
    if (!clicks.rows) return 0;
    return nearestGroup(this.groups.centroids, await readerVector(this.now, clicks, this.features));
  }

  /** The group by the draft, and the vector [D] that determined it. clicks: at least one. */
  async drafted(clicks: Vectors): Promise<{ group: number; vector: Float32Array }> {
    const vector = await readerVector(this.next, clicks, this.features);
    return { group: nearestGroup(this.groups.nextCentroids, vector), vector };
  }
}

/** Chooses the group from the clicks, and ranks with that group's weights. */
export class GroupRanker implements LocalRanker {
  private constructor(
    private readonly choice: GroupChoice,
    private readonly rankers: readonly Ranker[],
    /** Released together with the release. */
    readonly sessions: readonly GraphSession[],
  ) {}

  /** everybody: the global weights, which rank for a reader without clicks. Throws GraphMismatch like `Ranker`. */
  static async make(
    graphs: Graphs,
    graph: Uint8Array,
    groups: GroupModels,
    everybody: Weights,
    name: string,
    features: readonly string[],
  ): Promise<GroupRanker> {
    const sessions: GraphSession[] = [];
    try {
      const weights = Array.from({ length: groups.size }, (_, group) => weightsOf(groups, group));
      for (const each of [groups.vectors, groups.nextVectors, ...weights, everybody]) sessions.push(await graphs.session(graph, each));
      const [now, next, ...own] = sessions as [GraphSession, GraphSession, ...GraphSession[]];
      const choice = new GroupChoice(groups, scoresOf(now), scoresOf(next), features.length);
      return new GroupRanker(choice, own.map((each) => new Ranker(each, name, features)), sessions);
    } catch (broken) {
      for (const each of sessions) await each.release();
      throw broken;
    }
  }

  get name(): string {
    return this.rankers[0]?.name ?? "";
  }

  get features(): readonly string[] {
    return this.rankers[0]?.features ?? [];
  }

  /** The group of a reader with these clicks [H, D]. */
  group(clicks: Vectors): Promise<number> {
    return this.choice.inForce(clicks);
  }

  /** Does nothing: grouped rankers have no private parameters. */
  takeOwn(): void {}

  /** Does nothing: a grouped ranker uses clicks only. */
  takeViews(): void {}

  /** Like `Ranker.fit`, with the model of the reader's group. */
  async fit(clicks: Vectors, candidates: Vectors, context: FeatureContext): Promise<Fit> {
    return (await this.of(clicks)).fit(clicks, candidates, context);
  }

  private async of(clicks: Vectors): Promise<Ranker> {
    const place = clicks.rows ? await this.choice.inForce(clicks) : this.rankers.length - 1;
    return this.rankers[place] as Ranker;
  }
}

function scoresOf(session: GraphSession) {
  return async (inputs: Parameters<GraphSession["run"]>[0]): Promise<Float32Array | undefined> =>
    (await session.run(inputs))["scores"]?.data;
}
