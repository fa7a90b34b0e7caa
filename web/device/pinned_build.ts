// Manages the app's build on the page: which build is installed, whether the server offers another, whether the browser
// has deleted it, and the reader's consent to change it. The service worker (service_worker.ts) stores the build. The
// messages are templates in the page that holds the app (web/templates/reader/shell.html).
import { bytesToHex } from "@noble/hashes/utils.js";
import { markedBuild } from "./place";
import type { BuildVerdict } from "./protocol/releases";
import { hasPrivateFile } from "./store/held_file";
import { ownFile } from "./uplink/transport";

/** A build: its hash (SHA-256, hex) and the name of its service worker's script under /reader/files/. */
export interface Build {
  build: string;
  script: string;
}

export interface BuildState {
  /** The installed build; null if there is none: a private window, or a browser without service workers. */
  installed: Build | null;
  /** The server's build if it is another one and the server is reachable. */
  offered: Build | null;
}

const HOME = "/reader/";
const FILES = `${HOME}files/`;
/** Where the page stores the installed build's hash. It isn't secret: all readers with this build have the same. */
export const NOTED = "ownfeed-build";
const HASH = /^[0-9a-f]{64}$/;
const SCRIPT = /^service_worker\.[0-9a-f]{16}\.js$/;

/**
 * Installs the page's build if none is installed, and checks whether the server offers another. noted: called with the
 * installed build once it is known.
 */
export async function keepBuild(noted: (build: string) => void): Promise<BuildState> {
  if (!("serviceWorker" in navigator)) return { installed: null, offered: null };
  const known = await navigator.serviceWorker.getRegistration(HOME);
  if (known === undefined) {
    const script = cameWith();
    if (script === null) return { installed: null, offered: null };
    await register(script);
  }
  const { active } = await navigator.serviceWorker.ready;
  if (active === null) return { installed: null, offered: null };
  const installed = asBuild(await ask(active, "installed"));
  if (installed !== null) {
    noted(installed.build);
    localStorage.setItem(NOTED, installed.build);
  }
  const offered = await ask(active, "offered").then(asBuild, () => null); // offline
  return { installed, offered: offered?.build === installed?.build ? null : offered };
}

/** Installs another build after the reader's consent; reloads the page once all files are here and match its hash. */
export async function takeBuild(offered: Build): Promise<void> {
  const changed = new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
  await register(offered.script);
  await changed;
  location.reload();
}

/**
 * What the browser has deleted. build: hash of the installed build, "" if it isn't known, null if the build is still
 * here. store: whether the reader's data is gone.
 */
export interface EarlierUse {
  readonly build: string | null;
  readonly store: boolean;
}

/**
 * Returns what is gone if this browser had the app before; null if nothing is missing or there is no sign of earlier use.
 *
 * Signs are the tab's own history, which survives when the site's data is cleared, the hash noted by the page, and the
 * browser's promise to keep the site's data. Clearing may remove all of them, so having no sign proves nothing.
 */
export async function earlierUse(): Promise<EarlierUse | null> {
  if (!("serviceWorker" in navigator)) return null; // such a browser keeps no build
  const [registered, stored, promised] = await Promise.all([
    navigator.serviceWorker.getRegistration("/reader/"),
    hasPrivateFile(),
    navigator.storage.persisted(),
  ]);
  const build = markedBuild() ?? localStorage.getItem(NOTED);
  if (registered !== undefined) return stored ? null : { build: null, store: true };
  return build !== null || (promised && !stored) ? { build: build ?? "", store: !stored } : null;
}

/** The build of this page; null if an installed build served it, or the server names none. */
export async function buildOfPage(): Promise<Build | null> {
  const script = cameWith();
  if (script === null) return null;
  const build = await hashOf(script);
  return build !== null && script.includes(build.slice(0, 16)) ? { build, script } : null;
}

/** Reinstalls a build that the browser has dropped; false if the server no longer has it. */
export async function installAgain(lost: Build): Promise<boolean> {
  if ((await navigator.serviceWorker.getRegistration(HOME)) !== undefined) return true;
  if ((await hashOf(lost.script)) !== lost.build) return false;
  await register(lost.script);
  localStorage.setItem(NOTED, lost.build);
  return true;
}

function cameWith(): string | null {
  const script = document.querySelector<HTMLMetaElement>('meta[name="service-worker"]')?.content;
  return script !== undefined && SCRIPT.test(script) ? script : null;
}

/** The origin of all requests except the page's own files, if it differs; '' for the page's own. */
export function apiOrigin(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="api"]')?.content ?? "";
}

/** Returns the SHA-256 (hex) of a script as served; null if it can't be fetched. */
async function hashOf(script: string): Promise<string | null> {
  try {
    const content = await ownFile(FILES + script, location.origin);
    return bytesToHex(new Uint8Array(await crypto.subtle.digest("SHA-256", content)));
  } catch {
    return null;
  }
}

