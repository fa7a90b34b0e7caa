"""A new tab of the browser's device shows the saved front page before its device runs, never one older than an action.

A button pressed on it shows that it is busy, and its action is done once. Oracles: a worker script that is held back,
so that what is visible must have been saved; the file of the saved page, read by a page and from the disk; the
browser's accessibility tree; and a second tab, which shows what was done.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Locator, Page, Playwright, Route, expect

from backend.settings import BackendSettings
from tests.browser.axe_rules import broken_rules
from tests.browser.conftest import QUICK_ARGUMENTS, begin_first_visit
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
SPOKEN = "body > p.hidden[role=status]"
WORKER = "**/reader/files/worker.*.js"
DRAWN = """() => [...document.querySelectorAll('main img')].every((one) => one.src.startsWith('data:image/svg'))"""


@pytest.fixture(scope="module")
def reader(
    playwright: Playwright, chromium_program: Path, reader_build: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrowserReader]:
    """A reader after the first visit; no service worker answers, so a test can hold back the worker's script."""
    folder = tmp_path_factory.mktemp("front-page")
    shutil.copytree(first_folder(shared_cache(tmp_path_factory)), folder / "backend")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("backend.app.built_folder", lambda: reader_build)
        world = SmallWorld(folder, BackendSettings(data_dir=folder / "backend"))
        with world.backend():
            context = playwright.chromium.launch_persistent_context(
                folder / "profile",
                executable_path=chromium_program,
                args=list(QUICK_ARGUMENTS),
                service_workers="block",
            )
            reader = BrowserReader(world, folder / "profile", context)
            page = reader.open()
            begin_first_visit(page)
            page.wait_for_selector(f"{FEED} article")
            wait_until_saved(page, "data-feed")
            page.close()
            yield reader
            context.close()


def wait_until_saved(page: Page, part: str) -> None:
    """Wait until the saved page contains this text."""
    until = time.monotonic() + WAIT_MS / 1_000
    while part not in page.evaluate(KEPT):
        assert time.monotonic() < until, f"no page with {part} was kept"
        page.wait_for_timeout(50)


@pytest.fixture
def held_worker(reader: BrowserReader) -> Iterator[HeldWorker]:
    held = HeldWorker(reader)
    yield held
    held.let_go()


class HeldWorker:
    """Holds back the worker's script: a tab opened meanwhile has no device."""

    def __init__(self, reader: BrowserReader) -> None:
        self.context, self.routes = reader.context, list[Route]()

    def open(self, reader: BrowserReader) -> Page:
        """Open a tab whose script is held back."""
        self.context.route(WORKER, lambda route: self.routes.append(route))
        return reader.open()

    def let_go(self, *, broken: bool = False) -> None:
        """Release the script; broken: it fails, and later requests for it are held back again."""
        while self.routes:
            route = self.routes.pop()
            with suppress(Error):  # its tab was loaded again
                route.abort() if broken else route.continue_()
        if not broken:
            self.context.unroute(WORKER)


def action_button(page: Page, card: int, kind: str) -> Locator:
    """Return a button of one of the cards."""
    return page.locator("article.card[id]").nth(card).locator(f"[data-react] button[value={kind}]")


def pressed(page: Page, card: int) -> list[str]:
    """Return which actions a card shows as done."""
    states = page.locator("article.card[id]").nth(card).locator("[data-react] button")
    found: list[str] = states.evaluate_all("all => all.filter(one => one.ariaPressed === 'true').map(one => one.value)")
    return found


