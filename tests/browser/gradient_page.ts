// Gradient graphs timed in a browser's wasm, as a round of training runs them; asked by gradient_page.py.
import { OnnxRuntime } from "../../web/device/ranking/onnx_runtime";
import { Graphs } from "../../web/device/ranking/session";
import { graphLoader, paramsOf } from "../../web/device/training/gradients";
import { load } from "../../web/device/protocol/tensors";

interface Asked {
  /** Base64: an ONNX graph, and safetensors of its parameters and of a batch. */
  graph: string;
  weights: string;
  inputs: string;
  times: number;
}

const bytes = (text: string) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const graphs = new Graphs(new OnnxRuntime(async () => (await fetch("ort-wasm-simd-threaded.wasm")).arrayBuffer()));

/** Milliseconds of each gradient after a first one, which binds the parameters. */
async function timed({ graph, weights, inputs, times }: Asked): Promise<number[]> {
  const loaded = graphLoader(graphs)(bytes(graph), new Map(), []);
  const [params, batch] = [paramsOf(load(bytes(weights))), paramsOf(load(bytes(inputs)))];
  await loaded.run(params, batch);
  const found: number[] = [];
  for (let time = 0; time < times; time++) {
    const started = performance.now();
    await loaded.run(params, batch);
    found.push(performance.now() - started);
  }
  await loaded.release();
  return found;
}

Object.assign(globalThis, { timed });
