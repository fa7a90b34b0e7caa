"""A reader's own server and device in one process, with publishers that tests make up."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import httpx
from fastapi import FastAPI
from starlette.testclient import TestClient

from backend.app import create_app
from backend.composition import Services, build_services
from backend.news.feed_scheduler import FeedScheduler
from device_app.app import create_app as create_device_app
from device_app.composition import build_device
from device_app.device import Device
from device_app.settings import DeviceSettings
from tests.doubles.in_process import InProcess
from tests.doubles.pages_reader import FOLLOWS_A_LINK, HOME, OURS, enter
from tests.doubles.recall_world import settings_in

COURANT, POST = "https://courant.example/feed", "https://post.example/feed"
TOKEN = "t" * 43


def rss(name: str, stories: int) -> bytes:
    """A feed of RSS 2.0."""
    items = "".join(
        f"<item><title>{name} story {number}</title><link>https://{name.lower()}.example/{number}</link>"
        f"<guid>{name}-{number}</guid><description>About {number}.</description>"
        f"<content:encoded>The whole text of story {number}. {'It goes on and on. ' * 30}</content:encoded>"
        f"<pubDate>Fri, 20 Nov 2026 1{number}:00:00 GMT</pubDate></item>"
        for number in range(stories)
    )
    return f'<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>{name}</title>{items}</channel></rss>'.encode()


@dataclass
class World:
    """A reader's server and device, and which publishers were asked."""

    services: Services
    backend: FastAPI
    device: Device
    pages: TestClient
    asked: list[str]

    def read_feeds(self) -> None:
        """Let the server ask the feeds that are due, and the device ask its server."""
        self.services.feeds.step()
        self.device.sync()

    def post(self, path: str, **form: str | list[str]) -> httpx.Response:
        """Send a form of the pages."""
        return self.pages.post(path, data=form, headers=OURS)  # type: ignore[return-value]


@contextmanager
def own_world(folder: Path) -> Iterator[World]:
    """A server without a release, and a device in front of it; the publishers answer three stories each."""
    asked: list[str] = []

    def publisher(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        name = {"courant.example": "Courant", "post.example": "Post"}.get(request.url.host)
        return httpx.Response(200, stream=httpx.ByteStream(rss(name, 3))) if name else httpx.Response(500)

    token = folder / "ownfeed.token"
    token.write_text(TOKEN, encoding="utf-8")
    settings = settings_in(folder / "backend", own_feeds_token_file=token)
    built = build_services(settings)
    feeds = FeedScheduler(
        built.engine, built.pool, every=timedelta(minutes=15), pause_sec=0, transport=httpx.MockTransport(publisher)
    )
    services = replace(built, feeds=feeds)
    backend = create_app(services=services)
    server = InProcess(backend)
    device = build_device(
        DeviceSettings(data_dir=folder, own_feeds=True, own_feeds_token_file=token),
        transport=server,
        chance=random.Random(1),
    )
    app = create_device_app(device=device)
    pages = TestClient(app, base_url=HOME, follow_redirects=False, headers=FOLLOWS_A_LINK)
    enter(pages, app.state.page_key)
    try:
        yield World(services, backend, device, pages, asked)
    finally:
        device.close()
        server.close()
        services.close()
