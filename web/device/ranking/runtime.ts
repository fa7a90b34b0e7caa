// The interface for running graphs: ONNX Runtime in this thread (onnx_runtime.ts) or in a worker (runtime_thread.ts).
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
