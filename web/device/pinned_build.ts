// What a page knows and decides of its build: which one is installed here, whether the server offers another, and that
// it is taken only when the reader says so. The service worker (service_worker.ts) keeps it.

/** A build by its hash (SHA-256, hex) and the name of its service worker's script below /reader/files/. */
export interface Build {
  build: string;
  script: string;
}

export interface BuildState {
  /** What this browser keeps; null where it keeps none: a private window, or a browser without service workers. */
  installed: Build | null;
  /** What the server has instead, if that is another and the server can be reached. */
  offered: Build | null;
}

const HOME = "/reader/";
const HASH = /^[0-9a-f]{64}$/;
const SCRIPT = /^service_worker\.[0-9a-f]{16}\.js$/;

/** Install the build that this page came with if none is here yet, and look whether the server offers another. */
export async function keepBuild(): Promise<BuildState> {
  if (!("serviceWorker" in navigator)) return { installed: null, offered: null };
  const known = await navigator.serviceWorker.getRegistration(HOME);
  const cameWith = document.querySelector<HTMLMetaElement>('meta[name="service-worker"]')?.content;
  if (known === undefined) {
    if (cameWith === undefined || !SCRIPT.test(cameWith)) return { installed: null, offered: null };
    await register(cameWith);
  }
  const { active } = await navigator.serviceWorker.ready;
  if (active === null) return { installed: null, offered: null };
  const installed = asBuild(await ask(active, "installed"));
  const offered = await ask(active, "offered").then(asBuild, () => null); // offline
  return { installed, offered: offered?.build === installed?.build ? null : offered };
}

/** Take another build, as the reader has decided; the page loads anew once all of it is here and is what its hash says. */
export async function takeBuild(offered: Build): Promise<void> {
  const changed = new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
  await register(offered.script);
  await changed;
  location.reload();
}

async function register(script: string): Promise<void> {
  await navigator.serviceWorker.register(`${HOME}files/${script}`, { scope: HOME });
}

function ask(worker: ServiceWorker, question: "installed" | "offered"): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }: MessageEvent<{ failed?: string }>) => {
      port1.close();
      if (data.failed === undefined) resolve(data);
      else reject(new Error(data.failed));
    };
    worker.postMessage(question, [port2]);
  });
}

function asBuild(told: unknown): Build | null {
  const { build, script } = told as Partial<Build>;
  return build !== undefined && script !== undefined && HASH.test(build) && SCRIPT.test(script) ? { build, script } : null;
}
