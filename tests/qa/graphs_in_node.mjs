// Runs ONNX graphs under onnxruntime-web's wasm, the build a browser gets, and writes what they give.
// node graphs_in_node.mjs FOLDER WEB: FOLDER/cases.json lists graphs with their inputs in FOLDER/inputs.bin;
// the outputs go to FOLDER/outputs.bin, described in FOLDER/outputs.json. WEB has node_modules.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, web] = process.argv.slice(2);
const ort = await import(pathToFileURL(join(web, "node_modules/onnxruntime-web/dist/ort.wasm.min.mjs")).href);
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";

const inputs = readFileSync(join(folder, "inputs.bin"));
const arrays = { float32: Float32Array, int64: BigInt64Array, bool: Uint8Array };

/** A tensor from its place in inputs.bin; a copy, because a typed array must start at a multiple of its item size. */
function tensor({ type, dims, offset, bytes }) {
  const buffer = inputs.buffer.slice(inputs.byteOffset + offset, inputs.byteOffset + offset + bytes);
  return new ort.Tensor(type, new arrays[type](buffer), dims);
}

const chunks = [];
const described = [];
let offset = 0;
for (const { graph, batches } of JSON.parse(readFileSync(join(folder, "cases.json"), "utf8"))) {
  const session = await ort.InferenceSession.create(readFileSync(join(folder, graph)), {
    executionProviders: ["wasm"],
  });
  for (const feeds of batches) {
    const fed = Object.fromEntries(Object.entries(feeds).map(([name, place]) => [name, tensor(place)]));
    const results = await session.run(fed);
    const outputs = {};
    for (const [name, { type, dims, data }] of Object.entries(results)) {
      const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
      outputs[name] = { type, dims, offset, bytes: bytes.length };
      chunks.push(Buffer.from(bytes));
      offset += bytes.length;
    }
    described.push(outputs);
  }
  await session.release();
}
writeFileSync(join(folder, "outputs.bin"), Buffer.concat(chunks));
writeFileSync(join(folder, "outputs.json"), JSON.stringify({ version: ort.env.versions.web, cases: described }));
