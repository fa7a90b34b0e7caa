// The graphs of a round's task, run by ONNX Runtime: loaded when they are first run, let go of after the update.
import type { UpdateTensor, UpdateTensors } from "../privacy/private_parameters";
import type { GraphSession, Graphs } from "../ranking/session";
import type { Tensor } from "../wire/tensors";
import type { Bytes } from "../wire/values";
import type { Batch, BoundGraph, GraphLoader, Params } from "./gradients";

/** Loads graphs by these sessions. */
export function graphLoader(graphs: Graphs): GraphLoader {
  return (graph, own, privates) => new LoadedGraph(graphs, graph, own, privates);
}

/** A graph that keeps the session of the parameters it was given last, so that batches of one round bind them once. */
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
    const given = [...inputs].map(([name, { shape, values }]) => [name, { dims: shape, data: values }] as const);
    const outputs = await session.run(Object.fromEntries(given));
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
