"""One reader's device with a first page and the texts of its stories, served to a browser."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI
from playwright.sync_api import BrowserContext, Page

from device_app.app import create_app
from device_app.composition import build_device
from device_app.device import Device
from device_app.pages.local_origin import PageKey
from device_app.settings import DeviceSettings, PerformanceSettings
from tests.browser.conftest import Serve
from tests.doubles.backend import FakeBackend

NEVER_SYNCS = PerformanceSettings(sync_poll_sec=100_000, training_poll_sec=100_000)


@dataclass
class ServedHome:
    """The device, and the address of its pages."""

    device: Device
    address: str

    def let_in(self, context: BrowserContext) -> None:
        """Follow the link that the device's start prints."""
        link = PageKey.of_profile(self.device.settings.home, self.device.settings.port).link("127.0.0.1")
        assert context.request.get(link).ok

    def enter(self, context: BrowserContext) -> Page:
        """Follow the printed link, and open the page of the feed."""
        self.let_in(context)
        page = context.new_page()
        page.goto(self.address + "/")
        return page


def serve_home(
    serve: Serve, data_dir: Path, backend: FakeBackend | None = None, *, first_page: bool = True
) -> ServedHome:
    """Serve a device in a new folder over a fake backend; it syncs no more. first_page: whether it already made one."""
    over = backend or FakeBackend()
    made: list[Device] = []

    def make(port: int) -> FastAPI:
        device = build_device(
            DeviceSettings(data_dir=data_dir, port=port, performance=NEVER_SYNCS),
            transport=over.transport(),
            chance=random.Random(5),
        )
        if first_page:
            device.interests.choose_sections(())
            device.reading.feed()
            while device.prefetch_step():
                pass
        made.append(device)
        return create_app(device=device)

    address = serve(make)
    return ServedHome(made[0], address)
