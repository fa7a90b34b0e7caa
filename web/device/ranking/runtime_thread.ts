// ONNX Runtime in a worker of its own (runtime_worker.ts): starting it takes as long as opening a new device's store,
// so both run in parallel, and a round's gradient doesn't delay pages.
import type { Declared, Values } from "./padding";
import type { LoadedGraph, Runtime } from "./onnx_runtime";

/** Messages to the worker; a loaded graph is identified by a number. Only `bind` has no answer. */
export type Order =
  | { readonly kind: "prepare" }
  | { readonly kind: "load"; readonly graph: Uint8Array }
  | { readonly kind: "bind" | "run"; readonly loaded: number; readonly inputs: Readonly<Record<string, Values>> }
  | { readonly kind: "release"; readonly loaded: number };

/** A loaded graph as its worker describes it. */
export interface LoadReply {
  readonly loaded: number;
  readonly inputs: readonly Declared[];
  readonly outputs: readonly Declared[];
}

export interface Ordered {
  readonly id: number;
  readonly order: Order;
}
/** failed: the Error's message, if it was one. */
export type Done = { readonly id: number } & ({ readonly made: unknown } | { readonly failed: string });

interface Waiting {
  resolve(made: unknown): void;
  reject(why: Error): void;
}

/**
 * A worker that failed before its first answer, for example because its script couldn't be fetched, is replaced when
 * next needed. One that has answered holds graphs in use, and stays.
 */
export class RuntimeThread implements Runtime {
  private worker: Worker | null = null;
  private answered = false;
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;

  /** start: creates the worker when it is first needed. */
  constructor(private readonly start: () => Worker) {}

  async prepare(): Promise<void> {
    await this.ordered({ kind: "prepare" });
  }

  async load(graph: Uint8Array): Promise<LoadedGraph> {
    const { loaded, inputs, outputs } = (await this.ordered({ kind: "load", graph })) as LoadReply;
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
    const given = "inputs" in order ? Object.values(order.inputs) : [];
    const spent = given.filter((values) => values.spent).map((values) => values.data.buffer);
    this.running().postMessage({ id, order } satisfies Ordered, spent);
    return id;
  }

  private running(): Worker {
    if (this.worker) return this.worker;
    const worker = this.start();
    this.answered = false;
    worker.onmessage = ({ data }: MessageEvent<Done>) => {
      this.answered = true;
      const waiting = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if ("failed" in data) waiting?.reject(new Error(data.failed));
      else waiting?.resolve(data.made);
    };
    worker.onerror = ({ message }) => this.broke(worker, message);
    worker.onmessageerror = () => this.broke(worker);
    return (this.worker = worker);
  }

  private broke(worker: Worker, message = ""): void {
    if (worker !== this.worker) return; // a late message from one that was replaced
    if (!this.answered) {
      worker.terminate();
      this.worker = null;
    }
    const waited = [...this.waiting.values()];
    this.waiting.clear();
    for (const { reject } of waited) reject(new Error(message || "its worker could not be started"));
  }
}
