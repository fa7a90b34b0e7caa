// The worker that runs graphs for the device's own worker (runtime_thread.ts).
import graphsFile from "onnxruntime-web/ort-wasm-simd-threaded.wasm";
import { ownFile } from "../uplink/transport";
import { OnnxRuntime } from "./onnx_runtime";
import type { LoadedGraph } from "./onnx_runtime";
import type { Done, Order, Ordered, LoadReply } from "./runtime_thread";

const runtime = new OnnxRuntime(() => ownFile(graphsFile, import.meta.url));
const graphs = new Map<number, LoadedGraph>();
let last = 0;

async function done(order: Order): Promise<unknown> {
  if (order.kind === "prepare") return runtime.prepare();
  if (order.kind === "load") {
    const graph = await runtime.load(order.graph);
    graphs.set((last += 1), graph);
    return { loaded: last, inputs: graph.inputs, outputs: graph.outputs } satisfies LoadReply;
  }
  const graph = graphs.get(order.loaded);
  if (!graph) throw new Error("this graph has already been released");
  if (order.kind === "run") return graph.run(order.inputs);
  if (order.kind === "bind") return graph.bind(order.inputs);
  graphs.delete(order.loaded);
  return graph.release();
}

self.onmessage = async ({ data: { id, order } }: MessageEvent<Ordered>) => {
  let reply: Done;
  try {
    reply = { id, made: await done(order) };
  } catch (broken) {
    reply = { id, failed: broken instanceof Error ? broken.message : String(broken) };
  }
  self.postMessage(reply);
};
