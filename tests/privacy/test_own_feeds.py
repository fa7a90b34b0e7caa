"""Requests to a reader's own server don't depend on what is read; no other device sends it any.

Oracle: the requests that a stand-in server receives, byte by byte.
"""

from __future__ import annotations

import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from device_app.composition import build_device
from device_app.errors import SettingsRefused
from device_app.settings import DeviceSettings
from protocol.news import NewsBody
from protocol.own_feeds import PREFIX, FeedListing, NewestStories, OwnFeed, Preparation
from protocol.releases import BlobRef, ShardList, ShardRef
from protocol.tensors import pack, quantise
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW
from tests.doubles.recall_app import running_server

PREPARES_FOR = 3
SHARD = "2026-11-20.0"
FEED = OwnFeed(key="https://courant.example/feed", url="https://courant.example/feed", publisher="Courant")


class OwnBackend:
    """A reader's own server, whose first answers say that it can't rank yet."""

    def __init__(self) -> None:
        self.backend = FakeBackend(pool_codes=True)
        self.requests: list[tuple[str, str, bytes, str]] = []
        self._listed = 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer one request, and record it."""
        bearer = request.headers.get("authorization", "")
        self.requests.append((request.method, str(request.url), request.read(), bearer))
        if "/vectors" in request.url.path:
            return self._vectors(request.url.path)
        if not request.url.path.startswith(PREFIX):
            return self.backend.answer(request)
        if request.url.path == f"{PREFIX}feeds":
            self._listed += 1
            preparing = Preparation(step="Reading", done=self._listed) if self._listed <= PREPARES_FOR else None
            return httpx.Response(200, text=FeedListing(feeds=(FEED,), preparing=preparing).model_dump_json())
        cards = self.backend.pool.cards[:40]
        bodies = tuple(NewsBody(id=card.id, body="Text.") for card in cards)
        return httpx.Response(200, text=NewestStories(cards=cards, bodies=bodies).model_dump_json())

    def _vectors(self, path: str) -> httpx.Response:
        """Answer with one shard of the whole pool."""
        content, cards = pack(quantise(self.backend.pool.vectors)), self.backend.pool.cards
        if path.endswith("/ids"):
            return httpx.Response(200, json=[card.id for card in cards])
        if path.endswith(SHARD):
            return httpx.Response(200, content=content)
        blob = BlobRef(sha256=sha256(content).hexdigest(), size_bytes=len(content))
        shard = ShardRef(name=SHARD, count=len(cards), blob=blob)
        listed = ShardList(release=self.backend.releases[-1], encoder=self.backend.encoder, shards=(shard,))
        return httpx.Response(200, text=listed.model_dump_json())


def lived(folder: Path, *, reads: bool) -> OwnBackend:
    """Return a server's requests over some steps of a device, whose reader opens stories before and after the first
    ranking."""
    folder.mkdir()
    token = folder / "token"
    token.write_text("t" * 43, encoding="utf-8")
    server, clock = OwnBackend(), StillClock(NOW)
    device = build_device(
        DeviceSettings(data_dir=folder, own_feeds=True, own_feeds_token_file=token),
        transport=httpx.MockTransport(server.answer),
        chance=random.Random(5),
        clock=clock,
    )
    unranked = set[str]()
    for _ in range(2 * PREPARES_FOR):
        device.sync()
        clock.go_on(5.0)
        if reads:
            assert device.reading.newest(40)
            for card in device.reading.newest(4):
                unranked |= {card.id} if device.release() is None else set()
                device.reading.click(card.id)
                device.library.react(card.id, "save")
            device.reading.feed(refresh=True)
    assert (device.parts.stores.clicks.count() > 0) == reads
    release = device.release()
    assert release is not None
    assert bool(unranked) == reads
    here, _ = device.parts.stores.news.vectors(sorted(unranked), release.manifest.encoder)
    assert here.all(), "what was opened before anything ranked teaches the ranking"
    device.close()
    return server


def test_requests_to_the_own_server_do_not_depend_on_reading(tmp_path: Path) -> None:
    idle, reading = lived(tmp_path / "idle", reads=False), lived(tmp_path / "reading", reads=True)
    assert reading.requests == idle.requests
    assert {path.partition(PREFIX)[2] for _, path, _, _ in idle.requests if PREFIX in path} == {"feeds", "newest"}


def test_token_is_sent_only_with_requests_about_feeds(tmp_path: Path) -> None:
    for _, url, _, bearer in lived(tmp_path / "one", reads=True).requests:
        assert bool(bearer) == (PREFIX in url)


def test_device_of_a_publisher_never_requests_feeds(tmp_path: Path) -> None:
    choices: tuple[dict[str, Any], ...] = ({}, {"own_feeds": True})
    for own in choices:
        server = OwnBackend()
        device = build_device(
            DeviceSettings(data_dir=tmp_path / str(bool(own)), **own), transport=httpx.MockTransport(server.answer)
        )
        device.sync()
        device.reading.feed(refresh=True)
        assert device.own_server is None
        device.close()
        assert server.requests
        assert not [url for _, url, _, _ in server.requests if PREFIX in url]


def test_feeds_cannot_be_managed_on_another_machine(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t" * 43, encoding="utf-8")
    settings = DeviceSettings(
        data_dir=tmp_path, own_feeds=True, own_feeds_token_file=token, backend_url="https://news.example"
    )
    with pytest.raises(SettingsRefused, match="is not on this machine"):
        build_device(settings)


def test_publishers_server_has_no_feed_routes(tmp_path: Path) -> None:
    with running_server(tmp_path, news=0, releases=0) as server:
        assert not [route for route in server.app.routes if getattr(route, "path", "").startswith(PREFIX)]
        assert server.client.get(f"{PREFIX}feeds").status_code == 404
