// @ts-check
// Keeps the last page with its stories and their pictures for when Ownfeed isn't running. It keeps nothing else, and
// makes up no requests: the browser itself requests the page (navigation preload), and its headers let the device
// distinguish a followed link from a request by another site. A browser without navigation preload is left alone.

const KEPT = "ownfeed-kept";
const PAGE = "/kept";
const PICTURES = "/pictures/";
/** @type {any} */
const worker = self;
/**
 * Whether an erase was requested. Its answer clears the browser's storage, which this worker can't see: from then on it
 * keeps nothing. The browser starts another worker for later pages.
 */
let erased = false;

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(begin()));
worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { mode, method, url } = event.request;
  if (mode !== "navigate") {
    if (method === "GET" && new URL(url).pathname.startsWith(PICTURES)) event.respondWith(picture(event));
    return;
  }
  if (method === "POST") {
    if (new URL(url).pathname === "/privacy/erase") event.waitUntil(erase());
    return;
  }
  if (method === "GET" && worker.registration.navigationPreload) event.respondWith(answer(event));
});
worker.addEventListener("message", (/** @type {any} */ event) => event.waitUntil(keep(event.data.feed)));

async function erase() {
  erased = true;
  await caches.delete(KEPT);
}

/**
 * What is kept for a request. Opening the cache would create an empty one if there is none, even after an erase.
 * @param {any} request @param {any} [options] @returns {Promise<any>}
 */
function kept(request, options) {
  return caches.match(request, { ...options, cacheName: KEPT });
}

async function begin() {
  await worker.registration.navigationPreload?.enable();
  await worker.clients.claim();
}

/** @param {any} event */
async function answer(event) {
  try {
    // Requested again by its address alone, it isn't a followed link: the story is shown, and nothing is recorded.
    return (await event.preloadResponse) ?? (await fetch(event.request.url));
  } catch (stopped) {
    const page = await kept(PAGE, { ignoreSearch: true });
    if (page === undefined) throw stopped;
    const { pathname } = new URL(event.request.url);
    const [, story] = pathname.match(/^\/story\/([^/]+)$/) ?? [];
    return story === undefined ? page : Response.redirect(`${PAGE}#n-${decodeURIComponent(story)}`);
  }
}

/** A picture of the kept page, if the device doesn't answer. @param {any} event */
async function picture(event) {
  try {
    return await fetch(event.request);
  } catch (stopped) {
    const own = await kept(event.request);
    if (own === undefined) throw stopped;
    return own;
  }
}

/** @param {string} feed */
async function keep(feed) {
  const address = `${PAGE}?feed=${encodeURIComponent(feed)}`;
  if ((await kept(address)) !== undefined) return;
  const answered = await fetch(address, { redirect: "manual" }); // after an erase it redirects to the welcome page
  if (!answered.ok) return;
  const named = (await answered.clone().text()).matchAll(/ src="(\/pictures\/[^"]+)"/g);
  if (erased) return;
  try {
    const cache = await caches.open(KEPT);
    for (const before of await cache.keys()) await cache.delete(before);
    // one may have been deleted meanwhile
    await Promise.all([...named].map(([, own = ""]) => cache.add(own).catch(() => undefined)));
    await cache.put(address, answered);
  } finally {
    if (erased) await caches.delete(KEPT);
  }
}
