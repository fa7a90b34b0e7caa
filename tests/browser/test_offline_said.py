"""An idle page says that its newsroom is gone, and that it is back, in a real Chromium over a real device."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from fastapi import FastAPI
from playwright.sync_api import Browser, expect

from device_app.app import create_app
from device_app.composition import build_device
from device_app.device import Device
from device_app.settings import DeviceSettings
from tests.browser.conftest import Serve
from tests.browser.served_home import NEVER_SYNCS, ServedHome
from tests.doubles.backend import FakeBackend

pytestmark = pytest.mark.browser
WITHIN_MS = 60_000


@pytest.mark.parametrize("own_feeds", [False, True])
def test_an_idle_page_says_that_the_newsroom_is_gone_and_that_it_is_back(
    chromium: Browser, serve: Serve, tmp_path: Path, *, own_feeds: bool
) -> None:
    newsroom, made = socket.create_server(("127.0.0.1", 0)), []
    port = newsroom.getsockname()[1]

    def make(own: int) -> FastAPI:
        values = {"data_dir": tmp_path, "port": own, "performance": NEVER_SYNCS, "own_feeds": own_feeds}
        settings = DeviceSettings.model_validate(values | {"backend_url": f"http://127.0.0.1:{port}"})
        first = build_device(settings, transport=FakeBackend().transport())
        first.choose_sections(())
        first.feed()
        first.close()
        device: Device = build_device(settings)
        device.sync = lambda: False  # type: ignore[method-assign]
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
    whose = "the part of Ownfeed that reads your feeds" if own_feeds else "the newsroom"
    expect(line).to_have_text(f"Offline: {whose} does not answer")
    assert Axe().run(page).response["violations"] == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "it runs on, and the page is no wider for it"
    newsroom = socket.create_server(("127.0.0.1", port))
    expect(line).to_be_hidden(timeout=WITHIN_MS)
    newsroom.close()
    page.context.close()
