// Which group the reader is in, for each ranker of the release that has groups, as a round would find it.
import { GroupChoice } from "../ranking/groups";
import type { GraphLoader, TrainingRelease } from "./gradients";
import type { StoredSamples } from "./stored_samples";
import { scoreGraphOf } from "./tasks/group_gradient";

/**
 * Which of a ranker's groups this device has chosen for its reader, counted from 0, and out of how many. Sensitive: it
 * says what the reader reads, and is shown to the reader alone.
 */
export interface OwnGroup {
  readonly ranker: string;
  readonly group: number;
  readonly groups: number;
}

/** One for each ranker with groups. Throws ReleaseRefused. */
export async function ownGroups(release: TrainingRelease, reading: StoredSamples, load: GraphLoader): Promise<OwnGroup[]> {
  const { models, encoder } = release.manifest;
  const found: OwnGroup[] = [];
  for (const [ranker, { groups: offered, features }] of models) {
    if (!offered) continue;
    const groups = await release.groups(ranker);
    const graph = load(await release.graph(ranker, "score"), new Map(), []);
    try {
      const [now, next] = [scoreGraphOf(graph, groups.vectors), scoreGraphOf(graph, groups.nextVectors)];
      const group = await new GroupChoice(groups, now, next, features.length).inForce(reading.clicked(encoder));
      found.push({ ranker, group, groups: groups.size });
    } finally {
      await graph.release();
    }
  }
  return found;
}
