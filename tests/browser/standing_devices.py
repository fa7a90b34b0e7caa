"""Stand-in devices served to a browser, and a browser page that records errors and requests to other hosts."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from fastapi import FastAPI
from playwright.sync_api import BrowserContext, Page

from device_app.pages.local_origin import LocalOriginMiddleware
from device_app.pages.routes import router
from tests.browser.conftest import Serve
from tests.doubles.pages_device import PagesDevice
from tests.doubles.pages_reader import page_key


class StandInDevices:
    """The stand-in devices under test, each with its address."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self.devices: dict[str, PagesDevice] = {}
        self._addresses: dict[str, str] = {}

    def address(self, kind: str) -> str:
        """Return the address of the device of this kind."""
        if kind not in self._addresses:
            self.devices[kind] = PagesDevice(kind)  # type: ignore[arg-type]
            self._addresses[kind] = self._serve(app_of(self.devices[kind]))
        return self._addresses[kind]


def app_of(device: PagesDevice) -> Callable[[int], FastAPI]:
    """Return the device's pages, protected by the key of their port."""

    def make(port: int) -> FastAPI:
        app = FastAPI(openapi_url=None)
        app.routes.extend(router(device, page_key(port)).routes)  # type: ignore[arg-type]
        app.add_middleware(LocalOriginMiddleware, port=port, key=page_key(port))
        return app

    return make


def enter(context: BrowserContext, home: str) -> None:
    """Open the link that the device would print."""
    port = urlsplit(home).port
    assert port is not None
    assert context.request.get(page_key(port).link("127.0.0.1")).ok


class WatchedPage:
    """A page that records errors and requests to other hosts while it is open."""

    def __init__(self, page: Page, home: str) -> None:
        self.page, self.home = page, home
        self.errors: list[str] = []
        self.foreign_requests: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if said.type in ("error", "warning") else None)
        page.on("request", lambda one: None if one.url.startswith(home) else self.foreign_requests.append(one.url))
