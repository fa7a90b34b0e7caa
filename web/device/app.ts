// The page's script: it asks the device for pages and puts them into the document. Links and forms are those of the
// templates; their addresses stand in the fragment of the app's (addresses.ts).
import { HOME, inBar, outOfPath, own as ownFrom, parted } from "./addresses";
import { type Answer, type Asking, hasErased } from "./asking";
import { becomeAlike } from "./likeness";
import { InPlace, SLOW_MS } from "./in_place";
import { DeviceLink } from "./link";
import { Place } from "./place";
import { BuildNotice } from "./build_notice";
import { keptFrontPage } from "./store/front_page";
import { UnderWay, fieldsOf, searchAddress } from "./under_way";
import { listenToKeys } from "../static/js/keys.js";

const script = document.querySelector<HTMLScriptElement>("script[data-worker]");
const workerScript = script?.dataset["worker"] ?? "";
const link = new DeviceLink(workerScript, leaveErased);
const place = new Place();
const build = new BuildNotice(
  () => parted(here())[0],
  async (builds) => {
    const answer = await link.ask({ builds });
    return answer.kind === "builds" ? answer.verdicts : [];
  },
);
const spoken = document.createElement("p");
spoken.className = "hidden";
spoken.setAttribute("role", "status");
const underWay = new UnderWay(own);

/** How a page came to be asked for: what becomes of history, place and focus. */
type Way = "load" | "follow" | "replace" | "back";
type Form = NonNullable<Asking["form"]>;
let latest = 0;
/** An address of a picture that the device has yet to draw. */
const UNDRAWN = "data-art";
/** What the document shows: what the device kept, or made in this visit. */
let standing: "nothing" | "kept" | "made" = "nothing";
/** Pictures of the page that was kept, by the addresses that name them. */
let keptPictures: Readonly<Record<string, string>> = {};

/** The device's own address of one in the bar or in a link; null for one that is none of the app's. */
function own(address: string): string | null {
  return ownFrom(address, location.href);
}

const here = (): string => own(location.href) ?? "/";

const ask = (address: string, form: Asking["form"], { followed = false, quietly = false } = {}): Promise<Answer> =>
  link.ask({ address, form, followed, quietly });

async function go(address: string, way: Way, form: Asking["form"] = null): Promise<void> {
  const mine = ++latest;
  const slow = setTimeout(() => say("Loading"), SLOW_MS);
  if (standing !== "kept" || way === "follow") busy(true); // what is kept can be read while its device starts
  try {
    if (way === "follow") place.leave();
    const answer = await ask(parted(address)[0], form, { followed: way === "follow" && form === null });
    if (mine === latest || hasErased(answer)) await take(answer, address, form === null ? way : "follow");
  } finally {
    clearTimeout(slow);
    if (mine === latest) {
      underWay.following = null;
      busy(false);
    }
  }
}

/** Go to a page by a link or a search, unless it is the one that is coming. */
function follow(address: string): void {
  if (address === underWay.following) return;
  void go(address, "follow");
  underWay.following = address;
}

/** Not on the body: what is spoken stands in it, and would wait for the page. */
function busy(is: boolean): void {
  const main = document.querySelector("main");
  if (is) main?.setAttribute("aria-busy", "true");
  else main?.removeAttribute("aria-busy");
}

