// ONNX Runtime in a worker of its own (runtime_worker.ts): to start it takes as long as to open a new device's store, and
// a gradient of a round keeps no page waiting.
import type { Declared, Values } from "./padding";
import type { LoadedGraph, Runtime } from "./runtime";

/** What is asked of the worker; a graph that is loaded is its number there. Only `bind` has no answer. */
export type Order =
  | { readonly kind: "prepare" }
  | { readonly kind: "load"; readonly graph: Uint8Array }
  | { readonly kind: "bind" | "run"; readonly loaded: number; readonly inputs: Readonly<Record<string, Values>> }
  | { readonly kind: "release"; readonly loaded: number };

/** A graph that was loaded, as its worker tells of it. */
export interface Told {
  readonly loaded: number;
  readonly inputs: readonly Declared[];
  readonly outputs: readonly Declared[];
}

export interface Ordered {
  readonly id: number;
  readonly order: Order;
}
/** failed: the words of the Error, where it was one. */
export type Done = { readonly id: number } & ({ readonly made: unknown } | { readonly failed: string });

interface Waiting {
  resolve(made: unknown): void;
  reject(why: Error): void;
}

export class RuntimeThread implements Runtime {
  private worker: Worker | null = null;
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;

  /** start: makes the worker, when it is needed first. */
  constructor(private readonly start: () => Worker) {}

  async prepare(): Promise<void> {
    await this.ordered({ kind: "prepare" });
  }

  async load(graph: Uint8Array): Promise<LoadedGraph> {
    const { loaded, inputs, outputs } = (await this.ordered({ kind: "load", graph })) as Told;
    return {
      inputs,
      outputs,
      bind: (bound) => this.post({ kind: "bind", loaded, inputs: bound }),
      run: (given) => this.ordered({ kind: "run", loaded, inputs: given }) as Promise<Record<string, Values>>,
      release: async () => void (await this.ordered({ kind: "release", loaded })),
    };
  }

  private ordered(order: Order): Promise<unknown> {
    return new Promise((resolve, reject) => this.waiting.set(this.post(order), { resolve, reject }));
  }

  private post(order: Order): number {
    const id = (this.last += 1);
    this.running().postMessage({ id, order } satisfies Ordered);
    return id;
  }

  private running(): Worker {
    if (this.worker) return this.worker;
    const worker = this.start();
    worker.onmessage = ({ data }: MessageEvent<Done>) => {
      const waiting = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if ("failed" in data) waiting?.reject(new Error(data.failed));
      else waiting?.resolve(data.made);
    };
    worker.onerror = ({ message }) => {
      for (const { reject } of this.waiting.values()) reject(new Error(message || "its worker can't be had"));
      this.waiting.clear();
    };
    return (this.worker = worker);
  }
}
