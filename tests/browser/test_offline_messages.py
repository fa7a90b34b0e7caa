"""An idle page announces that the server is gone and that it is back, in Chromium over a real device."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, expect

from device_app.alerts import Loop
from device_app.app import create_app
from device_app.composition import build_device
from device_app.device import Device
from device_app.errors import BackendUnreachable, ReleaseRefused
from device_app.settings import DeviceSettings
from tests.browser.axe_rules import broken_rules
from tests.browser.conftest import Serve
from tests.browser.served_home import NEVER_SYNCS, ServedHome
from tests.doubles.backend import FakeBackend
from tests.doubles.picture_files import small_picture

pytestmark = pytest.mark.browser
WITHIN_MS = 60_000
WIDTHS = (390, 768, 1440)
MOVED = "new Promise(done => setTimeout(() => done(window.moved), 100))"
WATCH_MOVES = """() => {
  window.moved = [];
  new PerformanceObserver(list => {
    for (const shift of list.getEntries()) {
      const nodes = shift.sources.map(source => source.node?.outerHTML?.slice(0, 200) ?? source.node?.nodeName);
      window.moved.push([Math.round(shift.startTime), shift.value, ...nodes]);
    }
  }).observe({type: 'layout-shift', buffered: true});
}"""
REFUSED = "[Errno 111] Connection refused"
PICTURE_WIDTH = 480
LOADED = """pictures => Promise.all(pictures.map(async picture => {
  picture.loading = 'eager';
  await picture.decode();
  return picture.naturalWidth;
}))"""
FULL = "[Errno 28] No space left on device"


@pytest.mark.parametrize("own_feeds", [False, True])
def test_idle_page_announces_server_loss_and_recovery(
    chromium: Browser, serve: Serve, tmp_path: Path, *, own_feeds: bool
) -> None:
    newsroom, made = socket.create_server(("127.0.0.1", 0)), []
    port = newsroom.getsockname()[1]

    def make(own: int) -> FastAPI:
        values = {"data_dir": tmp_path, "port": own, "performance": NEVER_SYNCS, "own_feeds": own_feeds}
        settings = DeviceSettings.model_validate(values | {"backend_url": f"http://127.0.0.1:{port}"})
        first = build_device(settings, transport=FakeBackend().transport())
        first.interests.choose_sections(())
        first.reading.feed()
        first.close()
        device: Device = build_device(settings)
        device.sync = device.first_sync = lambda: False  # type: ignore[method-assign, assignment]
        made.append(device)
        return create_app(device=device)

    home = serve(make)
    page = ServedHome(made[0], home).enter(chromium.new_context())
    held, _ = newsroom.accept()
    line = page.locator("[data-pulse]")
    expect(line).to_be_hidden()
    newsroom.close()
    held.close()
    expect(line).to_be_visible(timeout=WITHIN_MS)
    whose = "the part of Ownfeed that reads your feeds" if own_feeds else "the publisher"
    expect(line).to_have_text(f"Offline: can't reach {whose}")
    assert broken_rules(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "it runs on, and the page is no wider for it"
    newsroom = socket.create_server(("127.0.0.1", port))
    expect(line).to_be_hidden(timeout=WITHIN_MS)
    newsroom.close()
    page.context.close()


def home_without_loops(serve: Serve, data_dir: Path, backend: FakeBackend) -> ServedHome:
    """A device with a first page whose background doesn't run, so that only the test makes it fail."""
    made: list[Device] = []

    def make(port: int) -> FastAPI:
        settings = DeviceSettings(data_dir=data_dir, port=port, performance=NEVER_SYNCS)
        device = build_device(settings, transport=backend.transport())
        device.interests.choose_sections(())
        device.reading.feed()
        while device.prefetch_step():  # a list left over would keep the thread busy, whose step does nothing
            pass
        for step in ("first_sync", "sync", "recall_step", "train_step", "prefetch_step", "copy_step"):
            setattr(device, step, lambda: False)
        made.append(device)
        return create_app(device=device)

    address = serve(make)
    return ServedHome(made[0], address)


def fail(device: Device, loop: Loop, failed: Exception) -> None:
    """Make a step of a background loop fail with this error."""
    with suppress(type(failed)), device.alerts.of(loop):
        raise failed


