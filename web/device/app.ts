// The page's script: requests pages from the device and puts them into the document. Links and forms are those of the
// templates; the device's addresses are stored in the fragment of the app's address (place.ts).
import { HOME, Place, inBar, outOfPath, own as ownFrom, parted } from "./place";
import { DeviceLink, hasErased, type Answer, type Asking, type Cleared } from "./link";
import { becomeAlike } from "../static/js/alike.js";
import { InPlace, SLOW_MS } from "./in_place";
import { BuildNotice, apiOrigin, earlierUse } from "./pinned_build";
import { keptFrontPage } from "./store/front_page";
import { UnderWay, fieldsOf, searchAddress } from "./under_way";
import { listenToKeys } from "../static/js/keys.js";
import { listenToTools, markLook } from "../static/js/tools.js";

const script = document.querySelector<HTMLScriptElement>("script[data-worker]");
const workerScript = script?.dataset["worker"] ?? "";
const link = new DeviceLink(workerScript, apiOrigin(), leaveErased, showCleared);
const place = new Place();
const build = new BuildNotice(
  () => parted(here())[0],
  async (builds) => {
    const answer = await link.ask({ builds });
    return answer.kind === "builds" ? answer.verdicts : [];
  },
  (installed) => place.mark(installed),
);
const spoken = document.createElement("p");
spoken.className = "hidden";
spoken.setAttribute("role", "status");
const underWay = new UnderWay(own);

/** How a page was requested; determines history, scroll position and focus. */
type Way = "load" | "follow" | "replace" | "back";
type Form = NonNullable<Asking["form"]>;
let latest = 0;
/** Attribute with the address of a picture that the device has yet to draw. */
const UNDRAWN = "data-art";
/** What the document shows: nothing yet, the page kept from the last visit, or a page made in this visit. */
let standing: "nothing" | "kept" | "made" = "nothing";
/** Pictures of the kept page, by address. */
let keptPictures: Readonly<Record<string, string>> = {};

/** Returns the device's address for one in the address bar or in a link; null if it isn't part of the app. */
function own(address: string): string | null {
  return ownFrom(address, location.href);
}

const here = (): string => own(location.href) ?? "/";

const ask = (address: string, form: Asking["form"], { followed = false, quietly = false } = {}): Promise<Answer> =>
  link.ask({ address, form, followed, quietly });

