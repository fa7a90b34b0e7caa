// Keeps the installed build, complete and checked by hash, and serves nothing else until the reader installs another
// one. The script is named by its content hash, so a browser that checks for an update finds the same bytes or nothing:
// the build changes only when a page registers another name, which it does with the reader's consent (pinned_build.ts).
// It also serves the build offline. The device's own requests pass through unchanged.
export {};

/** A build except this script: the page, the files by hash, and the headers of every response. */
interface Installed {
  shell: string;
  headers: Record<string, string>;
  files: { name: string; sha256: string; type: string }[];
}
declare const INSTALLED: Installed;

interface LifecycleEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface RequestEvent extends LifecycleEvent {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}
interface AskEvent extends LifecycleEvent {
  readonly data: unknown;
  readonly ports: readonly MessagePort[];
}
interface Scope {
  readonly location: Location;
  readonly clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: LifecycleEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: RequestEvent) => void): void;
  addEventListener(type: "message", listener: (event: AskEvent) => void): void;
}
const scope = self as unknown as Scope;

const HOME = "/reader/";
const FILES = `${HOME}files/`;
const OFFERED = `${HOME}build.json`;
const KEPT = "ownfeed-build-";
const ownName = scope.location.pathname.slice(FILES.length);
const ownCache = KEPT + ownName;
const byName = new Map(INSTALLED.files.map((file) => [file.name, file]));

async function sha256(bytes: ArrayBuffer): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The one other origin that the page may send requests to, if it differs from the reader page's origin (`register`).
 */
const api = new URL(scope.location.href).searchParams.get("api");
const POLICY = "content-security-policy";
const OWN_ORIGIN_ALONE = "connect-src 'self'";
const isOrigin = api !== null && /^https?:\/\/[a-z0-9.:[\]-]+$/.test(api) && new URL(api).origin === api;
const headers = isOrigin
  ? { ...INSTALLED.headers, [POLICY]: (INSTALLED.headers[POLICY] ?? "").replace(OWN_ORIGIN_ALONE, `${OWN_ORIGIN_ALONE} ${api}`) }
  : INSTALLED.headers;
const shell = isOrigin ? INSTALLED.shell.replace("</head>", `<meta name="api" content="${api}"></head>`) : INSTALLED.shell;

function answered(body: BodyInit, type: string): Response {
  return new Response(body, { headers: { ...headers, "content-type": type } });
}

/** Fetches a file of this build from the server and checks its hash. */
async function fetched(name: string): Promise<Response> {
  const file = byName.get(name);
  if (file === undefined) throw new Error(`${name} is not a file of this build`);
  const found = await fetch(FILES + name, { credentials: "omit", redirect: "error" });
  const bytes = await found.arrayBuffer();
  if (!found.ok || (await sha256(bytes)) !== file.sha256) throw new Error(`${name} does not match this build's hash`);
  return answered(bytes, file.type);
}

/** Installs every file, from an earlier build if unchanged; all or nothing. */
async function install(): Promise<void> {
  const cache = await caches.open(ownCache);
  for (const { name } of INSTALLED.files) {
    const here = await caches.match(FILES + name);
    await cache.put(FILES + name, here ?? (await fetched(name)));
  }
  await scope.skipWaiting(); // registering this script was the reader's consent
}

async function activate(): Promise<void> {
  for (const name of await caches.keys()) if (name.startsWith(KEPT) && name !== ownCache) await caches.delete(name);
  await scope.clients.claim();
}

/** A file of this build; fetched again if the browser has dropped it. */
async function kept(name: string): Promise<Response> {
  const here = await caches.match(FILES + name);
  if (here !== undefined) return here;
  const again = await fetched(name);
  await (await caches.open(ownCache)).put(FILES + name, again.clone());
  return again;
}

/** This build's hash, which its reader compares with another's: that of this script. */
async function ownBuild(): Promise<string> {
  const script = await fetch(scope.location.href, { credentials: "omit", cache: "force-cache" });
  const build = await sha256(await script.arrayBuffer());
  if (!ownName.includes(build.slice(0, 16))) throw new Error("this script does not match the hash in its name");
  const cache = await caches.open(ownCache);
  await cache.put(`${HOME}installed`, new Response(build));
  return build;
}

async function answer(question: unknown): Promise<unknown> {
  if (question === "installed") {
    const known = await caches.match(`${HOME}installed`);
    return { build: known === undefined ? await ownBuild() : await known.text(), script: ownName };
  }
  if (question === "offered") return (await fetch(OFFERED, { credentials: "omit", cache: "no-store" })).json();
  throw new Error("unknown message");
}

scope.addEventListener("install", (event) => event.waitUntil(install()));
scope.addEventListener("activate", (event) => event.waitUntil(activate()));
scope.addEventListener("fetch", (event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (origin !== scope.location.origin || event.request.method !== "GET") return;
  if (byName.has(pathname.slice(FILES.length)) && pathname.startsWith(FILES)) {
    event.respondWith(kept(pathname.slice(FILES.length)));
  } else if (event.request.mode === "navigate" && pathname.startsWith(HOME)) {
    event.respondWith(Promise.resolve(answered(shell, "text/html; charset=utf-8")));
  }
});
scope.addEventListener("message", (event) => {
  const [port] = event.ports;
  event.waitUntil(
    answer(event.data).then(
      (answer) => port?.postMessage(answer),
      (failed: unknown) => port?.postMessage({ failed: String(failed) }),
    ),
  );
});