@pytest.mark.parametrize("width", WIDTHS)
def test_failures_during_an_outage_disappear_from_an_open_page(
    chromium: Browser, serve: Serve, tmp_path: Path, width: int
) -> None:
    home = home_without_loops(serve, tmp_path, FakeBackend())
    device = home.device
    page = home.enter(chromium.new_context(viewport={"width": width, "height": 900}))
    page.evaluate(WATCH_MOVES)
    device.parts.syncing.online = False
    loops: tuple[Loop, ...] = ("sync", "texts", "training")
    for loop in loops:
        fail(device, loop, BackendUnreachable("http://127.0.0.1:8000", REFUSED))
    expect(page.locator("[data-pulse]")).to_be_visible(timeout=WITHIN_MS)
    said = "Offline: can't reach the publisher"
    assert page.locator("[data-pulse]").bounding_box()["y"] < 900, "in sight, wherever one reads"  # type: ignore[index]
    page.reload()
    page.evaluate(WATCH_MOVES)
    text = page.locator("body").inner_text()
    assert text.count("can't reach") == text.count(said) == 1
    assert "Errno" not in page.content()
    device.parts.syncing.reached()
    expect(page.locator("[data-pulse]")).to_be_hidden(timeout=WITHIN_MS)
    assert "can't reach" not in page.locator("body").inner_text()
    assert page.evaluate(MOVED) == []
    page.reload()
    assert "can't reach" not in page.locator("body").inner_text(), "before the next look for what is new, too"
    page.context.close()


@pytest.mark.parametrize("width", WIDTHS[:1])
def test_fault_of_the_device_is_shown_with_details_and_disappears_after_success(
    chromium: Browser, serve: Serve, tmp_path: Path, width: int
) -> None:
    home = home_without_loops(serve, tmp_path, FakeBackend())
    fail(home.device, "copy", OSError(FULL))
    fail(home.device, "sync", ReleaseRefused("r4", "its signature is of another key"))
    page = home.enter(chromium.new_context(viewport={"width": width, "height": 900}))
    page.evaluate(WATCH_MOVES)
    fault = page.locator("[data-alert=copy]")
    expect(fault).to_contain_text("Making the daily copy")
    assert "Errno" not in page.locator("body").inner_text()
    assert broken_rules(page) == []
    expect(page.locator("[data-alert=sync]")).to_contain_text("Release r4 was refused: its signature is of another key")
    with home.device.alerts.of("copy"):
        pass
    expect(fault).to_have_text("Making the daily copy works again", timeout=WITHIN_MS)
    assert page.evaluate(MOVED) == []
    expect(page.locator("[data-alert=sync]"), "the other one stands").to_contain_text("was refused")
    page.reload()
    expect(fault).to_have_count(0)
    page.locator("[data-alert=sync]").wait_for()
    fail(home.device, "copy", OSError(FULL))
    page.reload()
    fault.locator("summary").click()
    assert FULL in page.locator("body").inner_text()
    page.context.close()


def test_page_made_offline_announces_reconnection(chromium: Browser, serve: Serve, tmp_path: Path) -> None:
    backend = FakeBackend()
    home = home_without_loops(serve, tmp_path, backend)
    for item in home.device.reading.feed().items[:8]:
        home.device.reading.open(item.card.id)
    backend.down = True
    with suppress(BackendUnreachable):
        Device.sync(home.device)
    page = home.enter(chromium.new_context(viewport={"width": 390, "height": 900}))
    page.get_by_role("button", name="Refresh").click()
    notice = page.locator(".notice[data-back]")
    expect(notice).to_contain_text("Can't reach the publisher. Showing your page from")
    page.evaluate(WATCH_MOVES)
    backend.down = False
    home.device.parts.syncing.reached()
    expect(notice).to_have_text("The publisher can be reached again.", timeout=WITHIN_MS)
    assert page.evaluate(MOVED) == []
    page.context.close()


def test_publishers_pictures_are_shown_while_the_server_is_gone(
    chromium: Browser, serve: Serve, tmp_path: Path
) -> None:
    backend = FakeBackend()
    backend.pictures = dict.fromkeys((card.id for card in backend.pool.cards), small_picture())
    home = home_without_loops(serve, tmp_path, backend)
    Device.sync(home.device)
    backend.down = True
    page = home.enter(chromium.new_context())
    pictures = page.locator("main img[src^='/pictures/']")
    widths = pictures.evaluate_all(LOADED)
    assert len(widths) > 5
    assert set(widths) == {PICTURE_WIDTH}
    page.locator("article.lead .headline a").click()
    expect(page.locator(".story img[src^='/pictures/']")).to_have_js_property("naturalWidth", PICTURE_WIDTH)
    page.context.close()
