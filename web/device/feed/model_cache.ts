// One release's models, loaded and bound, as serving uses them.
import { ReleaseRefused } from "../errors";
import { RecallModel } from "../reading/decomposition";
import { GroupRanker } from "../ranking/groups";
import { type LocalRanker, Ranker } from "../ranking/ranker";
import type { Graphs, GraphSession } from "../ranking/session";
import { ViewsRanker } from "../ranking/views_ranker";
import type { PublicVectors, Release } from "../sync/installed_release";
import type { ReleaseManifest } from "../protocol/releases";

/** Architectures whose rankers need more than clicks and features. */
const OF_VIEWS: readonly string[] = ["multi_view", "fl_mv_dssm_news"];

/** A release's models; replaced together when a release is swapped in, so that no feed mixes two releases. */
export class ServingModels {
  constructor(
    readonly manifest: ReleaseManifest,
    readonly recall: RecallModel,
    readonly ranker: LocalRanker,
    readonly spaces: PublicVectors,
    private readonly sessions: readonly GraphSession[],
  ) {}

  /** The release's id. */
  get release(): string {
    return this.manifest.release;
  }

  /** Digest of the encoder whose vectors these models take. */
  get encoder(): string {
    return this.manifest.encoder;
  }

  /** D, the dimension of an article vector. */
  get dimensions(): number {
    return this.manifest.dimensions;
  }

  /** Frees the graphs' memory. */
  async dispose(): Promise<void> {
    for (const session of this.sessions) await session.release();
  }
}

/**
 * Loads the release's recall model and ranker. chosen: a ranker to use instead of its default. Throws ReleaseRefused.
 */
export async function loadModels(release: Release, graphs: Graphs, chosen: string | null): Promise<ServingModels> {
  const { manifest } = release;
  const name = chosen ?? manifest.default_ranker;
  const entry = manifest.models.get(name);
  if (entry?.role !== "ranker") {
    const others = [...manifest.models].filter(([, one]) => one.role === "ranker").map(([one]) => one);
    const why = `it has no ranker '${name}', which this device chose; it has ${others.join(", ")}`;
    throw new ReleaseRefused(release.id, why);
  }
  const context = await graphs.session(await release.graph("recall", "context"), await release.weights("recall"));
  const graph = await release.graph(name, "score");
  const recall = new RecallModel(context, manifest.recall);
  if (OF_VIEWS.includes(entry.architecture) || entry.groups) {
    const ranker = entry.groups
      ? await GroupRanker.make(
          graphs,
          graph,
          await release.groups(name),
          await release.weights(name),
          name,
          entry.features,
        )
      : await ViewsRanker.make(graphs, graph, await release.weights(name), name);
    return new ServingModels(manifest, recall, ranker, await release.spaces(), [context, ...ranker.sessions]);
  }
  const score = await graphs.session(graph, await release.weights(name), entry.private);
  const ranker = new Ranker(score, name, entry.features);
  return new ServingModels(manifest, recall, ranker, await release.spaces(), [context, score]);
}
