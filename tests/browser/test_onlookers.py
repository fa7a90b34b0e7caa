"""What onlookers see of a reader in Chromium: readers of opposite topics send the same requests, byte for byte.

The device keeps nothing from the server beyond what is listed here. Oracles: the requests with headers as the server
received them, and the browser's own account of what it stores.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from backend.settings import BackendSettings
from tests.browser.conftest import begin_first_visit
from tests.browser.test_browser_device import CONTROLLED
from tests.doubles.small_world import WORDS, Received, SmallWorld, first_folder, shared_cache

pytestmark = [pytest.mark.browser, pytest.mark.node]
WITHIN_MS = 60_000
OPPOSITE = ("sport", "politics")
OPENED = 3
SERVICE_WORKER = "sec-fetch-dest: serviceworker"
POLL = "/v1/rounds/current"
"""How many polls fall into a visit is left to time and chance."""
NOTHING_NEW = 304
RECALL, TEXTS = "/v1/recall", "/v1/news/bodies"
"""Whether a request for candidates, and for the texts of its answer, falls into a visit is left to chance."""
BLOBS = "/v1/blobs/"
START = ["current", "blobs", "front", "popularity", "bodies", "codes", "blobs"]
FEED, CARD = "main[data-feed]", "article.card[id]"
KEPT = """async () => {
  const folder = async (handle) => {
    const names = [];
    for await (const [name] of handle) names.push(name);
    return names.sort();
  };
  return {
    cookie: document.cookie,
    local: Object.keys(localStorage),
    session: Object.keys(sessionStorage),
    indexed: (await indexedDB.databases()).map((one) => one.name),
    caches: await caches.keys(),
    files: await folder(await navigator.storage.getDirectory()),
    workers: (await navigator.serviceWorker.getRegistrations()).map((one) => new URL(one.scope).pathname),
  };
}"""


@pytest.fixture(scope="module")
def world(reader_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallWorld]:
    folder = tmp_path_factory.mktemp("onlookers")
    shutil.copytree(first_folder(shared_cache(tmp_path_factory)), folder / "backend")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("backend.app.built_folder", lambda: reader_build)
        with SmallWorld(folder, BackendSettings(data_dir=folder / "backend")).backend() as served:
            yield served


def wait_until_installed(page: Page) -> None:
    """Wait until the app is installed, which follows the first check for updates, and every request is answered."""
    page.evaluate(CONTROLLED)
    page.wait_for_load_state("networkidle")


def read_stories(context: BrowserContext, world: SmallWorld, section: str) -> tuple[Page, list[Received], list[str]]:
    """Do a first visit, reports by code, three stories of a section and two new pages; return all requests."""
    before = len(world.requests())
    addresses: list[str] = []
    context.on("request", lambda request: addresses.append(request.url))
    context.set_default_timeout(WITHIN_MS)
    page = context.new_page()
    page.goto(f"{world.url}/reader/")
    begin_first_visit(page)
    page.wait_for_selector(f"{FEED} {CARD}")
    wait_until_installed(page)
    page.goto(f"{world.url}/reader/#/settings?switches=open")
    code = page.locator("form.switches input[name=mode][value=code]")
    code.check()
    page.locator("form.switches:has(input[name=mode]) button").click()
    page.wait_for_url("**/reader/#/settings")
    page.goto(f"{world.url}/reader/#/")
    unread = ", ".join(f"article.card:not(.read)[id^='n-{topic}-'] .headline a" for topic in WORDS[section])
    for _ in range(OPENED):
        page.locator(unread).first.click()
        page.wait_for_selector(".story .prose p")
        page.get_by_role("link", name="Back to the feed").click()
        page.wait_for_selector(FEED)
    for _ in range(2):
        shown = page.locator(FEED).get_attribute("data-feed")
        page.get_by_role("button", name="Refresh").first.click()
        page.wait_for_selector(f"{FEED}:not([data-feed='{shown}'])")
    wait_until_installed(page)
    return page, world.requests()[before:], addresses


def visible_requests(asked: list[Received]) -> Counter[tuple[str, ...]]:
    """Return what an onlooker sees of the requests, in any order.

    Left out is what depends only on how long a visit took: polls, requests for candidates, the update check where it
    finds nothing at an address requested before, and Chromium's own check for another service worker.
    """
    common = next(one for one in asked if one.path == TEXTS)
    answered = {(one.method, one.path, one.query) for one in asked if one.status != NOTHING_NEW}

    def of(one: Received) -> tuple[str, ...]:
        lines = sorted(one.headers.decode().split("\n"))
        return one.method, f"{one.path}?{one.query}", str(one.status), one.body.hex(), *lines

    def tells(one: Received) -> bool:
        again = one.status == NOTHING_NEW and (one.method, one.path, one.query) in answered
        headers = one.headers.decode().split("\n")
        renewed = SERVICE_WORKER in headers and any(line.startswith("if-none-match:") for line in headers)
        recalled = one.path == RECALL or (one.path == TEXTS and one is not common)
        return one.path != POLL and not again and not renewed and not recalled

    return Counter(of(one) for one in asked if tells(one))


def order_of_start(asked: list[Received]) -> list[str]:
    """Return the requests until the first update check has ended; several blobs are requested at once."""
    start = [one for one in asked if one.path.startswith("/v1/") and one.path != POLL]
    named = ["blobs" if one.path.startswith(BLOBS) else f"{one.method} {one.path}?{one.query}" for one in start]
    found = [name for name, before in zip(named, ["", *named], strict=False) if name != before]
    last = [place for place, name in enumerate(found) if name == "blobs"][1]  # those of models for rounds
    return found[: last + 1]


@pytest.fixture(scope="module")
def readers(world: SmallWorld, chromium: Browser) -> Iterator[list[tuple[Page, list[Received], list[str]]]]:
    """Two readers of opposite sections, one after the other, each in a context of its own."""
    contexts = [chromium.new_context() for _ in OPPOSITE]
    yield [read_stories(context, world, section) for context, section in zip(contexts, OPPOSITE, strict=True)]
    for context in contexts:
        context.close()


def test_opposite_readers_send_the_same_requests(readers: Any) -> None:
    (_, first, _), (_, second, _) = readers
    assert visible_requests(first) == visible_requests(second)


def test_device_sends_its_first_requests_in_the_same_order_for_every_reader(readers: Any) -> None:
    (_, first, _), (_, second, _) = readers
    assert order_of_start(first) == order_of_start(second)
    assert [name.rsplit("/", 1)[-1].split("?")[0] for name in order_of_start(first)] == START


def test_other_origins_get_no_request_and_cookies_are_never_used(world: SmallWorld, readers: Any) -> None:
    for page, asked, addresses in readers:
        assert not [each for each in addresses if not each.startswith((f"{world.url}/", "data:", "blob:"))]
        assert not [one.path for one in asked if b"cookie" in one.headers.lower()]
        assert page.context.cookies() == []


def test_browser_stores_only_device_files_app_and_scroll_position(readers: Any) -> None:
    for page, _, _ in readers:
        kept = page.evaluate(KEPT)
        builds = kept.pop("caches")
        assert len(builds) == 1
        assert builds[0].startswith("ownfeed-build-service_worker.")
        assert kept == {
            "cookie": "",
            "local": ["ownfeed-build"],
            "session": [],
            "indexed": [],
            "files": [".ownfeed", "ownfeed-files", "ownfeed-front-page"],
            "workers": ["/reader/"],
        }
