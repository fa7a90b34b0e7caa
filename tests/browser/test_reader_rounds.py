"""A page in Chromium as a device: it joins a secure sum beside Python devices, pays for it, and shows it."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from backend.browser_device.routes import router
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from device_app.settings import PrivacySettings
from tests.browser.conftest import BEGIN, begin_first_visit
from tests.doubles.round_rig import BackendRig, DeviceRig
from tests.doubles.secure_cohort import Wire
from tests.doubles.small_world import serve_app

pytestmark = pytest.mark.node

PYTHON = 11
WITHIN_SEC = 120.0


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[tuple[BackendRig, list[DeviceRig], ExitStack]]:
    """A server on the real clock, and eleven Python devices, each with its own store."""
    (tmp_path / "backend").mkdir()
    rig = BackendRig.make(tmp_path / "backend", now)  # type: ignore[arg-type]
    news = [
        NewsItem(id=f"n{row}", title=f"Headline {row} of its own", section="s", topic="t", published_at=now())
        for row in range(20)
    ]
    NewsPool(rig.engine).add(news, source="test")
    with ExitStack() as stack:
        yield rig, [], stack


def test_browser_device_joins_a_secure_count_charges_it_and_shows_it(
    chromium: Browser, reader_build: Path, devices: tuple[BackendRig, list[DeviceRig], ExitStack], tmp_path: Path
) -> None:
    rig, others, stack = devices
    rig.app.routes.extend(router(reader_build).routes)
    url = stack.enter_context(serve_app(rig.app))
    first = tmp_path / "first.sqlite"
    for number in range(PYTHON):
        wire = Wire(url)
        stack.callback(wire.close)
        path = tmp_path / f"device{number}.sqlite"
        if number:
            shutil.copy(first, path)
        device = DeviceRig(path, now, wire, PrivacySettings(), number, blob_folder=tmp_path / "blobs")
        if not number:
            device.sync()
            device.stop()
            shutil.copy(path, first)
            device.start()
        stack.callback(device.stop)
        others.append(device)
    rig.coordinator.open_round("private_counts/secure/huber", cohort=PYTHON + 1, cohort_minimum=10, seconds=WITHIN_SEC)
    context = chromium.new_context()
    stack.callback(context.close)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(f"{url}/reader/")
    begin_first_visit(page)  # before that nothing is charged
    expect(page.locator(BEGIN)).to_have_count(0)
    ended = threading.Event()

    def work() -> None:
        until = time.monotonic() + WITHIN_SEC
        while rig.coordinator.status("round-1").state not in ("applied", "failed") and time.monotonic() < until:
            for device in others:
                device.trainer.step()
            rig.coordinator.step()
            ended.wait(0.1)  # the page has the processor meanwhile
        ended.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while not ended.is_set():
        page.wait_for_timeout(200)
    thread.join()
    status = rig.coordinator.status("round-1")
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
