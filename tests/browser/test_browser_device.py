"""The browser's device in Chromium, over a real backend: a first visit, ten stories, a second tab, offline, erase.

Oracle for accessibility: axe-core.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, Playwright, Route, expect

from backend.settings import BackendSettings
from tests.browser.axe_rules import broken_rules
from tests.browser.conftest import QUICK_ARGUMENTS, begin_first_visit
from tests.browser.killed_reader import deadly_script, killed_reader
from tests.browser.killed_tabs import verdict
from tests.browser.test_every_page import QUICK
from tests.conformance.node_end import WEB
from tests.doubles.long_form import by_length
from tests.doubles.small_world import SmallWorld, first_folder, shared_cache

WAIT_MS = 60_000
LOOKS_AGAIN_MS = 90_000
"""The device looks for what is new once a minute."""
READ = 10
DEATHS = by_length(2, long=5)
NAMED = "Told to nobody 7531"
PAGES = (
    "/explore", "/interests/history", "/searches", "/privacy", "/training", "/settings?switches=open", "/latency",
    "/welcome", "/nowhere", "/",
)  # fmt: skip
"""Of every kind; the templates are those of the Python device, whose every page test_every_page holds to the rules."""
BOTH_LOOKS = by_length(False, long=True)
"""Whether every page is checked in light on the desk and in dark on the phone; in the short form, by turns."""
GO = """path => {
  document.querySelector('main').dataset.left = 'yes';
  location.hash = `#${path}`;
}"""
PUBLISHERS_LINK = """address => {
  const link = document.createElement('a');
  Object.assign(link, { href: address, target: '_blank', rel: 'noreferrer noopener external' });
  link.textContent = 'Read at a publisher';
  document.querySelector('.story article').append(link);
}"""
SHARE_BUTTON = """() => {
  const button = document.createElement('button');
  Object.assign(button.dataset, { share: 'https://publisher.example/1', title: 'A title' });
  button.textContent = 'Share';
  document.querySelector('.story .acts').append(button);
  navigator.share = async (data) => { window.shared = data; };
}"""
"""As on a story that has a publisher's address, which this backend's stories lack."""
KEPT = tomllib.loads((WEB / "device" / "pages" / "kept.toml").read_text(encoding="utf-8"))
CONTROLLED = """() => new Promise((done) => {
  const worker = navigator.serviceWorker;
  if (worker.controller) done(true);
  else worker.addEventListener("controllerchange", () => done(true), { once: true });
})"""


@dataclass
class BrowserReader:
    """A Chromium profile with the reader's page open, and the backend that serves it."""

    world: SmallWorld
    profile: Path
    context: BrowserContext

    def open(self, path: str = "/") -> Page:
        page = self.context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.goto(self.at(path))
        return page

    def at(self, path: str) -> str:
        """Return the address of one of the page's own paths."""
        return f"{self.world.url}/reader/" + (f"#{path}" if path != "/" else "")

    def stored(self, marker: str) -> bool:
        """Return whether a text is in the files of the origin's storage, as read from the disk."""
        files = [path for path in self.profile.rglob("*") if path.is_file() and "File System" in path.parts]
        assert files, "this profile has no private files"
        return any(marker.encode() in path.read_bytes() for path in files)


@pytest.fixture(scope="module")
def reader(
    playwright: Playwright, chromium_program: Path, reader_build: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrowserReader]:
    folder = tmp_path_factory.mktemp("browser-device")
    shutil.copytree(first_folder(shared_cache(tmp_path_factory)), folder / "backend")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("backend.app.built_folder", lambda: reader_build)
        world = SmallWorld(folder, BackendSettings(data_dir=folder / "backend"))
        with world.backend():
            context = playwright.chromium.launch_persistent_context(
                folder / "profile",
                executable_path=chromium_program,
                args=list(QUICK_ARGUMENTS),
            )
            yield BrowserReader(world, folder / "profile", context)
            context.close()