async function take(answer: Answer, address: string, way: Way): Promise<void> {
  if (answer.kind === "see_other") return go(answer.path, way === "back" ? "replace" : way);
  if (answer.kind === "file") return offer(answer.name, new Blob([new Uint8Array(answer.content)], { type: answer.type }));
  if (answer.kind === "failed") return say(answer.words, true);
  if (answer.kind !== "page") return;
  const shown = address.replace(/([?&])said=[^&#]*&?/, "$1").replace(/[?&](?=#|$)/, "");
  if (way === "follow") history.pushState(null, "", inBar(shown));
  else if (way !== "back") history.replaceState(history.state, "", inBar(shown));
  const page = read(answer.html);
  const isKept = standing === "kept" && way !== "follow" && feedOf(page) === feedOf(document);
  standing = "made";
  if (isKept) bringUpToDate(page);
  else show(page, address, way);
  keptPictures = {};
}

/** Put a page into the document. */
function show(page: Document, address: string, way: Way): void {
  document.title = page.title;
  document.body.replaceChildren(...page.body.childNodes, spoken);
  say("");
  say(page.title);
  drawPictures(document);
  inPlace.begin();
  build.begin();
  underWay.mark();
  const [, part] = parted(address);
  if (way !== "load" || part) place.arrive(way === "back", part);
}

/** The front page as this device drew it last, while the device starts; what it makes then takes its place. */
async function showKept(way: Way): Promise<void> {
  if (parted(here())[0] !== "/") return;
  const folder = await navigator.storage.getDirectory();
  const kept = await keptFrontPage(folder, new URL(workerScript, location.href).pathname, Date.now());
  if (!kept) return;
  standing = "kept";
  keptPictures = kept.pictures;
  show(read(kept.html), here(), way);
}

/** The page that stands, as the device makes it now. */
function bringUpToDate(page: Document): void {
  spoken.remove();
  document.title = page.title;
  becomeAlike(document.body, page.body);
  putSpoken();
  say(page.title);
  drawPictures(document);
  inPlace.begin();
  underWay.mark();
}

/** Another tab has erased what the device knew: nothing of it stays here. */
function leaveErased(): void {
  document.querySelector("main")?.replaceChildren();
  keptPictures = {};
  history.replaceState(null, "");
  void go("/welcome", "replace");
}

const feedOf = (page: Document): string | undefined => page.querySelector("main")?.dataset["feed"];

/**
 * A page of the device as a document of this app: what it names is brought into the app's address, so that nothing else is
 * asked. Its pictures are the device's own.
 */
function read(html: string): Document {
  const page = new DOMParser().parseFromString(html, "text/html");
  const bring = (one: Element, name: string, before = "") =>
    one.setAttribute(name, inBar(before + (one.getAttribute(name) ?? "")));
  for (const one of page.querySelectorAll("a[href^='/']")) bring(one, "href");
  // the link past the head stays as it is, which is how tools for accessibility know it
  for (const one of page.querySelectorAll("a[href^='#']:not(.skip)")) bring(one, "href", parted(here())[0]);
  for (const one of page.querySelectorAll("form[action^='/']")) bring(one, "action");
  for (const picture of page.querySelectorAll("img:is([src^='/art/'], [src^='/pictures/'])")) {
    const address = picture.getAttribute("src") ?? "";
    const kept = keptPictures[address];
    if (kept === undefined) picture.setAttribute(UNDRAWN, address);
    if (kept === undefined) picture.removeAttribute("src");
    else picture.setAttribute("src", kept);
  }
  return page;
}

/** Have the device draw the pictures that are still missing. */
function drawPictures(page: Document): void {
  const pictures = [...page.querySelectorAll<HTMLImageElement>(`img[${UNDRAWN}]`)];
  if (!pictures.length) return;
  void link.ask({ pictures: pictures.map((picture) => picture.getAttribute(UNDRAWN) ?? "") }).then((answer) => {
    if (answer.kind !== "pictures") return;
    pictures.forEach((picture, at) => {
      picture.src = answer.drawn[at] ?? "";
      picture.removeAttribute(UNDRAWN);
    });
  });
}

/** Say something aloud; seen: what failed, for all to see, until the reader goes on. */
function say(words: string, seen = false): void {
  const wasSeen = spoken.role === "alert";
  if (spoken.textContent === words || (wasSeen && !seen && words)) return;
  spoken.role = seen ? "alert" : "status";
  spoken.className = seen ? "notice bad" : "hidden";
  if (seen !== wasSeen || !spoken.isConnected) putSpoken();
  spoken.textContent = words;
}

function putSpoken(): void {
  const main = document.querySelector("main");
  if (spoken.role !== "alert" || !main) return document.body.append(spoken);
  if (standing === "nothing") main.querySelector("[role=status]")?.remove(); // that it is being opened
  main.prepend(spoken);
}

function offer(name: string, content: Blob): void {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(content);
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(anchor.href);
}

const inPlace = new InPlace({
  deed: async (address, form) => {
    const answer = await ask(address, form, { quietly: true });
    if (answer.kind === "done") return true;
    say(answer.kind === "failed" ? answer.words : "The device did not take this.", true);
    return false;
  },
  page: async (address) => {
    const answer = await ask(address, null);
    if (answer.kind === "failed") say(answer.words, true);
    if (answer.kind !== "page" || answer.status !== 200) return null;
    const page = read(answer.html);
    drawPictures(page);
    return page;
  },
  own,
  say,
});

const anchorOf = ({ target }: Event): HTMLAnchorElement | null => (target instanceof Element ? target.closest("a") : null);

/** A story that is opened in a tab of its own is read: said here, as the other tab can't tell that from a reload. */
function besides(anchor: HTMLAnchorElement): void {
  const address = own(anchor.href);
  if (address?.startsWith("/story/")) void ask(parted(address)[0], null, { followed: true, quietly: true });
}

document.addEventListener("auxclick", (event) => {
  const anchor = anchorOf(event);
  if (anchor && event.button === 1 && !event.defaultPrevented) besides(anchor);
});

document.addEventListener("click", (event) => {
  const anchor = anchorOf(event);
  if (!anchor || event.defaultPrevented || event.button || event.altKey) return;
  if (event.ctrlKey || event.metaKey || event.shiftKey) return besides(anchor);
  const past = anchor.matches(".skip") ? parted(here())[0] + anchor.hash : null;
  const address = past ?? (anchor.target || anchor.hasAttribute("download") ? null : own(anchor.href));
  if (address === null) return;
  event.preventDefault();
  say("");
  const [page, part] = parted(address);
  if (part && page === parted(here())[0]) {
    place.leave();
    history.pushState(null, "", inBar(address));
    place.arrive(false, part);
  } else if (anchor.hasAttribute("data-back") && place.cameFromFeed()) history.back();
  else follow(address);
});

/** What a form sends; of a file its text. */
async function readFieldsOf(form: HTMLFormElement, submitter: HTMLElement | null): Promise<[string, string][]> {
  const fields = [...new FormData(form, submitter)];
  return Promise.all(fields.map(async ([name, value]) => [name, typeof value === "string" ? value : await value.text()]));
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || !(form instanceof HTMLFormElement)) return;
  const address = own(form.action);
  if (address === null) return;
  event.preventDefault();
  say("");
  const submitter = event.submitter instanceof HTMLElement ? event.submitter : null;
  const fields = fieldsOf(form, submitter);
  if (form.method !== "post") follow(searchAddress(address, fields));
  else void underWay.once(address, fields, answerTo(form, submitter, address, fields));
});

