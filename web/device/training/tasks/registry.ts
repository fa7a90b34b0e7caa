// The tasks this program supports, by their name in a round's manifest; it declines others by name. A new task is a
// file in this folder and a line here.
import { countTask, oneClickOf } from "./counting";
import { evaluateTask } from "./evaluate";
import { fullGradientTask } from "./full_gradient";
import { groupGradientTask, nearestGroupTask } from "./group_gradient";
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
