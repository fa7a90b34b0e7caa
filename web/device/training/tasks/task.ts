// What a device computes in a round.
import type { OneClick } from "../../privacy/accounting/cost_of_sums";
import type { Shapes, UpdateTensor, UpdateTensors } from "../../privacy/private_parameters";
import type { RoundManifest } from "../../protocol/rounds";
import { GRADIENT_PREFIX, type Batch, type BoundGraph, type GradientFn, type Params, type TrainingRelease } from "../gradients";
import type { Draws, SampleSource, TaskReading } from "../samples";

/**
 * The result of a task on a reader's data, in the clear: it must be clipped, and noised or masked, before it may leave.
 *
 * tensors are named `g.<parameter>` if they are gradients; loss is the mean loss before the step, 0 if there is none;
 * samples: the number used. paid is called in the transaction that pays for the update, and records what must not be
 * contributed twice. unchanged: whether the data it was computed from, other than the reader's current clicks, still
 * exists.
 */
export interface Update {
  readonly tensors: UpdateTensors;
  readonly loss: number;
  readonly samples: number;
  readonly paid?: () => void;
  readonly unchanged?: () => boolean;
}

/** Replaces an update that can't be computed: its tensors count as zeros. */
export const ZEROS: Update = { tensors: new Map(), loss: 0, samples: 0 };

/**
 * What a task is made from. reading: NOBODYS_READING if only the form of an update is wanted. `material` returns the
 * bytes of one of the round's data items, and throws NotEligible.
 */
export interface TaskInputs {
  readonly release: TrainingRelease;
  readonly manifest: RoundManifest;
  readonly reading: TaskReading;
  readonly material: (name: string) => Promise<Uint8Array<ArrayBuffer>>;
  readonly graph: (model: string, purpose: string) => Promise<BoundGraph>;
  readonly now: number;
}

/** A task for one round. It is pure: no clock, no disk, no network. */
export interface LocalTask {
  /** Every tensor of an update. The cost depends on the number of coordinates, so this program determines them. */
  shapes(params: Params): Shapes;
  /** The update of one reader. params and grad are of the round's model; params are empty if it has none. */
  run(params: Params, samples: SampleSource, grad: GradientFn, draws: Draws): Promise<Update>;
}

/**
 * The properties of a task.
 *
 * role: of the models it applies to; null for a task without a model. graph: purpose of the graph that the model must
 * have; `grad` runs it, if it is the gradient. needsSamples: whether it draws samples from the reader's clicks; without
 * any, its update is zeros. channel: the ledger's channel that is charged. readsRelease: whether it uses the release;
 * otherwise it can run under any release. heldOut: whether it uses the samples that gradients leave out.
 * oneClick: how far the update moves if a single click is replaced by another; null if that is as far as replacing
 * everything.
 */
export interface TaskKind {
  readonly make: (inputs: TaskInputs) => Promise<LocalTask>;
  readonly role: "ranker" | "recall" | null;
  readonly graph: string | null;
  readonly needsSamples: boolean;
  readonly channel: "training" | "counts";
  readonly readsRelease: boolean;
  readonly heldOut: boolean;
  readonly oneClick: (inputs: TaskInputs) => Promise<OneClick | null>;
}

/** Makes a kind with the defaults of most tasks. */
export function taskKind(
  make: TaskKind["make"],
  own: Partial<Omit<TaskKind, "make">> = {},
): TaskKind {
  return {
    make,
    role: null,
    graph: null,
    needsSamples: true,
    channel: "training",
    readsRelease: true,
    heldOut: false,
    oneClick: async () => null,
    ...own,
  };
}

/** Shapes of an update with a gradient for each parameter. */
export function gradientShapes(params: Params): Shapes {
  return new Map([...params].map(([name, { shape }]) => [GRADIENT_PREFIX + name, shape]));
}

const BATCH = 8;

/** Slices of `count` samples, BATCH at a time, which bounds the memory of a run. */
export function slicesOf(count: number): (readonly [number, number])[] {
  const slices: (readonly [number, number])[] = [];
  for (let start = 0; start < count; start += BATCH) slices.push([start, Math.min(start + BATCH, count)]);
  return slices;
}

/**
 * The gradient of the mean loss over `count` samples; `batch` gives the inputs for a slice. Batches bound the memory
 * and don't change the result: their means are weighted by size, in doubles.
 */
export async function pooledGradient(
  count: number,
  batch: (start: number, end: number) => Batch,
  params: Params,
  grad: GradientFn,
): Promise<Update> {
  let loss = 0;
  const sums = new Map<string, { shape: readonly number[]; total: Float64Array }>();
  for (const [start, end] of slicesOf(count)) {
    const found = await grad(params, batch(start, end));
    const share = (end - start) / count;
    loss += share * found.loss;
    for (const [name, { shape, values }] of found.tensors) {
      const sum = sums.get(name) ?? { shape, total: new Float64Array(values.length) };
      values.forEach((value, place) => (sum.total[place] = (sum.total[place] ?? 0) + share * value));
      sums.set(name, sum);
    }
  }
  const tensors = [...sums].map(([name, { shape, total }]): [string, UpdateTensor] => [
    name,
    { shape, values: Float32Array.from(total) },
  ]);
  return { tensors: new Map(tensors), loss, samples: count };
}
