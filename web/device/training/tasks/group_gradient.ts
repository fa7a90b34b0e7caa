// A device's part in FINDING's grouped training: clustering by sums (section 4.2), where it sends its vector in its
// nearest group's row and its move between groups; and the ranker's gradient at its group's model, in that group's
// block of the update.
import { NotEligible } from "../../errors";
import { elements, type Shapes, type UpdateTensor } from "../../privacy/private_parameters";
import type { SecureSum } from "../../protocol/protections";
import { GroupChoice, type GroupModels, type ScoreGraph, weightsOf } from "../../ranking/groups";
import type { Weights } from "../../ranking/session";
import { GRADIENT_PREFIX, paramsOf, type BoundGraph } from "../gradients";
import { fullGradientTask } from "./full_gradient";
import type { LocalTask, TaskInputs } from "./task";

const [VECTORS, MOVES] = ["vectors", "moves"];
/** Share of the clip for each of the two tensors; together their length is at most sqrt(2) / 2 of the clip. */
const SHARE = 0.5;

/**
 * `vectors` [K, D]: half the clip times the reader's unit vector in its next group's row; `moves` [K, K]: half the clip
 * at (current group, next group). Throws NotEligible like `groupGradientTask`.
 */
export async function nearestGroupTask(inputs: TaskInputs): Promise<LocalTask> {
  const { protection, groups, choice } = await chosenGroups(inputs);
  const { encoder, dimensions } = inputs.release.manifest;
  const clicks = inputs.reading.clicked(encoder);
  const { size } = groups;
  const shapes: Shapes = new Map([
    [VECTORS, [size, dimensions]],
    [MOVES, [size, size]],
  ]);
  const share = SHARE * protection.clip;
  return {
    shapes: () => shapes,
    run: async () => {
      if (!clicks.rows) throw new NotEligible("this device has no clicks to find its group by.");
      const { group, vector } = await choice.drafted(clicks);
      const tensors = zerosOf(shapes);
      tensors.get(VECTORS)?.values.set(vector.map((each) => Math.fround(share) * each), group * dimensions);
      mark(tensors, MOVES, (await choice.inForce(clicks)) * size + group, share);
      return { tensors, loss: 0, samples: 1 };
    },
  };
}

export const MEMBERS = "members";
const MEMBER_SHARE = 0.5;
const GRADIENT_SHARE = Math.sqrt(1 - MEMBER_SHARE ** 2);

/**
 * `g.<parameter>` [K, ...shape] with the gradient in the block of the reader's group, and `members` [K] with a mark
 * there.
 *
 * The gradient is scaled into a ball of sqrt(3)/2 of the clip and the mark is half of it, so that together they stay
 * within the clip's ball, and the subsequent clipping leaves the mark unchanged. Throws NotEligible if the release has
 * no groups, or no masks hide the group.
 */
export async function groupGradientTask(inputs: TaskInputs): Promise<LocalTask> {
  const { protection, groups, choice } = await chosenGroups(inputs);
  const whole = await fullGradientTask(inputs);
  const clicks = inputs.reading.clicked(inputs.release.manifest.encoder);
  const shapes: Shapes = new Map([
    ...[...groups.weights].map(([name, { shape }]) => [GRADIENT_PREFIX + name, shape] as const),
    [MEMBERS, [groups.size]],
  ]);
  return {
    shapes: () => shapes,
    run: async (_, samples, grad, draws) => {
      const group = await choice.inForce(clicks);
      const own = await whole.run(paramsOf(weightsOf(groups, group)), samples, grad, draws);
      let squares = 0;
      for (const { values } of own.tensors.values()) for (const each of values) squares += each * each;
      const scale = Math.fround(squares ? Math.min(1, (GRADIENT_SHARE * protection.clip) / Math.sqrt(squares)) : 1);
      const tensors = zerosOf(shapes);
      for (const [name, { values }] of own.tensors) {
        const block = values.map((each) => each * scale);
        tensors.get(name)?.values.set(block, group * block.length);
      }
      mark(tensors, MEMBERS, group, MEMBER_SHARE * protection.clip);
      return { tensors, loss: own.loss, samples: own.samples };
    },
  };
}

/** Protection, groups and group choice of a round about groups. Throws NotEligible. */
export async function chosenGroups(
  inputs: TaskInputs,
): Promise<{ protection: SecureSum; groups: GroupModels; choice: GroupChoice }> {
  const { release, manifest } = inputs;
  const model = manifest.model ?? "";
  const entry = release.manifest.models.get(model);
  if (!entry?.groups) throw new NotEligible("it trains groups of readers, but the release has none.");
  const { protection } = manifest;
  if (protection.kind !== "secure_sum")
    throw new NotEligible("the reader's group may only be sent in a secure sum.");
  const groups = await release.groups(model);
  const score = async (weights: Weights): Promise<ScoreGraph> => scoreGraphOf(await inputs.graph(model, "score"), weights);
  const choice = new GroupChoice(groups, await score(groups.vectors), await score(groups.nextVectors), entry.features.length);
  return { protection, groups, choice };
}

/** A `score` graph bound to these weights. */
export function scoreGraphOf(graph: BoundGraph, weights: Weights): ScoreGraph {
  const params = paramsOf(weights);
  return async (inputs) => {
    const named = Object.entries(inputs).map(([name, { dims, data }]): [string, UpdateTensor] => [
      name,
      { shape: dims, values: new Float32Array(data) },
    ]);
    return (await graph.run(params, new Map(named))).get("scores")?.values;
  };
}

/** Tensors of zeros. */
export function zerosOf(shapes: Shapes): Map<string, UpdateTensor> {
  return new Map([...shapes].map(([name, shape]) => [name, { shape, values: new Float32Array(elements(shape)) }]));
}

/** Sets one number in a tensor. Throws RangeError for an unknown name or place. */
export function mark(tensors: ReadonlyMap<string, UpdateTensor>, name: string, place: number, value: number): void {
  const values = tensors.get(name)?.values;
  if (!values || place >= values.length) throw new RangeError(`${name}: has no index ${place}`);
  values[place] = value;
}