/**
 * Registers a service worker. The browser's own update check sends cookies, and its response could clear this site's
 * storage. With "all", the browser reads the script from its cache, where it stays for a year under its content hash,
 * and asks the server once a day.
 */
async function register(script: string): Promise<void> {
  const api = apiOrigin();
  const asking = api === "" ? "" : `?api=${encodeURIComponent(api)}`;
  await navigator.serviceWorker.register(FILES + script + asking, { scope: HOME, updateViaCache: "all" });
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

function asBuild(content: unknown): Build | null {
  const { build, script } = content as Partial<Build>;
  return build !== undefined && script !== undefined && HASH.test(build) && SCRIPT.test(script) ? { build, script } : null;
}

/** Looks up builds, by hash, in the publisher's signed list. */
type LookUp = (builds: readonly string[]) => Promise<readonly BuildVerdict[]>;

/** Pages that show the build; on the first visit nothing has been reported yet. */
const SHOWN_ON = ["/privacy", "/welcome"];

export class BuildNotice {
  private state: BuildState = { installed: null, offered: null };
  private verdicts: readonly BuildVerdict[] = [];
  private question: HTMLElement | null = null;
  private lost: HTMLElement | null = null;

  /** page: the address of the current page. installed: called with the installed build once it is known. */
  constructor(
    private readonly page: () => string,
    private readonly lookUp: LookUp,
    private readonly installed: (build: string) => void,
  ) {}

  /**
   * If an installed build has disappeared, resolves once the reader allows this page's build to run; at once if it is
   * the same build.
   */
  async requireConsent({ build: lost }: EarlierUse): Promise<void> {
    if (lost === null) return;
    const mine = await buildOfPage();
    if (mine !== null && mine.build === lost) return;
    const question = filled("lost-build", undefined, lost || "not known any more", mine?.build ?? "not known");
    if (question === null) return;
    document.querySelector("main")?.replaceWith(question);
    await new Promise((run) => question.querySelector("[data-run]")?.addEventListener("click", run, { once: true }));
    const main = document.createElement("main");
    main.className = "page";
    question.replaceWith(main);
  }

  /** The browser has cleared this site's data. putBack: whether the device has restored what it remembered. */
  async cleared({ putBack }: { putBack: boolean }): Promise<void> {
    const { installed } = this.state;
    const again = installed === null || (await installAgain(installed).catch(() => false));
    this.lost?.remove();
    const notice = filled("cleared", undefined, installed?.build ?? "");
    notice?.querySelector(putBack ? "[data-not-put-back]" : "[data-put-back]")?.remove();
    if (again) notice?.querySelector("[data-without-build]")?.remove();
    notice?.querySelector("[data-keep]")?.addEventListener("click", () => {
      notice.remove();
      this.lost = null;
    });
    this.lost = notice;
    this.begin();
  }

  /** Installs the build if none is installed, and checks for another. Call it once the first page is shown. */
  async watch(): Promise<void> {
    const state = await keepBuild(this.installed);
    const { installed, offered } = state;
    // now rather than when a page shows it: the server must not learn which page is open
    const builds = [installed, offered].flatMap((each) => (each === null ? [] : [each.build]));
    this.verdicts = builds.length ? await this.lookUp(builds) : [];
    this.state = state;
    if (installed !== null && offered !== null) this.question = this.questionOf(installed, offered);
    this.begin();
  }

  /** Shows the notices that belong on the current page. Called whenever a page has been shown. */
  begin(): void {
    if (this.question !== null) document.body.prepend(this.question);
    if (this.lost !== null) document.body.prepend(this.lost);
    const { installed } = this.state;
    if (!SHOWN_ON.includes(this.page().split("?", 1)[0] ?? "") || installed === null || document.querySelector(".own-build") !== null) return;
    const line = filled("own-build", this.verdicts[0], installed.build);
    if (line !== null) document.querySelector("main")?.append(line);
  }

  private questionOf(installed: Build, offered: Build): HTMLElement | null {
    const question = filled("offered-build", this.verdicts[1], installed.build, offered.build);
    question?.querySelector("[data-take]")?.addEventListener("click", () => void takeBuild(offered));
    question?.querySelector("[data-keep]")?.addEventListener("click", () => {
      question.remove();
      this.question = null;
    });
    return question;
  }
}

/** A copy of a template with the text for one verdict and the hashes filled in; null if there is no such template. */
function filled(name: string, verdict: BuildVerdict = "unknown", ...hashes: string[]): HTMLElement | null {
  const template = document.querySelector<HTMLTemplateElement>(`template#${name}`);
  const copy = template?.content.firstElementChild?.cloneNode(true);
  if (!(copy instanceof HTMLElement)) return null;
  for (const words of copy.querySelectorAll<HTMLElement>("[data-verdict]"))
    if (words.dataset["verdict"] !== verdict) words.remove();
  copy.querySelectorAll("code").forEach((place, at) => (place.textContent = hashes[at] ?? ""));
  return copy;
}
