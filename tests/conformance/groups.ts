// FINDING's groups in the browser's device: the group, its ranker's scores, and a device's contributions to both rounds.
import { OnnxRuntime } from "../../web/device/ranking/onnx_runtime";
import { Graphs } from "../../web/device/ranking/session";
import { GroupRanker, type GroupModels } from "../../web/device/ranking/groups";
import { ViewsRanker } from "../../web/device/ranking/views_ranker";
import { gradientsOf, graphLoader, noGradients, paramsOf, type TrainingRelease } from "../../web/device/training/gradients";
import { Samples, type SampleSource } from "../../web/device/training/samples";
import { evaluateTask } from "../../web/device/training/tasks/evaluate";
import { groupGradientTask, nearestGroupTask } from "../../web/device/training/tasks/group_gradient";
import type { TaskInputs } from "../../web/device/training/tasks/task";
import { vectors } from "../../web/device/vectors";
import { load } from "../../web/device/protocol/tensors";
import { unbase64 } from "./given";
import { ORT, type Wasm } from "./wasm";

/** Graphs and safetensors in base64. */
interface Given {
  readonly score: string;
  readonly gradient: string;
  readonly features: readonly string[];
  readonly groups: Readonly<Record<"weights" | "vectors" | "next_vectors", string>>;
  readonly centroids: readonly (readonly number[])[];
  readonly next_centroids: readonly (readonly number[])[];
  readonly everybody: string;
  readonly clicks: readonly (readonly number[])[];
  readonly candidates: readonly (readonly number[])[];
  readonly sections: readonly string[];
  readonly batch: string;
  readonly clip: number;
}

const rows = (all: readonly (readonly number[])[]) => vectors(Float32Array.from(all.flat()), all[0]?.length ?? 0);
const told = (update: { readonly tensors: ReadonlyMap<string, { readonly shape: readonly number[]; readonly values: Float32Array }> }) =>
  Object.fromEntries([...update.tensors].map(([name, { shape, values }]) => [name, { shape, values: [...values] }]));

/** One given batch instead of a random draw. */
function drawn(batch: string): SampleSource {
  const inputs = paramsOf(load(unbase64(batch)));
  const count = inputs.get("clicks")?.shape[0] ?? 0;
  return { draw: () => new Samples(count, inputs) };
}

async function computed(given: Given, wasm: Wasm): Promise<unknown> {
  const graphs = new Graphs(new OnnxRuntime(wasm(ORT)));
  const [score, gradient] = [unbase64(given.score), unbase64(given.gradient)];
  const clicks = rows(given.clicks);
  const groups: GroupModels = {
    size: given.centroids.length,
    weights: load(unbase64(given.groups.weights)),
    vectors: load(unbase64(given.groups.vectors)),
    nextVectors: load(unbase64(given.groups.next_vectors)),
    centroids: rows(given.centroids),
    nextCentroids: rows(given.next_centroids),
  };
  const ranker = await GroupRanker.make(graphs, score, groups, load(unbase64(given.everybody)), "ranker", given.features);
  const open = graphLoader(graphs);
  const inputs = {
    release: {
      manifest: {
        encoder: "e",
        dimensions: clicks.width,
        models: new Map([["ranker", { groups: {}, features: given.features }]]),
      },
      groups: async () => groups,
    } as unknown as TrainingRelease,
    manifest: { model: "ranker", negatives: 1, samples_limit: 8, protection: { kind: "secure_sum", clip: given.clip } },
    reading: { clicked: () => clicks },
    graph: async () => open(score, new Map(), []),
  } as unknown as TaskInputs;
  const samples = drawn(given.batch);
  const grad = gradientsOf(open(gradient, new Map(), []));
  const draws = { below: (_: number, size: number) => new Array<number>(size).fill(0) };
  const [nearest, own] = [await nearestGroupTask(inputs), await groupGradientTask(inputs)];
  const { sections } = given;
  const zeros = new Float64Array(sections.length);
  const context = {
    ...{ sections, topics: sections, clickedSections: sections.slice(0, 3), clickedTopics: [] },
    ...{ recency: zeros.map((_, at) => 1 / (1 + at)), popularity: zeros },
  };
  return {
    group: await ranker.group(clicks),
    scores: [...(await ranker.fit(clicks, rows(given.candidates), context)).scores],
    without_clicks: [...(await ranker.fit(vectors(new Float32Array(0), clicks.width), rows(given.candidates), { ...context, clickedSections: [] })).scores],
    nearest: told(await nearest.run(new Map(), samples, grad, draws)),
    gradient: told(await own.run(new Map(), samples, grad, draws)),
    shapes: [Object.fromEntries(nearest.shapes(new Map())), Object.fromEntries(own.shapes(new Map()))],
  };
}

interface ViewsGiven {
  readonly score: string;
  readonly weights: string;
  readonly clicks: readonly (readonly number[])[];
  readonly searched: readonly (readonly number[])[];
  readonly candidates: readonly (readonly number[])[];
}

/** Scores from a ranker of views. */
async function byViews(given: ViewsGiven, wasm: Wasm): Promise<unknown> {
  const weights = load(unbase64(given.weights));
  const ranker = await ViewsRanker.make(new Graphs(new OnnxRuntime(wasm(ORT))), unbase64(given.score), weights, "ranker");
  ranker.takeViews(() => rows(given.searched));
  return [...(await ranker.fit(rows(given.clicks), rows(given.candidates))).scores];
}

interface Evaluated {
  readonly score: string;
  readonly weights: string;
  readonly before: string;
  readonly batch: string;
}

/** A device's contribution to a round that scores a ranker. */
async function evaluated(given: Evaluated, wasm: Wasm): Promise<unknown> {
  const weights = load(unbase64(given.weights));
  const inputs = {
    release: { manifest: { models: new Map([["ranker", { features: [] }]]) }, weights: async () => weights },
    manifest: { model: "ranker", negatives: 1, samples_limit: 8 },
    material: async () => unbase64(given.before),
    graph: async () => graphLoader(new Graphs(new OnnxRuntime(wasm(ORT))))(unbase64(given.score), new Map(), []),
  } as unknown as TaskInputs;
  const task = await evaluateTask(inputs);
  return told(await task.run(paramsOf(weights), drawn(given.batch), noGradients, { below: () => [] }));
}

export const groups = { groups_computed: computed, views_scored: byViews, ranker_evaluated: evaluated };