@pytest.fixture(scope="module")
def read_ten_stories(reader: BrowserReader) -> tuple[Page, str]:
    """Pass the first visit and open ten stories; return the page of the feed and its id."""
    page = reader.open()
    begin_first_visit(page)
    page.wait_for_selector("main[data-feed] article")
    feed = page.locator("main").get_attribute("data-feed")
    assert feed
    stories = page.locator("article.card[id]").evaluate_all("cards => cards.map(card => card.id)")[:READ]
    assert len(stories) == READ
    for story in stories:
        page.locator(f"[id='{story}'] .headline a").click()
        page.wait_for_selector(".story .prose p")
        page.get_by_role("link", name="Back to the feed").click()
        page.wait_for_selector(f"[id='{story}'].read")
    return page, feed


def test_reading_ten_stories_sends_the_server_no_trace_of_them(
    reader: BrowserReader, read_ten_stories: tuple[Page, str]
) -> None:
    page, feed = read_ten_stories
    expect(page.locator("article.card.read")).to_have_count(READ)
    paths = {each.path for each in reader.world.requests()}
    assert any(path.startswith("/v1/news/front") for path in paths)
    assert not [path for path in paths if "story" in path or "seen" in path or "/art/" in path]
    assert not [each for each in reader.world.requests() if feed.encode() in each.body + each.headers]


def pages_asked(reader: BrowserReader, after: int) -> set[str]:
    """Return what the requests for pages contained, which a reload or a new tab makes, after the first so many."""
    own = [f"{each.path}?{each.query}" for each in reader.world.requests()[after:] if each.path.startswith("/reader")]
    return {
        address
        for address in own
        if not address.startswith(("/reader/files/", "/reader/build.json", "/reader/builds.json"))
    }


def test_welcome_page_adds_sections_that_arrive_late_and_keeps_the_ticks(
    chromium: Browser, reader: BrowserReader
) -> None:
    context = chromium.new_context(service_workers="block", viewport={"width": 390, "height": 800})
    context.set_default_timeout(WAIT_MS)
    held: list[Route] = []
    context.route("**/v1/news/front*", lambda route: held.append(route))
    page = context.new_page()
    page.goto(reader.at("/"))
    page.wait_for_selector("#picks[data-coming]")
    page.locator("#privacy-details > summary").click()
    expect(page.get_by_role("checkbox")).to_have_count(3)
    page.get_by_label("Anonymous counts of what is read").uncheck()
    context.unroute("**/v1/news/front*")
    for route in held:
        with suppress(Error):  # the device gives up what isn't answered in ten seconds
            route.continue_()
    # at once, or where it has given up, when it looks again
    page.wait_for_selector("#picks:not([data-coming]) input[type=checkbox]", timeout=LOOKS_AGAIN_MS)
    expect(page.get_by_label("Anonymous counts of what is read")).not_to_be_checked()
    expect(page.locator("[role=status]").last).to_have_text("The sections are here")
    context.close()


def test_welcome_page_waiting_for_the_server_sends_no_extra_requests(chromium: Browser, reader: BrowserReader) -> None:
    context = chromium.new_context(service_workers="block", viewport={"width": 390, "height": 800})
    context.set_default_timeout(WAIT_MS)
    asked: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    context.route("**/v1/**", refuse)
    page = context.new_page()
    page.goto(reader.at("/"))
    expect(page.locator("#picks")).to_contain_text("can't reach", timeout=WAIT_MS)
    before = len(asked)
    page.wait_for_timeout(4_500)  # four of its looks, and at most one of the device's own
    assert len([address for address in asked[before:] if address.endswith("/v1/releases/current")]) <= 1, asked
    context.close()


