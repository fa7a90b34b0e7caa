// node run_browser_end.mjs BUNDLE: each line of standard input is JSON [what to do, with what], each of standard output
// JSON {answer} or {fault}, after a first one that says "ready". Only this file knows Node: the bundle is what a browser would get, and files are handed to it
// as bytes.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const log = (...words) => process.stderr.write(`${words.map(String).join(" ")}\n`);
Object.assign(console, { log, info: log, warn: log, error: log, debug: log });
const { answer } = await import(pathToFileURL(process.argv[2]).href);
const packages = new URL("../../web/node_modules/", import.meta.url);
const wasm = (file) => new Uint8Array(readFileSync(new URL(file, packages))); // a Buffer's `slice` copies nothing
process.stdout.write('"ready"\n');
for await (const line of createInterface({ input: process.stdin })) {
  const [what, given] = JSON.parse(line);
  let told;
  try {
    told = { answer: (await answer(what, given, wasm)) ?? null };
  } catch (fault) {
    told = { fault: String(fault?.stack ?? fault) };
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
