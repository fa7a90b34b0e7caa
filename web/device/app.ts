// The page's script. So far it only keeps the build and asks the worker for the page; the reader's pages come with the
// worker's own.
import { keepBuild } from "./pinned_build";

const script = document.querySelector<HTMLScriptElement>("script[data-worker]");
const page = document.querySelector("#page main");
const worker = new Worker(script?.dataset["worker"] ?? "", { type: "module" });
worker.onmessage = ({ data }: MessageEvent<{ words: string }>) => {
  const line = page?.querySelector("[role=status]");
  if (line) line.textContent = data.words;
};
worker.postMessage({ path: "/" });
void keepBuild();
