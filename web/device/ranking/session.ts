// Graphs of releases and rounds, checked before the runtime sees them; parameters are fed per release.
import { sha256 } from "@noble/hashes/sha2.js";
import { GraphMismatch } from "../errors";
import { finite } from "../vectors";
import { checkGraph, type GraphCosts, GraphRefused } from "../protocol/graph_check";
import type { Tensor } from "../protocol/tensors";
import { SharedPadding, type Values } from "./padding";
import type { LoadedGraph, Runtime } from "./onnx_runtime";

const PARAMETER_PREFIX = "p.";
/** Maximum length of the reason for a refusal; its shapes come from the server and may be long. */
const WORDS_LIMIT = 400;
const CHECKED_KEPT = 256;
const checked = new Map<string, GraphCosts>();

/** Parameters by name, float32. */
export type Weights = ReadonlyMap<string, Tensor>;

/** Creates sessions. */
export class Graphs {
  constructor(private readonly runtime: Runtime) {}

  /**
   * A graph with its parameters; extra weights are ignored. names: private parameters, which no release contains; one
   * that isn't among the weights is zero, as for a reader whose device has learned nothing yet. Throws GraphMismatch if
   * a release may not contain this graph (before ONNX Runtime sees it), if it can't be loaded, or if a declared
   * parameter is missing or has another shape.
   */
  async session(graph: Uint8Array, weights: Weights, names: readonly string[] = []): Promise<GraphSession> {
    const costs = costsOf(graph);
    let loaded: LoadedGraph;
    try {
      loaded = await this.runtime.load(graph);
    } catch (broken) {
      throw new GraphMismatch(`ONNX Runtime can't load it: ${broken instanceof Error ? broken.message : String(broken)}`);
    }
    try {
      return new GraphSession(loaded, costs, weights, names);
    } catch (broken) {
      await loaded.release();
      throw broken;
    }
  }

  /** Fetches and compiles the runtime before there is a graph. Loading the first graph reports any error. */
  prepare(): Promise<void> {
    return this.runtime.prepare().catch(() => undefined);
  }
}

/** A graph with one release's parameters; running it takes the other inputs and returns every output by name. */
export class GraphSession {
  readonly inputs: readonly string[];
  /** Shapes of the private parameters that no release contains, by name. */
  readonly private = new Map<string, readonly number[]>();
  private readonly padding: SharedPadding;

  constructor(
    private readonly loaded: LoadedGraph,
    private readonly costs: GraphCosts,
    weights: Weights,
    names: readonly string[],
  ) {
    const { inputs, outputs } = loaded;
    this.padding = new SharedPadding(inputs, outputs);
    const parameters: Record<string, Values> = {};
    this.inputs = inputs.map((each) => each.name).filter((name) => !name.startsWith(PARAMETER_PREFIX));
    for (const { name: full, shape } of inputs) {
      if (!full.startsWith(PARAMETER_PREFIX)) continue;
      const name = full.slice(PARAMETER_PREFIX.length);
      const weight = weights.get(name);
      if (!weight && names.includes(name)) {
        const dims = shape.map(Number);
        this.private.set(name, dims);
        parameters[full] = { dims, data: new Float32Array(dims.reduce((all, size) => all * size, 1)) };
        continue;
      }
      if (!weight) throw new GraphMismatch(`parameter ${name}: declared by the graph, missing from the weights`);
      const fits = weight.shape.length === shape.length && shape.every((axis, at) => typeof axis !== "number" || axis === weight.shape[at]);
      if (!fits)
        throw new GraphMismatch(`parameter ${name}: shape (${weight.shape.join()}), the graph declares (${shape.join()})`);
      parameters[full] = { dims: weight.shape, data: weight.data as Float32Array };
    }
    loaded.bind(parameters);
  }

  /**
   * Replaces zeros by what this reader's device has learned. A value of another shape belongs to another architecture
   * and is ignored.
   */
  takePrivate(values: Readonly<Record<string, Tensor>>): void {
    const parameters: Record<string, Values> = {};
    for (const [name, dims] of this.private) {
      const value = values[name];
      const fits = value?.shape.length === dims.length && dims.every((size, at) => size === value.shape[at]);
      const data = fits ? (value.data as Float32Array) : new Float32Array(dims.reduce((all, size) => all * size, 1));
      parameters[PARAMETER_PREFIX + name] = { dims, data };
    }
    this.loaded.bind(parameters);
  }

  /**
   * Runs the graph with the click axis as long as the batch's longest history, if that axis is free. Throws
   * GraphMismatch unless exactly the declared inputs are given, their free axes agree, the run is within the limits of
   * protocol/graph_check.ts, and ONNX Runtime runs it.
   */
  async run(inputs: Readonly<Record<string, Values>>): Promise<Record<string, Values>> {
    const odd = [...this.inputs.filter((name) => !(name in inputs)), ...Object.keys(inputs).filter((name) => !this.inputs.includes(name))][0];
    if (odd !== undefined)
      throw new GraphMismatch(`input ${odd}: ${this.inputs.includes(odd) ? "missing" : "not declared by the graph"}`);
    const count = this.padding.count(inputs);
    const cut = this.padding.cut(inputs, count);
    const shapes = Object.fromEntries(Object.entries(cut).map(([name, { dims }]) => [name, dims]));
    unlessRefused(() => this.costs.require(shapes));
    let made: Record<string, Values>;
    try {
      made = await this.loaded.run(cut);
    } catch (broken) {
      throw new GraphMismatch(broken instanceof Error ? broken.message : String(broken));
    }
    return this.padding.putBack(made, count);
  }

  /** Frees its memory, which isn't garbage-collected. */
  release(): Promise<void> {
    return this.loaded.release();
  }
}

/** The cost of this graph's runs, cached. Throws GraphMismatch for a graph that a release may not contain. */
export function costsOf(graph: Uint8Array): GraphCosts {
  const digest = sha256(graph).join();
  const known = checked.get(digest);
  if (known) return known;
  const costs = unlessRefused(() => checkGraph(graph));
  if (checked.size >= CHECKED_KEPT) checked.clear();
  checked.set(digest, costs);
  return costs;
}

function unlessRefused<Found>(check: () => Found): Found {
  try {
    return check();
  } catch (refused) {
    if (!(refused instanceof GraphRefused)) throw refused;
    throw new GraphMismatch(refused.message.slice(0, WORDS_LIMIT));
  }
}

/**
 * The result of a release's graph on the reader's clicks, if it is finite and as long as `otherwise`; else `otherwise`.
 *
 * The server supplies the graph, and could make one that fails for certain clicks only. Whether a request is sent must
 * not depend on such a failure, so failures aren't propagated; this page's console reports them.
 */
export async function usable(
  compute: () => Promise<Float32Array>,
  otherwise: Float32Array,
  what: string,
): Promise<Float32Array> {
  try {
    const found = await compute();
    if (found.length !== otherwise.length) throw new RangeError(`${found.length} numbers, expected ${otherwise.length}`);
    if (!finite(found)) throw new RangeError("has values that are not finite");
    return found;
  } catch (fault) {
    // ONNX Runtime's messages repeat names from the server's graph, so only the error's kind is logged
    const kind = fault instanceof Error ? fault.name : typeof fault;
    console.warn(`${what}: the release's model can't be used on what was read: ${kind}`);
    return otherwise;
  }
}
