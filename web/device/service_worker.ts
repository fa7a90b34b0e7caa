// Keeps the build that was installed, whole and checked by hash, and answers with nothing else until the reader takes
// another one. Its script's name is the hash of its content, so a browser that looks for another version of it finds the
// same bytes or none: only a page that registers another name changes the build, which it does when its reader says so
// (pinned_build.ts). Offline it answers all the same. Requests of the device's own go past it untouched.
export {};

/** All of a build but this script: the page, the files by hash, and the headers that every answer has. */
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

function answered(body: BodyInit, type: string): Response {
  return new Response(body, { headers: { ...INSTALLED.headers, "content-type": type } });
}

/** A file of this build, from the server, if it is what its hash says. */
async function fetched(name: string): Promise<Response> {
  const file = byName.get(name);
  if (file === undefined) throw new Error(`${name} is no file of this build`);
  const found = await fetch(FILES + name, { credentials: "omit", redirect: "error" });
  const bytes = await found.arrayBuffer();
  if (!found.ok || (await sha256(bytes)) !== file.sha256) throw new Error(`${name} is not what this build's hash says`);
  return answered(bytes, file.type);
}

/** Every file, from a build that was installed before where it is the same; all of them or none. */
async function install(): Promise<void> {
  const cache = await caches.open(ownCache);
  for (const { name } of INSTALLED.files) {
    const here = await caches.match(FILES + name);
    await cache.put(FILES + name, here ?? (await fetched(name)));
  }
  await scope.skipWaiting(); // to register this script was the reader's consent
}

async function activate(): Promise<void> {
  for (const name of await caches.keys()) if (name.startsWith(KEPT) && name !== ownCache) await caches.delete(name);
  await scope.clients.claim();
}

/** A file of this build; if the browser has dropped it, again from the server. */
async function kept(name: string): Promise<Response> {
  const here = await caches.match(FILES + name);
  if (here !== undefined) return here;
  const again = await fetched(name);
  await (await caches.open(ownCache)).put(FILES + name, again.clone());
  return again;
}

/** The hash of this build, which its reader compares with another's: that of this script. */
async function ownBuild(): Promise<string> {
  const script = await fetch(scope.location.href, { credentials: "omit", cache: "force-cache" });
  const build = await sha256(await script.arrayBuffer());
  if (!ownName.includes(build.slice(0, 16))) throw new Error("this script is not what its name says");
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
  throw new Error("no such question");
}

scope.addEventListener("install", (event) => event.waitUntil(install()));
scope.addEventListener("activate", (event) => event.waitUntil(activate()));
scope.addEventListener("fetch", (event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (origin !== scope.location.origin || event.request.method !== "GET") return;
  if (byName.has(pathname.slice(FILES.length)) && pathname.startsWith(FILES)) {
    event.respondWith(kept(pathname.slice(FILES.length)));
  } else if (event.request.mode === "navigate" && pathname.startsWith(HOME)) {
    event.respondWith(Promise.resolve(answered(INSTALLED.shell, "text/html; charset=utf-8")));
  }
});
scope.addEventListener("message", (event) => {
  const [port] = event.ports;
  event.waitUntil(
    answer(event.data).then(
      (told) => port?.postMessage(told),
      (failed: unknown) => port?.postMessage({ failed: String(failed) }),
    ),
  );
});
