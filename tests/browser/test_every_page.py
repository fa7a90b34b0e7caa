"""Every page of the reader's device in every state, light and dark, on a phone and on a desktop. Oracle: axe-core.

Each state is opened once; window size and colour scheme change under it. A page of the router without a state fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import pytest
from fastapi.openapi.utils import get_openapi
from playwright.sync_api import Browser, Page

from device_app.alerts import LoopAlert
from device_app.pages.routes import router
from device_app.view_models.latency import LatencyView
from tests.browser.axe_rules import broken_rules
from tests.browser.conftest import Serve
from tests.browser.standing_devices import WatchedPage, app_of, enter
from tests.doubles.long_form import by_length
from tests.doubles.pages_device import PagesDevice
from tests.doubles.pages_own_feeds import managed_feeds
from tests.doubles.pages_reader import page_key
from tests.doubles.pages_traffic import Kind

pytestmark = [pytest.mark.browser, pytest.mark.long_form]

STORY = "/story/newsroom:0003?feed=feed-1"
PAGES = (
    "/", "/page/feed-1", "/popular", "/fresh", "/explore", "/explore/science", "/topic/ports",
    "/publisher/The Ledger", "/following", "/saved", "/search",
    "/search?q=the", "/search?q=nothinglikeit", "/searches", "/welcome", "/you", "/settings", "/settings?switches=open",
    "/rules", "/rules?undo=yes&pattern=lottery",
    "/rules?replaces=2&kind=regex&pattern=x",
    "/kept", STORY, "/story/newsroom:0014", "/interests", "/interests/history", "/interests/history?q=nothinglikeit",
    "/privacy", "/privacy?show=all", "/privacy/polls/1/1", "/privacy/requests/2", "/privacy/requests/3",
    "/privacy/requests/6", "/training", "/latency",
)  # fmt: skip
OWN_FEEDS = ("/feeds", "/feeds/stories", "/feeds/stories?feed=Harbour Courant", "/feeds/stories?folder=World")
"""Pages of a device whose server is the reader's own."""
MANAGING = ("/feeds/start", "/feeds/manage", "/feeds/manage/feed?feed=https://dull.example/feed")
MAIN = ("/", "/explore", "/privacy", "/settings?switches=open", "/training", "/latency")
LOOKS = (("light", 1440), ("dark", 390), ("dark", 1440), ("light", 390))
QUICK = ["color-contrast", "scrollable-region-focusable", "aria-hidden-focus"]
"""What a scheme or a width changes. The typical device's main pages get every rule in light on the desk and in dark on
the phone. Of all others, every second page gets every rule at the desk, every other one on the phone; the long form
gives the main pages of all devices four looks, and adds these rules to all others at the other width. That a page is
no wider than the window is held at both."""
LONG = by_length(False, long=True)


@dataclass
class PageUnderTest:
    """A page under test and the problems found on it."""

    home: str
    watched: WatchedPage
    device: PagesDevice
    wrong: list[str] = field(default_factory=list)
    refused: int = 0
    looked: int = 0

    @property
    def page(self) -> Page:
        return self.watched.page

    def open(self, path: str, status: int = 200) -> None:
        """Open a page; a status other than the expected one is a problem."""
        self.page.emulate_media(color_scheme="light", reduced_motion="reduce")
        self.page.set_viewport_size({"width": 1440, "height": 900})
        answer = self.page.goto(self.home + path)
        assert answer is not None
        self.wrong += [] if answer.status == status else [f"{path}: {answer.status}"]
        self.refused += status >= 400

    def look(self, state: str, *, main: bool = False) -> None:
        """Check the open page; a main page against every rule at both widths."""
        self.looked += 1
        with_every_rule = (0, 1) if main else (self.looked % 2,)
        for number, (scheme, width) in enumerate(LOOKS if main and LONG else LOOKS[:2]):
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
            self.page.set_viewport_size({"width": width, "height": 900})
            where = f"{state}, {scheme}, {width} px"
            rules = None if number in with_every_rule else QUICK
            if rules is None or LONG:
                self.wrong += [f"{where}: {one}" for one in broken_rules(self.page, rules)]
            across = self.page.evaluate("document.documentElement.scrollWidth")
            self.wrong += [f"{where}: {across} px wide"] if across > width else []

    def each(self, paths: tuple[str, ...], *, main: bool = False) -> None:
        """Open and check one page after the other."""
        for path in paths:
            self.open(path)
            self.look(path, main=main)

    def open_drawers(self) -> None:
        """Open every drawer of this page."""
        self.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")


