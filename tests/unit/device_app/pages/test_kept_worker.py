"""What the pages' service worker stores if an erase comes between its steps.

The worker's file runs in Node with a cache storage that creates a cache when it is opened, as in a browser, and a
`fetch` that the test answers when it wants. Regression: the cache was opened before there was an answer, a redirect to
the welcome page counted as one, and a page that arrived after the erase was stored.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

WORKER = Path(__file__).parents[4] / "web" / "static" / "js" / "worker.js"
BROWSER = """
const fs = require("node:fs"), vm = require("node:vm");
const stores = new Map(), listeners = {}, waiting = [];
const key = (request) => (typeof request === "string" ? request : request.url.replace("http://here", ""));
const found = (name, request, { ignoreSearch = false } = {}) => {
  const bare = (address) => (ignoreSearch ? address.split("?")[0] : address);
  for (const [address, value] of stores.get(name) ?? []) if (bare(address) === bare(key(request))) return value;
};
const opened = (name) => ({
  match: async (request, options) => found(name, request, options),
  keys: async () => [...stores.get(name)?.keys() ?? []],
  delete: async (request) => stores.get(name)?.delete(key(request)),
  add: async (request) => inside(name).set(key(request), "picture"),
  put: async (request, value) => {
    await putting;
    inside(name).set(key(request), value);
  },
});
const inside = (name) => { if (!stores.has(name)) stores.set(name, new Map()); return stores.get(name); };
const caches = {
  open: async (name) => { inside(name); return opened(name); },
  match: async (request, options) => found(options.cacheName, request, options),
  delete: async (name) => stores.delete(name),
};
let putting = Promise.resolve(), fetched;
const fetches = [];
const fetch = (request, { redirect = "follow" } = {}) => new Promise((answer, fail) => {
  fetches.push(key(request));
  fetched = {
    page: () => answer(page(200, '<img src="/pictures/one">')),
    erased: () => answer(redirect === "manual" ? page(0, "") : page(200, "Welcome")),
    stopped: () => fail(new TypeError("stopped")),
  };
});
const page = (status, text) => ({ ok: status === 200, text: async () => text, clone: () => page(status, text) });
const self = { addEventListener: (name, heard) => { listeners[name] = heard; }, registration: {} };
vm.runInNewContext(fs.readFileSync(process.argv[1], "utf8"), { self, caches, fetch, URL, Response: {}, Promise });
const wait = (work) => waiting.push(work);
const event = (more) => ({ ...more, waitUntil: wait, respondWith: wait });
const keep = (feed) => listeners.message(event({ data: { feed } }));
const ask = (path, mode, method = "GET") =>
  listeners.fetch(event({ request: { url: "http://here" + path, mode, method }, preloadResponse: undefined }));
const erase = () => ask("/privacy/erase", "navigate", "POST");
const clearSiteData = () => stores.clear();
const settled = async () => { for (let turn = 0; turn < 100; turn += 1) await Promise.resolve(); };
(async () => {
  await (async () => { STEPS })();
  await Promise.allSettled(waiting);
  const kept = Object.fromEntries([...stores].map(([name, entries]) => [name, [...entries.keys()].sort()]));
  process.stdout.write(JSON.stringify({ kept, fetches }));
})();
"""
EMPTY: dict[str, list[str]] = {}


def run(steps: str) -> dict[str, list[str]]:
    """Return the caches after these steps and everything that the worker began."""
    node = shutil.which("node")
    assert node is not None, "node is missing: install Node.js 20 or newer"
    done = subprocess.run(
        [node, "-e", BROWSER.replace("STEPS", steps), str(WORKER)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)["kept"]
    return found


def test_saved_page_and_its_pictures_replace_the_previous_one() -> None:
    found = run(
        'keep("one"); await settled(); fetched.page(); await settled(); keep("two"); await settled(); fetched.page()'
    )
    assert found == {"ownfeed-kept": ["/kept?feed=two", "/pictures/one"]}


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            'keep("one"); await settled(); clearSiteData(); fetched.erased()', id="a redirect to the welcome page"
        ),
        pytest.param(
            'clearSiteData(); keep("one"); await settled(); fetched.erased()', id="a worker that was registered again"
        ),
        pytest.param(
            'keep("one"); await settled(); erase(); await settled(); clearSiteData(); fetched.page()',
            id="a page asked for before the erase, which comes after it",
        ),
        pytest.param(
            'erase(); keep("one"); await settled(); clearSiteData(); fetched.page()',
            id="a page asked for while the erase is under way",
        ),
        pytest.param(
            """let go; putting = new Promise((resolve) => { go = resolve; });
            keep("one"); await settled(); fetched.page(); await settled();
            erase(); await settled(); clearSiteData(); go()""",
            id="a page that is being written as the erase comes",
        ),
        pytest.param(
            'clearSiteData(); ask("/pictures/one", "no-cors"); await settled(); fetched.stopped()',
            id="a picture that is looked for after the erase",
        ),
    ],
)
def test_erase_deletes_the_saved_pages(steps: str) -> None:
    assert run(steps) == EMPTY