def is_busy_by_the_tree(page: Page, name: str) -> bool:
    """Return whether a screen reader announces the button as busy."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    (found,) = [one for one in nodes if one["role"]["value"] == "button" and one["name"]["value"] == name]
    return any(each["name"] == "busy" and each["value"]["value"] for each in found["properties"])


def test_new_tab_shows_the_saved_page_before_its_device_runs(reader: BrowserReader, held_worker: HeldWorker) -> None:
    page = reader.open()
    page.locator(SAVE).click()
    expect(page.locator(SAVE)).to_have_attribute("aria-pressed", "true", timeout=WAIT_MS)
    feed = page.locator("main").get_attribute("data-feed")
    assert feed
    wait_until_saved(page, 'aria-pressed=\\"true\\"')
    page.close()

    page = held_worker.open(reader)
    expect(page.locator(f"main[data-feed='{feed}'] article.lead")).to_be_visible(timeout=WAIT_MS)
    expect(page.locator(SAVE)).to_have_attribute("aria-pressed", "true")
    page.wait_for_function(DRAWN)
    expect(page.locator(SPOKEN)).to_have_text("Loading", timeout=WAIT_MS)
    page.locator("main [data-story]").evaluate_all("cards => cards.forEach(card => { card.stood = true; })")
    name = page.locator(SAVE).get_attribute("aria-label")
    assert name
    assert not is_busy_by_the_tree(page, name)
    page.locator(SAVE).click()
    expect(page.locator(SAVE)).to_have_attribute("aria-busy", "true")
    assert is_busy_by_the_tree(page, name)
    page.keyboard.press("Enter")  # which would undo it
    expect(page.locator(SAVE)).to_be_focused()
    assert page.locator(SAVE).get_attribute("aria-pressed") == "true", "nobody has done it yet"
    action_button(page, 0, "like").click()
    action_button(page, 0, "like").click()
    action_button(page, 1, "like").click()
    action_button(page, 1, "less").press("Space")
    expect(page.locator("button[aria-busy=true]")).to_have_count(4)
    assert pressed(page, 0) == pressed(page, 1) == []
    assert broken_rules(page) == []
    held_worker.let_go()
    expect(page.locator(SAVE)).to_have_attribute("aria-pressed", "false", timeout=WAIT_MS)
    expect(page.locator("button[aria-busy]")).to_have_count(0, timeout=WAIT_MS)
    assert (pressed(page, 0), pressed(page, 1)) == (["like"], ["less"])
    stood = page.locator("main [data-story]").evaluate_all("cards => cards.map(card => card.stood === true)")
    assert len(stood) > 10
    assert all(stood), "the same cards, not others in their places"
    expect(page.locator("[aria-busy]")).to_have_count(0, timeout=WAIT_MS)
    other = reader.open()
    expect(other.locator(SAVE)).to_have_attribute("aria-pressed", "false", timeout=WAIT_MS)
    assert (pressed(other, 0), pressed(other, 1)) == (["like"], ["less"]), "each of them once"
    for card, kind in ((0, "like"), (1, "less")):
        action_button(other, card, kind).dispatch_event("click")
        expect(action_button(other, card, kind)).to_have_attribute("aria-pressed", "false", timeout=WAIT_MS)
    wait_until_saved(other, "data-feed")
    other.close()
    page.close()


def test_screen_reader_announces_loading_and_the_loaded_page(reader: BrowserReader, held_worker: HeldWorker) -> None:
    page = held_worker.open(reader)
    expect(page.locator(SPOKEN)).to_have_text("Loading", timeout=WAIT_MS)
    page.evaluate("document.title = 'not yet'")
    held_worker.let_go()
    expect(page.locator(SPOKEN)).to_have_text("For you - Ownfeed", timeout=WAIT_MS)
    assert page.title() == "For you - Ownfeed"
    wait_until_saved(page, "data-feed")
    page.close()

    page = held_worker.open(reader)
    headlines = page.locator("article.card .headline a")
    expect(headlines.first).to_be_visible(timeout=WAIT_MS)
    for place in (0, 1, 0):
        headlines.nth(place).click()
        expect(headlines.nth(place)).to_have_attribute("aria-busy", "true")
    expect(page.locator(".headline a[aria-busy]"), "the one that was asked for last").to_have_count(1)
    title = headlines.first.inner_text()
    held_worker.let_go()
    expect(page.locator("h1")).to_have_text(title, timeout=WAIT_MS)
    expect(page.locator(SPOKEN)).to_have_text(page.title())
    expect(page.locator("[aria-busy]")).to_have_count(0, timeout=WAIT_MS)
    wait_until_saved(page, "data-feed")
    page.close()


def test_action_pressed_before_a_reload_or_a_failed_start_can_be_pressed_again(
    reader: BrowserReader, held_worker: HeldWorker
) -> None:
    page = held_worker.open(reader)
    for last in (False, True):
        expect(action_button(page, 0, "save")).to_be_visible(timeout=WAIT_MS)
        action_button(page, 0, "save").click()
        expect(action_button(page, 0, "save")).to_have_attribute("aria-busy", "true")
        if not last:
            page.reload()
            expect(page.locator("article.lead")).to_be_visible(timeout=WAIT_MS)
            expect(page.locator("button[aria-busy]")).to_have_count(0)
    held_worker.let_go(broken=True)
    failed = page.get_by_role("alert")
    expect(failed).to_have_text("Ownfeed could not start here. Reload the page.", timeout=WAIT_MS)
    expect(failed).to_be_in_viewport()
    expect(page.locator("button[aria-busy]")).to_have_count(0)
    assert "save" not in pressed(page, 0)
    held_worker.let_go()
    action_button(page, 0, "save").click()
    expect(action_button(page, 0, "save"), "it is started again").to_have_attribute(
        "aria-pressed", "true", timeout=WAIT_MS
    )
    expect(failed).to_have_count(0)
    wait_until_saved(page, "data-feed")
    page.close()


def test_first_visit_reports_a_device_that_does_not_start(chromium: Browser, reader: BrowserReader) -> None:
    context = chromium.new_context(service_workers="block")
    context.route(WORKER, lambda route: route.abort())
    page = context.new_page()
    page.goto(reader.at("/"))
    failed = page.get_by_role("alert")
    expect(failed).to_have_text("Ownfeed could not start here. Reload the page.", timeout=WAIT_MS)
    expect(page.get_by_role("main")).not_to_contain_text("Opening your feed")
    expect(page.locator("[aria-busy]")).to_have_count(0, timeout=WAIT_MS)
    context.close()


@pytest.mark.parametrize("kind", ["like", "less", "save"])
def test_saved_page_includes_every_confirmed_action(reader: BrowserReader, kind: str) -> None:
    """The page is up to date as soon as one tab has confirmed the action."""
    page = reader.open()
    page.wait_for_selector(FEED)
    card = page.locator("article.card[id]").nth({"like": 2, "less": 3, "save": 4}[kind])
    button = card.locator(f"[data-react] button[value={kind}]")
    wait_until_saved(page, str(card.get_attribute("id")))
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
    if kind == "less":
        card.locator("[data-undo] button").press("Enter")
        expect(button).to_have_attribute("aria-pressed", "false", timeout=WAIT_MS)
        expect(button).to_be_focused()
    page.close()


def test_erase_removes_the_saved_page_from_the_disk(reader: BrowserReader) -> None:
    page = reader.open()
    feed = page.wait_for_selector(FEED)
    assert feed is not None
    name = feed.get_attribute("data-feed")
    assert name
    wait_until_saved(page, name)
    beside = reader.open()
    expect(beside.locator(FEED)).to_be_visible(timeout=WAIT_MS)
    page.goto(reader.at("/settings"))
    page.locator("#confirm").fill("erase")
    page.get_by_role("button", name="Erase", exact=True).click()
    expect(page.get_by_text("Everything about you on this device is erased.")).to_be_visible(timeout=WAIT_MS)
    expect(beside.get_by_role("heading", name="Set up your feed"), "in every tab").to_be_visible(timeout=WAIT_MS)
    beside.close()
    assert page.evaluate(SIZE) == 0
    assert not reader.stored(name)
    page.close()
    page = reader.open()
    expect(page.get_by_role("heading", name="Set up your feed")).to_be_visible(timeout=WAIT_MS)
    page.close()
