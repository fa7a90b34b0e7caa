"""The reader's own web app on this machine: its pages and its background loops."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware

from device_app.background import Background
from device_app.composition import build_device
from device_app.device import Device
from device_app.pages.lan import CERTIFICATE_FILE, PASSWORD_FILE, LanAccess
from device_app.pages.local_origin import LocalOriginMiddleware, PageKey
from device_app.pages.metrics import DeviceMetrics, MeasuredRequests
from device_app.pages.openapi import document
from device_app.pages.passwords import PasswordFile
from device_app.pages.routes import router
from device_app.process import json_logs
from device_app.settings import DeviceSettings


def _checked(device: Device) -> Device:
    """Return the device if its databases are intact; else close it. Raises StoreBroken."""
    try:
        device.parts.stores.check()
    except BaseException:
        device.close()
        raise
    return device


def create_app(settings: DeviceSettings | None = None, device: Device | None = None) -> FastAPI:
    """Return the app of one reader.

    A given device stays open at shutdown; one created here is closed. Raises ProfileInUse, or StoreBroken if the
    reader's database is damaged or can't be opened.
    """
    mine = device is None
    served = _checked(build_device(settings or DeviceSettings())) if device is None else device

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        background = Background(served)
        background.start()
        try:
            with json_logs(served.settings.log_format == "json"):
                yield
        finally:
            await run_in_threadpool(background.stop)
            if mine:
                served.close()

    app = FastAPI(title="Ownfeed", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.state.device = served
    app.state.page_key = PageKey.of_profile(served.settings.home, served.settings.port)
    metrics = DeviceMetrics(served)
    app.add_middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5)
    home, lan = served.settings.home, served.settings.lan
    lan_access = None if lan is None else LanAccess(lan, PasswordFile(home / PASSWORD_FILE), home / CERTIFICATE_FILE)
    app.add_middleware(LocalOriginMiddleware, port=served.settings.port, key=app.state.page_key, lan=lan_access)
    app.add_middleware(MeasuredRequests, metrics=metrics)
    for each in (metrics.router(), router(served, app.state.page_key)):
        app.routes.extend(each.routes)  # including a router would create each of its routes a second time
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    return app