def test_reload_past_the_service_worker_does_not_reveal_the_page(chromium: Browser, reader: BrowserReader) -> None:
    """The server and its proxies see such a request where no service worker answers: in a private window, or
    Shift+Reload."""
    context = chromium.new_context(service_workers="block", viewport={"width": 390, "height": 800})
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    before = len(reader.world.requests())
    page.goto(reader.at("/"))
    begin_first_visit(page)
    page.wait_for_selector("main[data-feed] article")
    card = page.locator("article.card[id]").nth(5)
    story, link = card.get_attribute("id"), card.locator(".headline a")
    named = (link.get_attribute("href") or "").removeprefix("/reader/#/story/").partition("?")[0]
    assert named, link.get_attribute("href")

    link.scroll_into_view_if_needed()
    with context.expect_page() as opened:
        link.click(modifiers=["Control"])
    tab = opened.value
    tab.wait_for_selector(".story .prose p")
    tab.reload()
    expect(tab.locator(".story .prose p").first).to_be_visible(timeout=WAIT_MS)
    tab.close()
    assert pages_asked(reader, before) == {"/reader/?"}
    page.goto(reader.at("/interests/history"))
    expect(page.locator("table.clicks tbody tr")).to_have_count(1, timeout=WAIT_MS)  # once, and not by the reload
    page.go_back()
    link.scroll_into_view_if_needed()

    place = page.evaluate("scrollY")
    link.click()
    expect(page.locator(".story .prose p").first).to_be_visible(timeout=WAIT_MS)
    page.go_back()
    expect(page.locator(f"[id='{story}'] .headline a")).to_be_focused(timeout=WAIT_MS)
    assert abs(page.evaluate("scrollY") - place) < 3
    page.go_forward()
    expect(page.locator(".story .prose p").first).to_be_visible(timeout=WAIT_MS)
    page.keyboard.press("/")
    page.wait_for_url("**/reader/#/search")
    page.goto(reader.at("/interests/history"))  # loads nothing: the previous page stays until this one is drawn
    expect(page.locator("table.clicks")).to_be_visible(timeout=WAIT_MS)
    page.locator("main input[type=search]").fill("harbour")
    page.keyboard.press("Enter")
    page.wait_for_url("**/reader/#/interests/history?q=harbour")
    page.reload()
    expect(page.locator("main input[type=search]")).to_have_value("harbour", timeout=WAIT_MS)

    assert pages_asked(reader, before) == {"/reader/?"}
    # the browser itself looks for another service worker, when it likes, and names the one that it has
    heads = [each.headers for each in reader.world.requests()[before:] if b"service-worker: script" not in each.headers]
    reported = b"".join(heads)
    assert b"referer" not in reported
    assert named.encode() not in reported

    page.goto(f"{reader.world.url}/reader/story/{named}")  # typed by hand: told once, and never by a reload
    expect(page.locator(".story .prose p").first).to_be_visible(timeout=WAIT_MS)
    assert page.url == f"{reader.world.url}/reader/#/story/{named}"
    context.close()


def test_story_opened_by_a_publishers_link_or_typed_address_is_not_recorded_as_a_click(
    chromium: Browser, reader: BrowserReader
) -> None:
    """The device drops publishers' links to its own host; here such a link is in the page all the same."""
    context = chromium.new_context(service_workers="block")
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.goto(reader.at("/"))
    begin_first_visit(page)
    headlines = page.locator("main[data-feed] article.card[id] .headline a")
    expect(headlines.nth(1)).to_be_visible()
    target = f"{reader.world.url}{headlines.nth(1).get_attribute('href')}"
    assert "/reader/#/story/" in target
    headlines.first.click()
    page.wait_for_selector(".story .prose p")
    page.evaluate(PUBLISHERS_LINK, target)
    link = page.get_by_role("link", name="Read at a publisher")
    for press in (
        lambda: link.click(modifiers=["Control"]),
        lambda: link.click(modifiers=["Shift"]),
        lambda: link.click(button="middle"),
        link.click,
        lambda: context.new_page().goto(target),  # typed
    ):
        with context.expect_page() as opened:
            press()
        tab = opened.value
        expect(tab.locator(".story .prose p").first).to_be_visible()
        tab.reload()
        expect(tab.locator(".story .prose p").first).to_be_visible()
        tab.close()
    page.goto(target)  # typed over the page that stands, which loads nothing
    expect(link).to_have_count(0)
    expect(page.locator(".story .prose p").first).to_be_visible()
    page.goto(reader.at("/interests/history"))
    expect(page.locator("table.clicks tbody tr")).to_have_count(1)
    context.close()


