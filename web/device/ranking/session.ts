// Graphs of releases and rounds, checked before the runtime sees them; parameters fed per release.
import { sha256 } from "@noble/hashes/sha2.js";
import { GraphMismatch } from "../errors";
import { finite } from "../vectors";
import { checkGraph } from "../wire/graphs/check";
import type { GraphCosts } from "../wire/graphs/costs";
import { GraphRefused } from "../wire/graphs/message";
import type { Tensor } from "../wire/tensors";
import { SharedPadding, type Values } from "./padding";
import type { LoadedGraph, Runtime } from "./runtime";

const PARAMETER_PREFIX = "p.";
/** Of why a graph is refused: shapes in it are the server's, and may be long. */
const WORDS_LIMIT = 400;
const CHECKED_KEPT = 256;
const checked = new Map<string, GraphCosts>();

/** Parameters by name, float32. */
export type Weights = ReadonlyMap<string, Tensor>;

/** Where sessions come from. */
export class Graphs {
  constructor(private readonly runtime: Runtime) {}

  /**
   * The graph with its parameters; more weights than it declares are fine. private names parameters that no release
   * brings; one that is not among the weights is zero, as for a reader whose device has learnt nothing yet. Throws
   * GraphMismatch if the graph is none that a release may bring, before ONNX Runtime sees it; if it can't be loaded, or
   * declares a parameter that is missing or of another shape.
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

  /** Fetch and compile the runtime before there is a graph. What goes wrong is told by the first graph's loading. */
  prepare(): Promise<void> {
    return this.runtime.prepare().catch(() => undefined);
  }
}

/** A graph with one release's parameters; running it feeds the rest and gives every output by name. */
export class GraphSession {
  readonly inputs: readonly string[];
  /** Shapes of the private parameters that no release brings, by name. */
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

  /** What this reader's device has learnt in place of zeros. A value of another shape was learnt for another form. */
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
   * Run the graph, for as many clicks as the longest history of the batch has where the graph leaves that open. Throws
   * GraphMismatch unless exactly the declared inputs are given, their free axes agree, the run is within the limits of
   * wire/graphs, and ONNX Runtime runs it.
   */
  async run(given: Readonly<Record<string, Values>>): Promise<Record<string, Values>> {
    const odd = [...this.inputs.filter((name) => !(name in given)), ...Object.keys(given).filter((name) => !this.inputs.includes(name))][0];
    if (odd !== undefined)
      throw new GraphMismatch(`input ${odd}: ${this.inputs.includes(odd) ? "missing" : "not declared by the graph"}`);
    const count = this.padding.count(given);
    const cut = this.padding.cut(given, count);
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

  /** Let go of its memory, which the collector doesn't see. */
  release(): Promise<void> {
    return this.loaded.release();
  }
}

/** What runs of this graph cost, found once. Throws GraphMismatch for one that no release may bring. */
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
 * What a release's graph makes of the reader's clicks if that is finite and as long as `otherwise`; else that.
 *
 * A graph, and what it is given, are the server's, and may be made so that it fails for some clicks alone. Where a request
 * follows it must follow all the same, so no failure may get out; the console of this page says that there was one.
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
    // messages of ONNX Runtime repeat a graph's names, which are the server's: only the kind is told
    const kind = fault instanceof Error ? fault.name : typeof fault;
    console.warn(`${what}: the release's model can't be used on what was read: ${kind}`);
    return otherwise;
  }
}
