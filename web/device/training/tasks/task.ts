// What a device computes in a round.
import type { OneClick } from "../../privacy/prices";
import type { Shapes, UpdateTensor, UpdateTensors } from "../../privacy/private_parameters";
import type { RoundManifest } from "../../wire/rounds";
import type { Batch, BoundGraph, GradientFn, Params, TrainingRelease } from "../gradients";
import { GRADIENT_PREFIX } from "../gradients";
import type { Draws, SampleSource } from "../samples";
import type { StoredSamples } from "../stored_samples";

/**
 * What a reader's data come to, in clear: it has to be clipped and made noisy or masked before it may leave.
 *
 * tensors are named `g.<parameter>` where they are gradients; loss is the mean loss before the step, 0 where there is
 * none; samples counts what went in. paid is called in the transaction that pays for the update: it writes down what
 * must not be given a second time.
 */
export interface Update {
  readonly tensors: UpdateTensors;
  readonly loss: number;
  readonly samples: number;
  readonly paid?: () => void;
}

/** In the place of an update that can't be computed: its tensors count as zeros. */
export const ZEROS: Update = { tensors: new Map(), loss: 0, samples: 1 };

/** What a task is made from; `material` gives the bytes of a material of the round, and throws NotEligible. */
export interface TaskInputs {
  readonly release: TrainingRelease;
  readonly manifest: RoundManifest;
  readonly reading: StoredSamples;
  readonly material: (name: string) => Promise<Uint8Array<ArrayBuffer>>;
  readonly graph: (model: string, purpose: string) => Promise<BoundGraph>;
  readonly now: number;
}

/** Pure once it's made: no clock, no disk, no network. */
export interface LocalTask {
  /** Every tensor of an update. The price counts their coordinates, so it is this program that says them. */
  shapes(params: Params): Shapes;
  /** The update of one reader. params and grad are of the round's model; params are empty where it has none. */
  run(params: Params, samples: SampleSource, grad: GradientFn, draws: Draws): Promise<Update>;
}

/**
 * A task as this program knows it.
 *
 * role: of the models it's for; null for a task of no particular model. graph: purpose of the graph that the model must
 * have; `grad` runs it, if it's the gradient. needsSamples: whether a device takes part only if it has clicks to make
 * samples of. channel: of the ledger, which pays. readsRelease: whether it reads anything of the release; one that
 * doesn't is done under any. heldOut: whether its samples are those that gradients leave out. oneClick: how far a single
 * click exchanged for another moves the update; null where that is as far as exchanging everything.
 */
export interface TaskKind {
  readonly make: (given: TaskInputs) => Promise<LocalTask>;
  readonly role: "ranker" | "recall" | null;
  readonly graph: string | null;
  readonly needsSamples: boolean;
  readonly channel: "training" | "counts";
  readonly readsRelease: boolean;
  readonly heldOut: boolean;
  readonly oneClick: (given: TaskInputs) => Promise<OneClick | null>;
}

/** A kind with what most tasks have in common. */
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

/** Of an update that is a gradient for each parameter. */
export function gradientShapes(params: Params): Shapes {
  return new Map([...params].map(([name, { shape }]) => [GRADIENT_PREFIX + name, shape]));
}

const BATCH = 8;

/** Of `count` samples, BATCH at a time: what a run needs is bounded by it. */
export function slicesOf(count: number): (readonly [number, number])[] {
  const slices: (readonly [number, number])[] = [];
  for (let start = 0; start < count; start += BATCH) slices.push([start, Math.min(start + BATCH, count)]);
  return slices;
}

/**
 * The gradient of the mean loss over `count` samples; `batch` gives the inputs for some of them. Batches bound the
 * memory and change nothing: their means are weighed by their sizes, in doubles.
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
