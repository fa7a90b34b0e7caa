// Gradients of a model's parameters, by ONNX Runtime on the device, and a step along them.
import { type UpdateTensor, type UpdateTensors, elements } from "../privacy/private_parameters";
import type { GroupModels } from "../ranking/groups";
import type { ReleaseManifest } from "../wire/releases";
import { type Tensor, asFloat32 } from "../wire/tensors";
import type { Bytes } from "../wire/values";

export const GRADIENT_PREFIX = "g.";
export const LOSS = "loss";
/** Of a device's own step on its private parameters, plain gradient descent, one step a round. */
export const PRIVATE_RATE = 0.1;

/** float32 tensors by name. */
export type Params = UpdateTensors;
/** Inputs of a graph by name. */
export type Batch = UpdateTensors;

/** What training reads of the release in use. */
export interface TrainingRelease {
  readonly id: string;
  readonly manifest: ReleaseManifest;
  /** An ONNX graph. Throws ReleaseRefused. */
  graph(model: string, purpose: string): Promise<Bytes>;
  /** Parameters by name; empty for a model without any. Throws ReleaseRefused. */
  weights(model: string): Promise<ReadonlyMap<string, Tensor>>;
  /** The models of a ranker's groups. Throws ReleaseRefused. */
  groups(model: string): Promise<GroupModels>;
}

/** Tensors of a safetensors blob as parameters. */
export function paramsOf(tensors: Iterable<readonly [string, Tensor]>): Params {
  const found = [...tensors].map(([name, tensor]): [string, UpdateTensor] => [
    name,
    { shape: tensor.shape, values: asFloat32(tensor) },
  ]);
  return new Map(found);
}

/** A graph that ONNX Runtime runs. */
export interface BoundGraph {
  /** Every output by name. Throws GraphMismatch. */
  run(params: Params, inputs: Batch): Promise<UpdateTensors>;
  /** Let go of its memory, which the collector doesn't see. */
  release(): Promise<void>;
}

/** Loads a graph; private parameters are zero where they are not given, `own` holds those that this device has learnt. */
export type GraphLoader = (graph: Bytes, own: Params, privates: readonly string[]) => BoundGraph;

/** The mean loss of a batch, and its gradient for each parameter, named `g.<parameter>`. */
export interface Gradients {
  readonly loss: number;
  readonly tensors: UpdateTensors;
}
export type GradientFn = (params: Params, batch: Batch) => Promise<Gradients>;

/** For tasks without a gradient graph. Throws RangeError. */
export const noGradients: GradientFn = async () => {
  throw new RangeError("gradients: this task's model has no gradient graph");
};

/** A release's gradient graph: loss, and a gradient for each parameter. */
export function gradientsOf(graph: BoundGraph): GradientFn {
  return async (params, batch) => {
    const outputs = await graph.run(params, batch);
    const loss = outputs.get(LOSS)?.values[0];
    if (loss === undefined) throw new RangeError("gradients: the graph gives no loss");
    return { loss, tensors: new Map([...outputs].filter(([name]) => name.startsWith(GRADIENT_PREFIX))) };
  };
}

/**
 * A device's own step on its private parameters: values - rate * gradients. What is missing among the values, or has
 * another shape, starts at zero.
 */
export function stepped(values: Params, gradients: Params, rate = PRIVATE_RATE): Params {
  const moved = [...gradients].map(([name, gradient]): [string, UpdateTensor] => {
    const value = values.get(name);
    const fits = value !== undefined && value.shape.join() === gradient.shape.join();
    const start = fits ? value.values : new Float32Array(elements(gradient.shape));
    const after = start.map((each, place) => each - Math.fround(Math.fround(rate) * (gradient.values[place] ?? NaN)));
    return [name, { shape: gradient.shape, values: after }];
  });
  return new Map(moved);
}