@contextmanager
def serve_device(chromium: Browser, serve: Serve, kind: Kind) -> Iterator[PageUnderTest]:
    """Serve a device of a kind; at the end, check that nothing failed, was logged or was requested from other hosts."""
    device = PagesDevice(kind)
    home = serve(app_of(device))
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    enter(context, home)
    look = PageUnderTest(home, WatchedPage(context.new_page(), home), device)
    yield look
    context.close()
    refusals = [error for error in look.watched.errors if re.search(r"status of (404|422|500)", error)]
    assert not look.wrong, "\n".join(look.wrong)
    assert look.watched.foreign_requests == []
    assert [error for error in look.watched.errors if error not in refusals] == []
    assert len(refusals) == look.refused


def pages_of_the_router() -> list[str]:
    """Return the router's addresses that answer GET with a page."""
    paths = get_openapi(title="", version="", routes=router(PagesDevice(), page_key()).routes)["paths"]  # type: ignore[arg-type]
    answers = {path: each["get"]["responses"].get("200", {}) for path, each in paths.items() if "get" in each}
    return [path for path, answer in answers.items() if "text/html" in answer.get("content", {})]


def test_every_route_of_the_router_is_in_the_checked_pages() -> None:
    templates = pages_of_the_router()
    assert len(templates) > 20
    shown_paths = [path.partition("?")[0] for path in (*PAGES, *OWN_FEEDS, *MANAGING)]
    patterns = {one: re.sub(r"\{[^}]+\}", "[^/]+", one) for one in templates}
    assert [
        one for one, pattern in patterns.items() if not any(re.fullmatch(pattern, path) for path in shown_paths)
    ] == []


def test_rules_are_checked_on_every_sibling_that_differs(chromium: Browser) -> None:
    page = chromium.new_page()
    for broken in ('style="color: #aaa"', 'aria-pressed="true" class="pale"'):
        page.set_content(
            "<html lang=en><title>Buttons</title><style>.pale { color: #aaa }</style>"
            f"<main><h1>Three</h1><button>One</button><button>Two</button><button {broken}>Three</button></main>"
        )
        assert [one.partition(":")[0] for one in broken_rules(page)] == ["color-contrast"], broken
    page.close()


def test_typical_device_pages_pass_every_check(chromium: Browser, serve: Serve) -> None:
    with serve_device(chromium, serve, "typical") as look:
        look.each(MAIN, main=True)
        look.each(tuple(path for path in PAGES if path not in MAIN))


def test_own_feeds_pages_pass_every_check(chromium: Browser, serve: Serve) -> None:
    with serve_device(chromium, serve, "overfull") as look:
        look.device.own_feeds = True
        look.device.library.mark([card.id for card in look.device.cards[:5]])
        look.each(OWN_FEEDS, main=LONG)
        look.each(("/feeds/stories?folder=World&marked=1", "/"))
        look.page.goto(look.home + OWN_FEEDS[-1])
        look.open_drawers()
        look.look("a folder with its drawers open")
        look.device.feeds.show_only_unread(True)
        look.each(("/feeds", "/feeds/stories?since=0"))
        look.device.own_server = managed_feeds()  # type: ignore[assignment]
        look.each(MANAGING, main=LONG)


def test_open_drawers_and_confirmations_pass_every_check(chromium: Browser, serve: Serve) -> None:
    with serve_device(chromium, serve, "typical") as look:
        for path in ("/", "/privacy?show=all", "/training", "/settings", STORY, "/interests"):
            look.open(path)
            look.open_drawers()
            look.look(f"{path} with its drawers open")
        look.open("/")
        less = look.page.locator("#n-newsroom\\:0005 button[value=less][aria-pressed]")
        for said in ("after less", "after its undo"):
            with look.page.expect_response("**/react"):
                less.press("Enter")
            look.look(said)
        look.each(("/?said=refreshed", "/settings?said=settings", "/welcome?said=erased"))


