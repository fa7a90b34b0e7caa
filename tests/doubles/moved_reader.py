"""A reader with reads, settings and charges, on a Python device without a backend, that imports files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from fastapi.encoders import jsonable_encoder

from device_app.composition import build_device
from device_app.device import Device
from device_app.settings import DeviceSettings
from device_app.store.ledger_entries import LedgerEntry
from device_app.store.participations import RoundUploads
from protocol.news import NewsCard
from tests.conformance.node_end import ask_node

NOW = datetime(2026, 11, 26, 9, 30, 0, 125_000, tzinfo=UTC)
SWITCHES = {"counting": False, "epsilon_per_day_reports": 12.5, "searches_in_reports": False}


@contextmanager
def python_device(folder: Path, now: datetime = NOW, *, own_feeds: bool = False) -> Iterator[Device]:
    """A device whose backend doesn't answer."""

    def nobody(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("nobody is there", request=request)

    settings = DeviceSettings(data_dir=folder, backend_url="http://127.0.0.1:9", own_feeds=own_feeds)
    device = build_device(settings, transport=httpx.MockTransport(nobody), clock=lambda: now)
    try:
        yield device
    finally:
        device.close()


def live(device: Device) -> None:
    """Let the reader read, like, search, change settings and spend budget."""
    stores = device.parts.stores
    cards = [
        NewsCard(
            id=f"news:{at}", title=f"[{at}] Ærø, “quoted”", abstract="{not JSON", url="", publisher="P",
            section="sport", topic="rowing", story=None, published_at=NOW - timedelta(hours=at), weight=0.25,
        )
        for at in range(8)
    ]  # fmt: skip
    stores.news.put_cards(cards, NOW - timedelta(hours=9))
    stores.news.put_bodies({one.id: "[1, 2]" for one in cards})
    stores.news.put_vectors([one.id for one in cards], np.eye(8, 16, dtype=np.float32), "e")
    stores.impressions.serve("feed-1", [one.id for one in cards], NOW - timedelta(hours=2))
    stores.impressions.view("feed-1", ["news:0", "news:4", "news:7"], NOW - timedelta(hours=1))
    for at, feed in enumerate(("feed-1", "feed-1", None, None)):
        stores.clicks.add(f"news:{at}", feed, NOW - timedelta(minutes=30 - at, microseconds=7))
    stores.clicks.add("of-a-story-that-left", None, NOW - timedelta(days=40))
    stores.feedback.react("news:1", "like", NOW - timedelta(minutes=9))
    stores.feedback.react("news:5", "save", NOW - timedelta(minutes=8))
    stores.feedback.react("news:6", "less", NOW - timedelta(minutes=7))
    device.library.mark(["news:4", "news:6"])
    device.muting.add("title", "phrase", "never about this")
    for words in ("regatta", "[1, 2]"):
        device.library.save_search(words)
    device.interests.stance("topic", "rowing", "follow")
    device.interests.stance("publisher", "[x]", "block")
    stores.searches.opened("news:3", NOW - timedelta(minutes=3))
    device.parts.names.name(["news:0", "news:1"], "On the river")
    device.parts.names.mute(["news:2"], True)
    device.interests.choose_sections(("sport", "news"))
    device.privacy.change(**SWITCHES)
    prices = {"rho": 0.5, "rho_alone": 5.0, "epsilon_alone": 21.1}
    for number, (channel, epsilon) in enumerate(
        (("reports", 4.0), ("reports", 4.0), ("counts", 5.3), ("training", 2.5))
    ):
        paid_at = NOW - timedelta(days=number % 2, minutes=1)
        given = prices if channel == "counts" else {"epsilon": 4.0, "values": 16}
        delta = 1e-6 if channel == "counts" else 0.0
        entry = LedgerEntry(paid_at, channel, "code", given, epsilon, delta, f"{number}" * 64, f"subject-{number}")
        stores.ledger_entries.append(entry)
        if number == 0:  # a repetition in the same microsecond is a second charge
            stores.ledger_entries.append(entry)
    stores.drawn_reports.keep("code", "book", 3, '{"kind":"code","codebook":16,"code":7}', NOW)
    stores.drawn_reports.begin("book", NOW)
    RoundUploads(stores.database).bind("round-9", "ab" * 32, NOW)
    stores.database.rows("INSERT INTO view_round VALUES ('round-8', 'reading', .2, 1.5, 4) RETURNING 1")


def exported(device: Device) -> dict[str, Any]:
    """Return the exported file as parsed from JSON."""
    found: dict[str, Any] = json.loads(json.dumps(jsonable_encoder(device.privacy.export())))
    return found


def in_browser(*files: dict[str, Any], now: datetime = NOW, used: bool = False, settings: bool = True) -> list[Any]:
    """Import each file into a browser's device, new before the first.

    Return its answers and exports.
    """
    given = [{"content": json.dumps(one), "used": used, "settings": settings} for one in files]
    (answers,) = ask_node([("moving_taken", {"now": now.timestamp() * 1_000, "files": given})])
    return list(answers)


def take(device: Device, file: dict[str, Any], *, used: bool = False, settings: bool = True) -> None:
    device.moving.take_over(json.dumps(file).encode(), used=used, settings=settings)