async function go(address: string, way: Way, form: Asking["form"] = null): Promise<void> {
  const mine = ++latest;
  const slow = setTimeout(() => say("Loading"), SLOW_MS);
  if (standing !== "kept" || way === "follow") busy(true); // the kept page can be read while its device starts
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

/** Navigates to a page by link or search, unless it is already loading. */
function follow(address: string): void {
  if (address === underWay.following) return;
  void go(address, "follow");
  underWay.following = address;
}

/** Marks the page as loading. Not set on the body, because screen readers would then delay the messages in it. */
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

/** Puts a page into the document. */
function show(page: Document, address: string, way: Way): void {
  document.title = page.title;
  document.body.replaceChildren(...page.body.childNodes, spoken);
  markLook();
  say("");
  say(page.title);
  drawPictures(document);
  inPlace.begin();
  build.begin();
  underWay.mark();
  const [, part] = parted(address);
  if (way !== "load" || part) place.arrive(way === "back", part);
}

/** Shows the front page as last drawn by this device, until the device has started and made the current one. */
async function showKept(way: Way): Promise<void> {
  if (parted(here())[0] !== "/") return;
  const folder = await navigator.storage.getDirectory();
  const kept = await keptFrontPage(folder, new URL(workerScript, location.href).pathname, Date.now());
  if (!kept) return;
  standing = "kept";
  keptPictures = kept.pictures;
  show(read(kept.html), here(), way);
}

/** Updates the current page to what the device would draw now. */
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

/** Tells the reader that the browser had cleared the device's store. */
function showCleared({ putBack }: Cleared): void {
  keptPictures = {};
  void build.cleared({ putBack });
  // otherwise a first page is already loading, or a question is shown first
  if (standing !== "nothing") void go(here(), "replace");
}

/** Another tab has erased the reader's data: leave every page that shows some of it. */
function leaveErased(): void {
  document.querySelector("main")?.replaceChildren();
  keptPictures = {};
  history.replaceState(null, "");
  void go("/welcome", "replace");
}

const feedOf = (page: Document): string | undefined => page.querySelector("main")?.dataset["feed"];

/**
 * Parses a page of the device into a document of this app. Its addresses become the app's, so that nothing else is
 * requested; its pictures come from the device.
 */
function read(html: string): Document {
  const page = new DOMParser().parseFromString(html, "text/html");
  const bring = (one: Element, name: string, before = "") =>
    one.setAttribute(name, inBar(before + (one.getAttribute(name) ?? "")));
  for (const one of page.querySelectorAll("a[href^='/']")) bring(one, "href");
  // the skip link keeps its address, by which accessibility tools recognise it
  for (const one of page.querySelectorAll("a[href^='#']:not(.skip)")) bring(one, "href", parted(here())[0]);
  for (const one of page.querySelectorAll("form[action^='/']")) bring(one, "action");
  for (const picture of page.querySelectorAll("img:is([src^='/static/art/'], [src^='/pictures/'])")) {
    const address = picture.getAttribute("src") ?? "";
    const kept = keptPictures[address];
    if (kept === undefined) picture.setAttribute(UNDRAWN, address);
    if (kept === undefined) picture.removeAttribute("src");
    else picture.setAttribute("src", kept);
  }
  return page;
}

/** Has the device draw the pictures that are still missing. */
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

/** Announces a message to screen readers. seen: also shows it, for errors, until the reader navigates. */
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
  // except the message that the page is loading
  if (standing === "nothing") main.querySelector("[role=status]")?.remove();
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
  action: async (address, form) => {
    const answer = await ask(address, form, { quietly: true });
    if (answer.kind === "done") return true;
    say(answer.kind === "failed" ? answer.words : "That could not be saved.", true);
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

/**
 * Returns the page's address for a link of this app; null for any other link. Links to publishers are absolute
 * addresses, even if one names a page of this app.
 */
function linked(anchor: HTMLAnchorElement): string | null {
  return anchor.getAttribute("href")?.startsWith(HOME) ? own(anchor.href) : null;
}

/**
 * Records a story opened in another tab as read. Done here because the other tab can't distinguish it from a reload.
 */
function besides(anchor: HTMLAnchorElement): void {
  const address = linked(anchor);
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
  const address = past ?? (anchor.target || anchor.hasAttribute("download") ? null : linked(anchor));
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

/** The fields that a form sends; for a file, its text. */
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

/** Handles a form that performs an action: on the current page, or by going to another. */
function answerTo(form: HTMLFormElement, submitter: HTMLElement | null, address: string, fields: Form): () => Promise<void> {
  const send = (content: Form) => {
    underWay.following = null;
    return go(address, "follow", content);
  };
  if (form.enctype === "multipart/form-data") {
    const unread = () => say("This file can't be read. It may have changed since you chose it. Choose it again.", true);
    const read = readFieldsOf(form, submitter);
    return () => read.then(send, unread);
  }
  return inPlace.answerTo(form, submitter, address, fields) ?? (() => send(fields));
}

addEventListener("popstate", () => {
  underWay.following = null;
  void go(here(), "back"); // also when another fragment was typed into the address bar
});
addEventListener("pagehide", () => place.leave());
history.scrollRestoration = "manual";
listenToKeys();
listenToTools();
const [entry] = performance.getEntriesByType("navigation");
const again = entry instanceof PerformanceNavigationTiming && entry.type !== "navigate";
if (location.pathname + location.search !== HOME) history.replaceState(history.state, "", outOfPath(location));
const arrival = again ? "back" : "load";
const before = await earlierUse();
if (before !== null) await build.requireConsent(before);
await showKept(arrival).catch(console.error); // if this fails, the device still makes the page
if (before?.store) void link.ask({ usedBefore: true });
link.begin();
await go(here(), arrival);
// the service worker downloads the app's files again and hashes them: wait until the first feed has been made
void link.ask({ quiet: true }).then(() => build.watch());
if (navigator.storage?.persist)
  void navigator.storage.persist().then((persisted) => link.ask({ persisted }), () => undefined);