/** What does a deed: on the page that stands, or by going to another. */
function answerTo(form: HTMLFormElement, submitter: HTMLElement | null, address: string, fields: Form): () => Promise<void> {
  const send = (content: Form) => {
    underWay.following = null;
    return go(address, "follow", content);
  };
  if (form.enctype === "multipart/form-data") {
    const unread = () => say("This file can't be read. It may have been changed since you chose it: choose it again.", true);
    const read = readFieldsOf(form, submitter);
    return () => read.then(send, unread);
  }
  return inPlace.answerTo(form, submitter, address, fields) ?? (() => send(fields));
}

addEventListener("popstate", () => {
  underWay.following = null;
  void go(here(), "back"); // also where another fragment was typed into the bar
});
addEventListener("pagehide", () => place.leave());
history.scrollRestoration = "manual";
listenToKeys();
const [entry] = performance.getEntriesByType("navigation");
const again = entry instanceof PerformanceNavigationTiming && entry.type !== "navigate";
if (location.pathname + location.search !== HOME) history.replaceState(history.state, "", outOfPath(location));
const arrival = again ? "back" : "load";
await showKept(arrival).catch(console.error); // the device makes the page all the same
link.begin();
await go(here(), arrival);
// what keeps the app takes its files a second time and hashes them: not while a first feed is being made
void link.ask({ quiet: true }).then(() => build.watch());
if (navigator.storage?.persist)
  void navigator.storage.persist().then((persisted) => link.ask({ persisted }), () => undefined);
