"""A page in Chromium as a device: it joins a secure sum beside Python devices, pays for it, and shows it."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, Page, expect

from backend.browser_device.routes import router
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from device_app.app import create_app
from device_app.composition import build_device
from device_app.settings import DeviceSettings, PerformanceSettings, PrivacySettings
from tests.browser.conftest import BEGIN, Serve, begin_first_visit
from tests.doubles.long_form import by_length
from tests.doubles.round_rig import BackendRig, DeviceRig
from tests.doubles.secure_cohort import Wire
from tests.doubles.small_world import serve_app

pytestmark = pytest.mark.node

PYTHON = 11
WITHIN_SEC = 120.0


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[BackendRig, ExitStack]]:
    """A server on the real clock, and what ends with it."""
    (tmp_path / "backend").mkdir()
    rig = BackendRig.make(tmp_path / "backend", now)  # type: ignore[arg-type]
    news = [
        NewsItem(id=f"n{row}", title=f"Headline {row} of its own", section="s", topic="t", published_at=now())
        for row in range(20)
    ]
    NewsPool(rig.engine).add(news, source="test")
    with ExitStack() as stack:
        yield rig, stack


@dataclass
class Cohort:
    """A server that also serves the browser's device, and Python devices; `play` runs a round of all of them."""

    rig: BackendRig
    url: str
    devices: list[DeviceRig] = field(default_factory=list)

    def open_round(self, size: int) -> str:
        """Open a secure count for so many devices."""
        opened = self.rig.coordinator.open_round(
            "private_counts/secure/huber", cohort=size, cohort_minimum=10, seconds=WITHIN_SEC
        )
        return opened.round

    @contextmanager
    def playing(self, named: str) -> Iterator[threading.Event]:
        """Let server and devices step until the round has ended; yields what is set then."""
        ended = threading.Event()

        def work() -> None:
            until = time.monotonic() + WITHIN_SEC
            while self.rig.coordinator.status(named).state not in ("applied", "failed") and time.monotonic() < until:
                for device in self.devices:
                    device.trainer.step()
                self.rig.coordinator.step()
                ended.wait(0.1)  # the page has the processor meanwhile
            ended.set()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield ended
        thread.join()


def cohort_of(rig: BackendRig, stack: ExitStack, build: Path, folder: Path, count: int) -> Cohort:
    """Return a served cohort with so many Python devices, each with its own store."""
    rig.app.routes.extend(router(build).routes)
    cohort = Cohort(rig, stack.enter_context(serve_app(rig.app)))
    first = folder / "first.sqlite"
    for number in range(count):
        wire = Wire(cohort.url)
        stack.callback(wire.close)
        path = folder / f"device{number}.sqlite"
        if number:
            shutil.copy(first, path)
        device = DeviceRig(path, now, wire, PrivacySettings(), number, blob_folder=folder / "blobs")
        if not number:
            device.sync()
            device.stop()
            shutil.copy(path, first)
            device.start()
        stack.callback(device.stop)
        cohort.devices.append(device)
    return cohort


def test_browser_device_joins_a_secure_count_charges_it_and_shows_it(
    chromium: Browser, reader_build: Path, server: tuple[BackendRig, ExitStack], tmp_path: Path
) -> None:
    rig, stack = server
    cohort = cohort_of(rig, stack, reader_build, tmp_path, PYTHON)
    url, named = cohort.url, cohort.open_round(PYTHON + 1)
    context = chromium.new_context()
    stack.callback(context.close)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(f"{url}/reader/")
    begin_first_visit(page)  # before that nothing is charged
    expect(page.locator(BEGIN)).to_have_count(0)
    with cohort.playing(named) as ended:
        while not ended.is_set():
            page.wait_for_timeout(200)
    status = rig.coordinator.status(named)
    assert (status.state, status.survivors) == ("applied", PYTHON + 1), (status, said[-5:])
    page.goto(f"{url}/reader/#/training")
    listed = page.locator("ul.kept-list li", has_text="Group count")
    # this server has no list of news, so that an alert of the device stands on every page
    expect(listed).to_have_count(1, timeout=1_000 * WITHIN_SEC)
    expect(page.locator("[data-alert=sync]")).to_be_visible()
    page.locator("#figures summary").click()
    expect(page.locator("#figures")).to_contain_text("21.1")  # if no other device is real
    # This device covers no update by itself (web/device/privacy/protections), so the page offers no price of that.
    expect(page.locator("#figures")).to_contain_text("sends updates only into secure sums")
    expect(page.locator("#figures")).not_to_contain_text("noise added here")