def test_wrong_addresses_and_faults_pass_every_check(
    chromium: Browser, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    with serve_device(chromium, serve, "typical") as look:
        for path, status in (
            ("/nowhere", 404),
            ("/story/unknown", 404),
            ("/story/" + "x" * 300, 404),
            ("/privacy/requests/99999999999999999999", 404),
            ("/privacy?page=99999999999999999999", 422),
            ("/latency", 500),
        ):
            if status == 500:
                look.device.latency = _at_fault  # type: ignore[method-assign]
            look.open(path, status)
            look.look(f"{path[:60]}: {status}")
            assert look.page.get_by_role("link", name="Back to your feed").count() == 1
        (logged,) = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
        assert logged.startswith("/latency could not be answered: builtins.RuntimeError\n")
        assert "a fault of our own" not in logged


def _at_fault() -> LatencyView:
    words = " ".join(("a", "fault", "of", "our", "own"))  # not whole in this line, which is logged with its place
    raise RuntimeError(words)


@pytest.mark.parametrize("kind", ["empty", "overfull", "offline"])
def test_pages_of_empty_offline_and_overfull_devices_pass_every_check(
    chromium: Browser, serve: Serve, kind: Kind
) -> None:
    with serve_device(chromium, serve, kind) as look:
        first = ("/welcome", "/popular", "/following", "/saved", "/searches") if kind == "empty" else ()
        look.each(MAIN + first, main=LONG)


def test_erased_and_refused_release_pages_pass_every_check(chromium: Browser, serve: Serve) -> None:
    with serve_device(chromium, serve, "typical") as look:
        status = look.device.status()
        alert = LoopAlert("sync", look.device.now, "The release r4 was refused: its signature is of another key.")
        refused = replace(status, shield="red", shield_words="What the server sent was refused.", alerts=(alert,))
        look.device.status = lambda: refused  # type: ignore[method-assign]
        look.each(("/", "/privacy"))
        look.device.status = lambda: status  # type: ignore[method-assign]
        look.open("/settings")
        look.page.get_by_label("Type erase to confirm").fill("erase it")
        look.page.get_by_role("button", name="Erase").click()
        look.page.get_by_text("Nothing was erased").wait_for()
        look.refused += 1
        look.look("an erase that was not confirmed")
        look.page.get_by_label("Type erase to confirm").fill("erase")
        look.page.get_by_role("button", name="Erase").click()
        look.page.wait_for_url("**/welcome**")  # the script takes what was said out of the address
        look.each(("/welcome?said=erased", "/you", "/privacy", "/training"))


def test_tab_key_reaches_the_skip_link_first_and_shows_focus(chromium: Browser, serve: Serve) -> None:
    with serve_device(chromium, serve, "typical") as look:
        look.open("/settings?switches=open")
        stops = tab_stops(look.page, 60)
        assert stops[0].name == "Skip to the stories"
        assert [one.name for one in stops if not one.ring] == []
        placed = [one for one in stops[1:] if not one.fixed]
        back = [(one, other) for one, other in pairwise(placed) if other.top < one.top - 200 and other.left <= one.left]
        assert back == [], "the order of the keyboard is that of the page, column by column"
        look.open("/")
        look.page.keyboard.press("Tab")
        look.page.keyboard.press("Enter")
        assert look.page.evaluate("document.activeElement.id") == "main"


class Stop(NamedTuple):
    """A stop of the Tab key: its position in px, whether it is inside the window, whether it shows a focus ring."""

    name: str
    left: float
    top: float
    fixed: bool
    ring: bool


def tab_stops(page: Page, limit: int) -> list[Stop]:
    """Return the first stops of the Tab key in order."""
    script = """() => {
      const on = document.activeElement, style = getComputedStyle(on), box = on.getBoundingClientRect();
      if (on === document.body) return null;
      const fixed = on.closest('.bottom-bar, .skip') !== null;
      const ring = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
      return [on.textContent.trim().slice(0, 40), box.left, box.top + scrollY, fixed, ring];
    }"""
    found: list[Stop] = []
    for _ in range(limit):
        page.keyboard.press("Tab")
        if (stop := page.evaluate(script)) is None:
            break
        found.append(Stop(*stop))
    return found
