// node run_browser_devices.mjs BUNDLE SQLITE_WASM ONNX_WASM: each line of standard input is JSON [what to do, with what],
// each line of standard output the answer. Only this file knows Node: the bundle is what a browser would get.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [bundle, sqlite, onnx] = process.argv.slice(2);
const log = (...words) => process.stderr.write(`${words.map(String).join(" ")}\n`);
Object.assign(console, { log, info: log, warn: log, error: log, debug: log });
const { answer, begin } = await import(pathToFileURL(bundle).href);
begin(readFileSync(sqlite), readFileSync(onnx));
for await (const line of createInterface({ input: process.stdin })) {
  const [what, given] = JSON.parse(line);
  let told;
  try {
    told = { answer: await answer(what, given) };
  } catch (fault) {
    told = { fault: String(fault?.stack ?? fault) };
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
