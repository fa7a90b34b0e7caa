// node run_browser_end.mjs BUNDLE ASKED ANSWERED: each line of ASKED is JSON [what to do, with what], each of ANSWERED the
// answer. Only this file knows Node: the bundle is what a browser would get, and wasm is handed to it as bytes.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [bundle, asked, answered] = process.argv.slice(2);
const { answer } = await import(pathToFileURL(bundle).href);
const packages = new URL("../../web/node_modules/", import.meta.url);
const wasm = (file) => readFileSync(new URL(file, packages));
const lines = readFileSync(asked, "utf8").split("\n").slice(0, -1);
const answers = [];
for (const line of lines) {
  const [what, given] = JSON.parse(line);
  answers.push(`${JSON.stringify(await answer(what, given, wasm))}\n`);
}
writeFileSync(answered, answers.join(""));