NOW_SHOWN = "() => [...document.querySelectorAll('[data-now]')].map((part) => part.textContent)"
OPEN = "() => document.querySelector('#figures').open"
ROUNDS = by_length(1, long=3)
LOOK_EVERY_MS = by_length(2_000, long=1_000)
AFTERWARDS = by_length(2, long=4)
"""So often the page is compared after a round's end."""
LAG_SEC = 3.0
"""An open page asks its device every second; a round that opens or ends takes a device at most one poll to notice."""


@pytest.mark.long_form
@pytest.mark.parametrize("kind", ["browser", "Python"])
def test_open_training_page_always_shows_the_state_of_its_device(
    chromium: Browser,
    reader_build: Path,
    server: tuple[BackendRig, ExitStack],
    serve: Serve,
    tmp_path: Path,
    kind: str,
) -> None:
    """Oracle: the same page loaded again and again in another tab.

    The short form has one round of three and looks every two seconds instead of every second; it still looks while the
    round runs and after its end.
    """
    rig, stack = server
    cohort = cohort_of(rig, stack, reader_build, tmp_path, PYTHON)
    context = chromium.new_context()
    stack.callback(context.close)
    tab, other = context.new_page(), context.new_page()
    if kind == "browser":
        home = f"{cohort.url}/reader/#"
        tab.goto(f"{cohort.url}/reader/")
        begin_first_visit(tab)  # before that nothing is charged
        expect(tab.locator(BEGIN)).to_have_count(0)
    else:
        home = served_device(cohort.url, serve, tmp_path, context)
    tab.goto(f"{home}/training")
    expect(tab.locator("#round")).to_be_visible()
    tab.locator("#figures summary").click()
    tab.evaluate("window.stood = true")
    late = list[object]()
    for _ in range(ROUNDS):
        named = cohort.open_round(PYTHON + 1)
        with cohort.playing(named) as ended:
            during = 0
            while not ended.is_set():
                during += 1
                late += differs(tab, other, f"{home}/training")
            for _ in range(AFTERWARDS):
                late += differs(tab, other, f"{home}/training")
        assert during
        status = rig.coordinator.status(named)
        assert (status.state, status.survivors) == ("applied", PYTHON + 1)
        listed = tab.locator("ul.kept-list li", has_text="Group count")
        expect(listed).to_have_count(int(named.removeprefix("round-")))
    assert late == []
    assert tab.evaluate("window.stood === true"), "it was never loaded again"
    assert tab.evaluate(OPEN), "a drawer stays open"


def differs(tab: Page, other: Page, address: str) -> list[object]:
    """Return what an open page showed instead of its device's state, over LAG_SEC; nothing if it came to show it."""
    until = time.monotonic() + LAG_SEC
    states: list[object] = []
    while True:
        other.goto("about:blank")
        other.goto(address)
        other.wait_for_selector("[data-now]")
        states.append(other.evaluate(NOW_SHOWN))
        shown = tab.evaluate(NOW_SHOWN)
        if shown in states:
            tab.wait_for_timeout(LOOK_EVERY_MS)
            return []
        if time.monotonic() > until:
            return [(shown, states[-1])]
        tab.wait_for_timeout(250)


def served_device(url: str, serve: Serve, folder: Path, context: BrowserContext) -> str:
    """Serve the pages of a Python device whose background runs, and let the browser in."""
    quick = PerformanceSettings(sync_poll_sec=5.0, training_poll_sec=1.0, training_send_sec=0.0)
    made: list[FastAPI] = []

    def make(port: int) -> FastAPI:
        settings = DeviceSettings(data_dir=folder / "home", backend_url=url, port=port, performance=quick)
        made.append(create_app(device=build_device(settings)))
        return made[0]

    address = serve(make)
    link = made[0].state.page_key.link("127.0.0.1")
    assert context.request.get(link).ok
    return address
