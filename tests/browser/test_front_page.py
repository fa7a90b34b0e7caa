"""A new tab of the browser's device shows its last front page before the device runs, and never one of before a deed.

Oracles: a worker whose script is held back, so that whatever stands was kept; the file of the kept page, read by a
page and from the disk.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from backend.settings import BackendSettings
from tests.browser.conftest import ARGUMENTS
from tests.browser.test_browser_device import BrowserReader
from tests.doubles.small_world import SmallWorld, first_folder, shared_cache

pytestmark = [pytest.mark.browser, pytest.mark.node]
WAIT_MS = 60_000
KEPT = """async () => {
  const folder = await navigator.storage.getDirectory();
  const file = await (await folder.getFileHandle('ownfeed-front-page')).getFile();
  const buffer = await file.arrayBuffer().catch(fault => {
    if (fault.name !== 'NotReadableError') throw fault; // it was written while it was read
    return new ArrayBuffer(0);
  });
  const bytes = new Uint8Array(buffer);
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes.subarray(32)));
  return digest.every((byte, at) => byte === bytes[at]) ? new TextDecoder().decode(bytes.subarray(32)) : '';
}"""
SIZE = """async () => {
  const folder = await navigator.storage.getDirectory();
  return (await (await folder.getFileHandle('ownfeed-front-page')).getFile()).size;
}"""
FEED = "main[data-feed]"
SAVE = "article.lead button[value=save]"
DRAWN = """() => [...document.querySelectorAll('main img')].every((one) => one.src.startsWith('data:image/svg'))"""


@pytest.fixture(scope="module")
def reader(chromium: Browser, reader_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserReader]:
    """A reader who has begun; no service worker answers, so that a test can hold the worker's script back."""
    folder = tmp_path_factory.mktemp("front-page")
    shutil.copytree(first_folder(shared_cache(tmp_path_factory)), folder / "backend")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("backend.app.built_folder", lambda: reader_build)
        world = SmallWorld(folder, BackendSettings(data_dir=folder / "backend"))
        with world.backend():
            context = chromium.browser_type.launch_persistent_context(
                folder / "profile",
                executable_path=os.environ.get("OWNFEED_CHROMIUM") or "/usr/bin/chromium",
                args=list(ARGUMENTS),
                service_workers="block",
            )
            reader = BrowserReader(world, folder / "profile", context)
            page = reader.open()
            page.get_by_role("button", name="Begin without a choice").click()
            page.wait_for_selector(f"{FEED} article")
            page.close()
            yield reader
            context.close()


def kept(page: Page, part: str) -> None:
    """Wait until a whole page is kept that has this in it."""
    until = time.monotonic() + WAIT_MS / 1_000
    while part not in page.evaluate(KEPT):
        assert time.monotonic() < until, f"no page with {part} was kept"
        page.wait_for_timeout(50)


def test_a_new_tab_shows_the_page_before_its_device_runs_and_goes_on_with_it(reader: BrowserReader) -> None:
    page = reader.open()
    page.locator(SAVE).click()
    expect(page.locator(SAVE)).to_have_attribute("aria-pressed", "true", timeout=WAIT_MS)
    feed = page.locator("main").get_attribute("data-feed")
    assert feed
    kept(page, 'aria-pressed=\\"true\\"')
    page.close()

    held: list[Route] = []
    reader.context.route("**/reader/files/worker.*.js", lambda route: held.append(route))
    page = reader.open()
    expect(page.locator(f"main[data-feed='{feed}'] article.lead")).to_be_visible(timeout=WAIT_MS)
    expect(page.locator(SAVE)).to_have_attribute("aria-pressed", "true")
    page.wait_for_function(DRAWN)
    page.locator("main [data-story]").evaluate_all("cards => cards.forEach(card => { card.stood = true; })")
    page.locator(SAVE).click()
    assert page.locator(SAVE).get_attribute("aria-pressed") == "true", "nobody has done it yet"
    for each in held:
        each.continue_()
    reader.context.unroute("**/reader/files/worker.*.js")
    expect(page.locator(SAVE)).to_have_attribute("aria-pressed", "false", timeout=WAIT_MS)
    stood = page.locator("main [data-story]").evaluate_all("cards => cards.map(card => card.stood === true)")
    assert len(stood) > 10
    assert all(stood), "the same cards, not others in their places"
    page.close()


@pytest.mark.parametrize("kind", ["like", "less", "save"])
def test_what_was_done_stands_in_no_page_of_before(reader: BrowserReader, kind: str) -> None:
    """As soon as one tab has said that it is done."""
    page = reader.open()
    page.wait_for_selector(FEED)
    card = page.locator("article.card[id]").nth({"like": 2, "less": 3, "save": 4}[kind])
    button = card.locator(f"[data-react] button[value={kind}]")
    kept(page, str(card.get_attribute("id")))
    expect(button).to_have_attribute("aria-pressed", "false")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true", timeout=WAIT_MS)
    text = page.evaluate(KEPT)
    said = text.count('aria-pressed=\\"true\\"')
    assert not text or said == page.locator("main button[aria-pressed=true]").count()
    other = reader.open()
    other.wait_for_selector(FEED)
    pressed = other.locator(f"[id='{card.get_attribute('id')}'] [data-react] button[value={kind}]")
    assert pressed.get_attribute("aria-pressed") == "true", "in the first page that is shown"
    other.close()
    page.close()


def test_an_erase_takes_the_kept_page_off_the_disk(reader: BrowserReader) -> None:
    page = reader.open()
    feed = page.wait_for_selector(FEED)
    assert feed is not None
    name = feed.get_attribute("data-feed")
    assert name
    kept(page, name)
    page.goto(reader.at("/settings"))
    page.locator("#confirm").fill("erase")
    page.get_by_role("button", name="Erase", exact=True).click()
    expect(page.get_by_text("Everything about you on this device is erased.")).to_be_visible(timeout=WAIT_MS)
    assert page.evaluate(SIZE) == 0
    assert not reader.stored(name)
    page.close()
    page = reader.open()
    expect(page.get_by_role("heading", name="Before your first page")).to_be_visible(timeout=WAIT_MS)
    page.close()
