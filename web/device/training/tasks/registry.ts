// The tasks this program knows, by the name in a round's manifest; others it declines by name. A new one is a file
// beside this and a line.
import { countTask, oneClickOf } from "./counting";
import { evaluateTask } from "./evaluate";
import { fullGradientTask } from "./full_gradient";
import { groupGradientTask } from "./group_gradient";
import { nearestGroupTask } from "./nearest_group";
import { type TaskKind, taskKind } from "./task";

export type Tasks = ReadonlyMap<string, TaskKind>;

export const TASKS: Tasks = new Map([
  ["evaluate", taskKind(evaluateTask, { role: "ranker", graph: "score", heldOut: true })],
  ["full_gradient", taskKind(fullGradientTask, { role: "ranker", graph: "gradient" })],
  ["group_gradient", taskKind(groupGradientTask, { role: "ranker", graph: "gradient" })],
  ["nearest_group", taskKind(nearestGroupTask, { role: "ranker", graph: "score" })],
  [
    "count",
    taskKind(countTask, { needsSamples: false, channel: "counts", readsRelease: false, oneClick: oneClickOf }),
  ],
]);
