// Gradients of a model's parameters by ONNX Runtime on the device, and a step along them. A round's graphs are loaded
// when first run, and released after the update.
import { elements, type UpdateTensor, type UpdateTensors } from "../privacy/private_parameters";
import type { ReleaseManifest } from "../protocol/releases";
import { asFloat32, type Tensor } from "../protocol/tensors";
import type { Bytes } from "../protocol/forms";
import type { GroupModels } from "../ranking/groups";
import type { GraphSession, Graphs } from "../ranking/session";

/** Makes a loader of graphs from these sessions. */
export function graphLoader(graphs: Graphs): GraphLoader {
  return (graph, own, privates) => new LoadedGraph(graphs, graph, own, privates);
}

/** A graph that keeps the session of the last parameters, so that a round's batches bind them once. */
class LoadedGraph implements BoundGraph {
  private bound: { readonly params: Params; readonly session: GraphSession } | null = null;

  constructor(
    private readonly graphs: Graphs,
    private readonly graph: Bytes,
    private readonly own: Params,
    private readonly privates: readonly string[],
  ) {}

  async run(params: Params, inputs: Batch): Promise<UpdateTensors> {
    const session = await this.sessionOf(params);
    const feeds = [...inputs].map(([name, { shape, values }]) => [name, { dims: shape, data: values }] as const);
    const outputs = await session.run(Object.fromEntries(feeds));
    const found = Object.entries(outputs).map(([name, { dims, data }]): [string, UpdateTensor] => [
      name,
      { shape: dims, values: new Float32Array(data) },
    ]);
    return new Map(found);
  }

  async release(): Promise<void> {
    const { bound } = this;
    this.bound = null;
    await bound?.session.release();
  }

  private async sessionOf(params: Params): Promise<GraphSession> {
    if (this.bound?.params === params) return this.bound.session;
    await this.release();
    const session = await this.graphs.session(this.graph, new Map(tensorsOf(params)), this.privates);
    session.takePrivate(Object.fromEntries(tensorsOf(this.own)));
    this.bound = { params, session };
    return session;
  }
}

function tensorsOf(params: Params): [string, Tensor][] {
  return [...params].map(([name, { shape, values }]) => [name, { dtype: "float32", shape, data: values }]);
}

export const GRADIENT_PREFIX = "g.";
export const LOSS = "loss";
/** Learning rate of a device's step on its private parameters: plain gradient descent, one step per round. */
export const PRIVATE_RATE = 0.1;

/** float32 tensors by name. */
export type Params = UpdateTensors;
/** Inputs of a graph by name. */
export type Batch = UpdateTensors;

/** What training reads of the current release. */
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

/** A safetensors blob's tensors as parameters. */
export function paramsOf(tensors: Iterable<readonly [string, Tensor]>): Params {
  const found = [...tensors].map(([name, tensor]): [string, UpdateTensor] => [
    name,
    { shape: tensor.shape, values: asFloat32(tensor) },
  ]);
  return new Map(found);
}

/** A graph that ONNX Runtime runs. */
export interface BoundGraph {
  /** Returns every output by name. Throws GraphMismatch. */
  run(params: Params, inputs: Batch): Promise<UpdateTensors>;
  /** Frees its memory, which isn't garbage-collected. */
  release(): Promise<void>;
}

/** Loads a graph. Private parameters are zero unless given; `own` holds those learnt on this device. */
export type GraphLoader = (graph: Bytes, own: Params, privates: readonly string[]) => BoundGraph;

/** The mean loss of a batch, and its gradient for each parameter, named `g.<parameter>`. */
export interface Gradients {
  readonly loss: number;
  readonly tensors: UpdateTensors;
}
export type GradientFn = (params: Params, batch: Batch) => Promise<Gradients>;

/** Throws RangeError: for tasks without a gradient graph. */
export const noGradients: GradientFn = async () => {
  throw new RangeError("gradients: this task's model has no gradient graph");
};

/** A release's gradient graph as a function: loss, and a gradient for each parameter. */
export function gradientsOf(graph: BoundGraph): GradientFn {
  return async (params, batch) => {
    const outputs = await graph.run(params, batch);
    const loss = outputs.get(LOSS)?.values[0];
    if (loss === undefined) throw new RangeError("gradients: the graph returns no loss");
    return { loss, tensors: new Map([...outputs].filter(([name]) => name.startsWith(GRADIENT_PREFIX))) };
  };
}

/**
 * A device's step on its private parameters: values - rate * gradients. Missing values, and those of another shape,
 * start at zero.
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
