// ONNX Runtime Web in this thread: wasm, one thread.
import { hexToBytes } from "@noble/hashes/utils.js";
import * as ort from "onnxruntime-web/wasm";
import type { Declared, Values } from "./padding";

/** A loaded graph. Its promises reject with an Error that has ONNX Runtime's message. */
export interface LoadedGraph {
  readonly inputs: readonly Declared[];
  readonly outputs: readonly Declared[];
  /** Sets inputs that all further runs get as well; a later value replaces an earlier one of the same name. */
  bind(inputs: Readonly<Record<string, Values>>): void;
  /** Returns every float32 output by name. */
  run(inputs: Readonly<Record<string, Values>>): Promise<Record<string, Values>>;
  /** Frees its memory, which isn't garbage-collected. */
  release(): Promise<void>;
}

export interface Runtime {
  /** Fetches, compiles and starts the runtime before there is a graph. */
  prepare(): Promise<void>;
  load(graph: Uint8Array): Promise<LoadedGraph>;
}

/** An ONNX graph of a single Identity: ONNX Runtime can only be started with a graph. */
const SMALLEST_GRAPH = hexToBytes(
  "08083a370a100a017812017922084964656e746974791201675a0f0a0178120a0a08080112040a020801620f0a0179120a0a08080112040a020801" +
    "42040a001011",
);

const LOADED_BY: ort.InferenceSession.SessionOptions = { executionProviders: ["wasm"], logSeverityLevel: 3 };

/** The bytes of ort-wasm-simd-threaded.wasm, or a function that fetches them when needed. */
export type RuntimeFile = ArrayBuffer | Uint8Array | (() => Promise<ArrayBuffer | Uint8Array>);

/** Starts the wasm runtime with the first graph. */
export class OnnxRuntime implements Runtime {
  private starting: Promise<void> | null = null;

  constructor(private readonly wasm: RuntimeFile) {}

  async prepare(): Promise<void> {
    await (await this.load(SMALLEST_GRAPH)).release();
  }

  async load(graph: Uint8Array): Promise<LoadedGraph> {
    this.starting ??= this.begin().finally(() => (this.starting = null));
    await this.starting;
    return new Loaded(await ort.InferenceSession.create(graph, LOADED_BY));
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

class Loaded implements LoadedGraph {
  readonly inputs: readonly Declared[];
  readonly outputs: readonly Declared[];
  private readonly bound: Record<string, ort.Tensor> = {};

  constructor(private readonly session: ort.InferenceSession) {
    this.inputs = declaredBy(session.inputMetadata);
    this.outputs = declaredBy(session.outputMetadata);
  }

  bind(inputs: Readonly<Record<string, Values>>): void {
    Object.assign(this.bound, tensors(inputs));
  }

  async run(inputs: Readonly<Record<string, Values>>): Promise<Record<string, Values>> {
    const found = await this.session.run({ ...this.bound, ...tensors(inputs) });
    const made: Record<string, Values> = {};
    for (const [name, value] of Object.entries(found))
      if (value.data instanceof Float32Array) made[name] = { dims: value.dims, data: value.data };
    return made;
  }

  release(): Promise<void> {
    return this.session.release();
  }
}

function tensors(all: Readonly<Record<string, Values>>): Record<string, ort.Tensor> {
  return Object.fromEntries(Object.entries(all).map(([name, { dims, data }]) => [name, new ort.Tensor("float32", data, dims)]));
}

function declaredBy(all: readonly ort.InferenceSession.ValueMetadata[]): Declared[] {
  return all.map((each) => ({ name: each.name, shape: each.isTensor ? each.shape : [] }));
}
