// A ranker with a model for each group of readers, by the one that this reader is in.
import type { Vectors } from "../vectors";
import type { FeatureContext } from "./features";
import { GroupChoice, type GroupModels, weightsOf } from "./groups";
import { type Fit, type LocalRanker, Ranker } from "./ranker";
import type { GraphSession, Graphs } from "./session";

/** Chooses the group by the clicks it ranks with, and ranks with that group's weights. */
export class GroupRanker implements LocalRanker {
  private constructor(
    private readonly choice: GroupChoice,
    private readonly rankers: readonly Ranker[],
    /** To be let go of with the release. */
    readonly sessions: readonly GraphSession[],
  ) {}

  /** Throws GraphMismatch as `Ranker`. */
  static async make(
    graphs: Graphs,
    graph: Uint8Array,
    groups: GroupModels,
    name: string,
    features: readonly string[],
  ): Promise<GroupRanker> {
    const sessions: GraphSession[] = [];
    try {
      const weights = Array.from({ length: groups.size }, (_, group) => weightsOf(groups, group));
      for (const each of [groups.vectors, groups.nextVectors, ...weights]) sessions.push(await graphs.session(graph, each));
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

  /** Which group a reader with these clicks [H, D] is in. */
  group(clicks: Vectors): Promise<number> {
    return this.choice.inForce(clicks);
  }

  /** Nothing: no parameter of a grouped ranker is private. */
  takeOwn(): void {}

  /** Nothing: it weighs clicks, whatever other views a reader has. */
  takeViews(): void {}

  /** As `Ranker.fit`, by the model of the reader's group. */
  async fit(clicks: Vectors, candidates: Vectors, context: FeatureContext): Promise<Fit> {
    return (await this.of(clicks)).fit(clicks, candidates, context);
  }

  private async of(clicks: Vectors): Promise<Ranker> {
    return this.rankers[await this.choice.inForce(clicks)] as Ranker;
  }
}

function scoresOf(session: GraphSession) {
  return async (inputs: Parameters<GraphSession["run"]>[0]): Promise<Float32Array | undefined> =>
    (await session.run(inputs))["scores"]?.data;
}
