// What runs graphs: ONNX Runtime in this thread (onnx_runtime.ts), or in a worker of its own (runtime_thread.ts).
import type { Declared, Values } from "./padding";

/** A graph that is loaded. Its promises are rejected with an Error that says what ONNX Runtime says. */
export interface LoadedGraph {
  readonly inputs: readonly Declared[];
  readonly outputs: readonly Declared[];
  /** Inputs that every run from here on gets besides; of one name the last one counts. */
  bind(inputs: Readonly<Record<string, Values>>): void;
  /** Every float32 output by name. */
  run(inputs: Readonly<Record<string, Values>>): Promise<Record<string, Values>>;
  /** Let go of its memory, which the collector doesn't see. */
  release(): Promise<void>;
}

export interface Runtime {
  /** Have it fetched, compiled and started before there is a graph. */
  prepare(): Promise<void>;
  load(graph: Uint8Array): Promise<LoadedGraph>;
}
