// Graphs run by ONNX Runtime Web: wasm, one thread, from bytes whose hash was checked; parameters fed per release.
import { sha256 } from "@noble/hashes/sha2.js";
import { hexToBytes } from "@noble/hashes/utils.js";
import * as ort from "onnxruntime-web/wasm";
import { GraphMismatch } from "../errors";
import { finite } from "../vectors";
import { checkGraph } from "../wire/graphs/check";
import type { GraphCosts } from "../wire/graphs/costs";
import { GraphRefused } from "../wire/graphs/message";
import type { Tensor } from "../wire/tensors";
import { type Declared, SharedPadding, type Values } from "./padding";

const PARAMETER_PREFIX = "p.";
/** Of why a graph is refused: shapes in it are the server's, and may be long. */
const WORDS_LIMIT = 400;
const CHECKED_KEPT = 256;
const checked = new Map<string, GraphCosts>();

/** An ONNX graph of one Identity: ONNX Runtime has nothing else to be started with. */
const SMALLEST_GRAPH = hexToBytes(
  "08083a370a100a017812017922084964656e746974791201675a0f0a0178120a0a08080112040a020801620f0a0179120a0a08080112040a020801" +
    "42040a001011",
);

const LOADED_BY: ort.InferenceSession.SessionOptions = { executionProviders: ["wasm"], logSeverityLevel: 3 };

/** Parameters by name, float32. */
export type Weights = ReadonlyMap<string, Tensor>;

/** Where sessions come from: the wasm is started with the first of them. */
export class Graphs {
  private starting: Promise<void> | null = null;

  /** wasm: the bytes of ort-wasm-simd-threaded.wasm, or what gives them when the first graph is loaded. */
  constructor(private readonly wasm: ArrayBuffer | Uint8Array | (() => Promise<ArrayBuffer | Uint8Array>)) {}

  /**
   * The graph with its parameters; more weights than it declares are fine. private names parameters that no release
   * brings; one that is not among the weights is zero, as for a reader whose device has learnt nothing yet. Throws
   * GraphMismatch if the graph is none that a release may bring, before ONNX Runtime sees it; if it can't be loaded, or
   * declares a parameter that is missing or of another shape.
   */
  async session(graph: Uint8Array, weights: Weights, names: readonly string[] = []): Promise<GraphSession> {
    const costs = costsOf(graph);
    await this.start();
    let session: ort.InferenceSession;
    try {
      session = await ort.InferenceSession.create(graph, LOADED_BY);
    } catch (broken) {
      throw new GraphMismatch(`ONNX Runtime can't load it: ${broken instanceof Error ? broken.message : String(broken)}`);
    }
    try {
      return new GraphSession(session, costs, weights, names);
    } catch (broken) {
      await session.release();
      throw broken;
    }
  }

  /** Fetch and compile the runtime before there is a graph. What goes wrong is told by the first graph's loading. */
  async prepare(): Promise<void> {
    try {
      await this.start();
      await (await ort.InferenceSession.create(SMALLEST_GRAPH, LOADED_BY)).release();
    } catch {
      return;
    }
  }

  private start(): Promise<void> {
    this.starting ??= this.begin().finally(() => (this.starting = null));
    return this.starting;
  }

  private async begin(): Promise<void> {
    const { env } = ort;
    if (env.wasm.wasmBinary) return;
    const bytes = typeof this.wasm === "function" ? await this.wasm() : this.wasm;
    env.wasm.numThreads = 1;
    env.wasm.proxy = false;
    env.logLevel = "error";
    env.wasm.wasmBinary = bytes instanceof Uint8Array ? new Uint8Array(bytes).buffer : bytes;
  }
}

/** A graph with one release's parameters; running it feeds the rest and gives every output by name. */
export class GraphSession {
  readonly inputs: readonly string[];
  /** Shapes of the private parameters that no release brings, by name. */
  readonly private = new Map<string, readonly number[]>();
  private readonly parameters: Record<string, ort.Tensor> = {};
  private readonly padding: SharedPadding;

  constructor(
    private readonly session: ort.InferenceSession,
    private readonly costs: GraphCosts,
    weights: Weights,
    names: readonly string[],
  ) {
    const inputs = declaredBy(session.inputMetadata);
    this.padding = new SharedPadding(inputs, declaredBy(session.outputMetadata));
    this.inputs = inputs.map((each) => each.name).filter((name) => !name.startsWith(PARAMETER_PREFIX));
    for (const { name: full, shape } of inputs) {
      if (!full.startsWith(PARAMETER_PREFIX)) continue;
      const name = full.slice(PARAMETER_PREFIX.length);
      const weight = weights.get(name);
      if (!weight && names.includes(name)) {
        const dims = shape.map(Number);
        this.private.set(name, dims);
        this.parameters[full] = tensor({ dims, data: new Float32Array(dims.reduce((all, size) => all * size, 1)) });
        continue;
      }
      if (!weight) throw new GraphMismatch(`parameter ${name}: declared by the graph, missing from the weights`);
      const fits = weight.shape.length === shape.length && shape.every((axis, at) => typeof axis !== "number" || axis === weight.shape[at]);
      if (!fits)
        throw new GraphMismatch(`parameter ${name}: shape (${weight.shape.join()}), the graph declares (${shape.join()})`);
      this.parameters[full] = tensor({ dims: weight.shape, data: weight.data as Float32Array });
    }
  }

  /** What this reader's device has learnt in place of zeros. A value of another shape was learnt for another form. */
  takePrivate(values: Readonly<Record<string, Tensor>>): void {
    for (const [name, dims] of this.private) {
      const value = values[name];
      const fits = value?.shape.length === dims.length && dims.every((size, at) => size === value.shape[at]);
      const data = fits ? (value.data as Float32Array) : new Float32Array(dims.reduce((all, size) => all * size, 1));
      this.parameters[PARAMETER_PREFIX + name] = tensor({ dims, data });
    }
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
    const feeds: Record<string, ort.Tensor> = { ...this.parameters };
    const cut = this.padding.cut(given, count);
    const shapes = Object.fromEntries(Object.entries(cut).map(([name, { dims }]) => [name, dims]));
    unlessRefused(() => this.costs.require(shapes));
    for (const [name, values] of Object.entries(cut)) feeds[name] = tensor(values);
    let found: ort.InferenceSession.ReturnType;
    try {
      found = await this.session.run(feeds);
    } catch (broken) {
      throw new GraphMismatch(broken instanceof Error ? broken.message : String(broken));
    }
    const made: Record<string, Values> = {};
    for (const [name, value] of Object.entries(found))
      if (value.data instanceof Float32Array) made[name] = { dims: value.dims, data: value.data };
    return this.padding.putBack(made, count);
  }

  /** Let go of its memory, which the collector doesn't see. */
  release(): Promise<void> {
    return this.session.release();
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

function tensor({ dims, data }: Values): ort.Tensor {
  return new ort.Tensor("float32", data, dims);
}

function declaredBy(all: readonly ort.InferenceSession.ValueMetadata[]): Declared[] {
  return all.map((each) => ({ name: each.name, shape: each.isTensor ? each.shape : [] }));
}
