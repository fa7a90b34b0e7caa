// @ts-check
// Keeps the last page with its stories and their pictures for when Ownfeed isn't running. Nothing else is kept, and no
// request is made up:
// a page is asked for by the browser itself (navigation preload), whose headers tell the device a followed link from
// another site's. A browser that can't do so is left alone.

const KEPT = "ownfeed-kept";
const PAGE = "/kept";
const PICTURES = "/pictures/";
/** @type {any} */
const worker = self;

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(begin()));
worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { mode, method, url } = event.request;
  if (mode !== "navigate") {
    if (method === "GET" && new URL(url).pathname.startsWith(PICTURES)) event.respondWith(picture(event));
    return;
  }
  if (method === "POST") {
    if (new URL(url).pathname === "/privacy/erase") event.waitUntil(caches.delete(KEPT));
    return;
  }
  if (method === "GET" && worker.registration.navigationPreload) event.respondWith(answer(event));
});
worker.addEventListener("message", (/** @type {any} */ event) => event.waitUntil(keep(event.data.feed)));

async function begin() {
  await worker.registration.navigationPreload?.enable();
  await worker.clients.claim();
}

/** @param {any} event */
async function answer(event) {
  try {
    // Asked for anew by its address alone it is no followed link: a story shows, and nothing is recorded.
    return (await event.preloadResponse) ?? (await fetch(event.request.url));
  } catch (stopped) {
    const kept = await (await caches.open(KEPT)).match(PAGE, { ignoreSearch: true });
    if (kept === undefined) throw stopped;
    const { pathname } = new URL(event.request.url);
    const [, story] = pathname.match(/^\/story\/([^/]+)$/) ?? [];
    return story === undefined ? kept : Response.redirect(`${PAGE}#n-${decodeURIComponent(story)}`);
  }
}

/** One of the kept page where the device doesn't answer. @param {any} event */
async function picture(event) {
  try {
    return await fetch(event.request);
  } catch (stopped) {
    const kept = await (await caches.open(KEPT)).match(event.request);
    if (kept === undefined) throw stopped;
    return kept;
  }
}

/** @param {string} feed */
async function keep(feed) {
  const cache = await caches.open(KEPT);
  const address = `${PAGE}?feed=${encodeURIComponent(feed)}`;
  if ((await cache.match(address)) !== undefined) return;
  const answered = await fetch(address);
  if (!answered.ok) return;
  for (const before of await cache.keys()) await cache.delete(before);
  const named = (await answered.clone().text()).matchAll(/ src="(\/pictures\/[^"]+)"/g);
  await Promise.all([...named].map(([, own = ""]) => cache.add(own).catch(() => undefined))); // one may have gone meanwhile
  await cache.put(address, answered);
}