def test_reaction_stays_on_the_page_and_after_a_reload(
    reader: BrowserReader, read_ten_stories: tuple[Page, str]
) -> None:
    page, _ = read_ten_stories
    save = page.locator("article.lead button[value=save]")
    save.click()
    expect(save).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(page.locator("article.lead button[value=save]")).to_have_attribute("aria-pressed", "true", timeout=WAIT_MS)
    expect(page.locator("article.card.read")).to_have_count(READ)


def test_second_tab_is_the_same_device_and_outlives_the_first(
    reader: BrowserReader, read_ten_stories: tuple[Page, str]
) -> None:
    page, feed = read_ten_stories
    first = reader.open("/interests/history")
    expect(first.locator("table.clicks tbody tr")).to_have_count(READ, timeout=WAIT_MS)
    second = reader.open()
    expect(second.locator(f"main[data-feed='{feed}']")).to_be_visible(timeout=WAIT_MS)
    page.goto("about:blank")  # the tab that had the device
    second.locator("article.card:not(.read) .headline a").first.click()
    expect(second.locator(".story .prose p").first).to_be_visible(timeout=WAIT_MS)
    first.close()
    second.close()
    page.goto(reader.at("/interests/history"))
    expect(page.locator("table.clicks tbody tr")).to_have_count(READ + 1, timeout=WAIT_MS)


def test_privacy_page_confirms_the_build_is_on_the_signed_list(
    reader: BrowserReader, read_ten_stories: tuple[Page, str]
) -> None:
    page, _ = read_ten_stories
    page.goto(reader.at("/privacy"))
    build = page.locator("section.own-build")
    expect(build.locator("[data-verdict]")).to_have_count(1, timeout=WAIT_MS)
    expect(build).to_contain_text("which is signed with the key that signs its releases")
    page.goto(reader.at("/"))
    page.wait_for_selector("main[data-feed] article")


@pytest.mark.long_form
def test_pages_follow_axe_rules_and_fit_the_window(read_ten_stories: tuple[Page, str]) -> None:
    page, _ = read_ten_stories
    wrong = []
    for number, path in enumerate(PAGES):
        page.evaluate(GO, path)
        page.wait_for_selector("main:not([data-left]) h1")
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        for look, (scheme, width, rules) in enumerate((("light", 1440, None), ("dark", 390, QUICK))):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
            page.set_viewport_size({"width": width, "height": 900})
            where = f"{path}, {scheme}, {width} px"
            if BOTH_LOOKS or look == number % 2:
                wrong += [f"{where}: {one}" for one in broken_rules(page, rules if BOTH_LOOKS else None)]
            across = page.evaluate("document.documentElement.scrollWidth")
            wrong += [f"{where}: {across} px wide"] if across > width else []
    page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    page.set_viewport_size({"width": 1280, "height": 720})
    assert not wrong, "\n".join(wrong)
    page.locator("a.skip").press("Enter")
    page.wait_for_url("**/reader/#/#main")
    expect(page.locator("main[data-feed]")).to_be_visible()


