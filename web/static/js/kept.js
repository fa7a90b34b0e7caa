// @ts-check
// Registers the worker that keeps the last page, and has it keep this one when the browser is idle.

const AFTER_MS = 3000;

export function keepPage() {
  const worker = document.querySelector("script[data-worker]")?.getAttribute("data-worker");
  if (!worker || !("serviceWorker" in navigator)) return;
  addEventListener("load", () => setTimeout(() => void begin(worker), AFTER_MS));
}

/** @param {string} worker */
async function begin(worker) {
  try {
    await navigator.serviceWorker.register(worker, { scope: "/" });
    const feed = document.querySelector("main")?.dataset.feed;
    if (feed === undefined || location.pathname !== "/") return;
    (await navigator.serviceWorker.ready).active?.postMessage({ feed });
  } catch {
    // Refused by the browser, for example in a private window: the pages work without it.
  }
}