def test_story_tools_work_in_the_browsers_device_and_send_nothing(
    reader: BrowserReader, read_ten_stories: tuple[Page, str]
) -> None:
    """Oracles: the links' addresses, computed colours, and the requests that reach the server."""
    page, _ = read_ten_stories
    page.goto(reader.at("/"))
    page.locator(".lead .headline a").first.click()
    page.wait_for_selector(".story .prose")
    before = len(reader.world.requests())
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_text("Text and theme").click()
    page.get_by_role("button", name="Dark").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != paper
    first, beside = page.url, page.locator("[data-beside=next]").get_attribute("href")
    page.keyboard.press("j")
    page.wait_for_function("from => location.href !== from", arg=first)
    assert page.url == reader.world.url + str(beside)
    page.get_by_text("Text and theme").click()
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("k")
    page.wait_for_function("to => location.href === to", arg=first)
    page.wait_for_selector("[data-beside=next]")
    page.evaluate(SHARE_BUTTON)
    page.get_by_role("button", name="Share").click()
    assert page.evaluate("window.shared") == {"title": "A title", "url": "https://publisher.example/1"}
    assert not [each for each in reader.world.requests()[before:] if "story" in each.path or "share" in each.path]
    page.reload()
    page.wait_for_selector(".story .prose")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.get_by_text("Text and theme").click()
    page.get_by_role("button", name="System").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper


def test_offline_page_opens_with_what_was_read(reader: BrowserReader, read_ten_stories: tuple[Page, str]) -> None:
    page, feed = read_ten_stories
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.evaluate(CONTROLLED)
    reader.context.set_offline(True)
    try:
        page.goto(reader.at("/"))
        expect(page.locator(f"main[data-feed='{feed}']")).to_be_visible(timeout=WAIT_MS)
        page.locator("article.card.read .headline a").first.click()
        expect(page.locator(".story .prose p").first).to_be_visible(timeout=WAIT_MS)
    finally:
        reader.context.set_offline(False)


def test_forgotten_interest_leaves_no_byte_of_its_name_on_the_disk(
    reader: BrowserReader, read_ten_stories: tuple[Page, str]
) -> None:
    page, _ = read_ten_stories
    page.goto(reader.at("/interests"))
    page.locator("article.cluster input[name=name]").first.fill(NAMED)
    page.locator("article.cluster button", has_text="Rename").first.click()
    expect(page.get_by_role("heading", name=NAMED)).to_be_visible(timeout=WAIT_MS)
    assert reader.stored(NAMED)
    named = page.locator("article.cluster", has=page.get_by_role("heading", name=NAMED))
    named.locator("summary").click()
    named.locator("button.danger").click()
    expect(page.get_by_role("heading", name=NAMED)).to_have_count(0, timeout=WAIT_MS)
    assert not reader.stored(NAMED), "neither in the file nor in its log"


def test_erase_removes_the_reading_from_the_disk(reader: BrowserReader, read_ten_stories: tuple[Page, str]) -> None:
    page, feed = read_ten_stories
    assert reader.stored(feed)
    promised = page.evaluate("navigator.storage.persist()")
    page.goto(reader.at("/settings"))
    said = KEPT["lasts"]["promised" if promised else "refused"]
    expect(page.locator("#yours")).to_contain_text(said, timeout=WAIT_MS)
    page.locator("#confirm").fill("erase")
    page.get_by_role("button", name="Erase", exact=True).click()
    expect(page.get_by_text("Everything about you on this device is erased.")).to_be_visible(timeout=WAIT_MS)
    assert not reader.stored(feed)
    page.goto(reader.at("/"))
    expect(page.get_by_role("heading", name="Set up your feed")).to_be_visible(timeout=WAIT_MS)


@pytest.mark.long_form
def test_repeatedly_killed_tab_loses_nothing_and_logs_every_request(
    playwright: Playwright, chromium_program: Path, reader: BrowserReader, tmp_path: Path
) -> None:
    """`python -m tests.browser.killed_tabs` covers sums of rounds, and every kind of kill."""
    script = deadly_script(tmp_path)
    with killed_reader(playwright.chromium, chromium_program, reader.world, tmp_path, script, seed=5) as killed:
        while len(killed.deaths) < DEATHS:
            killed.life()
        killed.life(deadly=False)
    assert len(killed.opened) >= 3
    assert verdict(killed, tmp_path) == []
