"""Publishers that seldom publish get a lift. Oracle: rates counted by hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from device_app.feed.candidates import Candidates
from device_app.feed.rare import RareFeeds
from device_app.store.preferences import RARE_FIRST
from device_app.stores import DeviceStores
from protocol.news import NewsCard

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def card(publisher: str, number: int, days: float) -> NewsCard:
    return NewsCard(
        id=f"{publisher}{number}", title="A title", abstract="", url="", publisher=publisher, section="sea",
        topic="ports", published_at=NOW - timedelta(days=days), weight=0.5,
    )  # fmt: skip


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[DeviceStores]:
    """Three publishers with 40, four and one story a week, over eight weeks."""
    made = DeviceStores(tmp_path / "device.sqlite")
    wire = [card("Wire", at, at * 7 / 40) for at in range(320)]
    paper = [card("Paper", at, at * 7 / 4) for at in range(32)]
    essays = [card("Essays", at, 7.0 * at) for at in range(8)]
    made.news.put_cards([*wire, *paper, *essays], NOW)
    yield made
    made.close()


def lifts(stores: DeviceStores, pool: object = True) -> list[float]:
    cards = (card("Essays", 0, 0), card("Paper", 0, 0), card("Wire", 0, 0), card("Essays", 1, 7))
    rare = RareFeeds(stores.articles, SimpleNamespace(current=lambda: pool), stores.preferences)  # type: ignore[arg-type]
    return rare.of(Candidates(cards, np.zeros((4, 1), np.float32), "e"), NOW).tolist()


def test_lift_is_higher_for_rarer_publishers_and_halves_with_age(stores: DeviceStores) -> None:
    assert lifts(stores) == pytest.approx([1.0, 0.5, 0.0, 0.5], abs=0.02)


def test_lift_for_rare_publishers_needs_a_pool_copy_and_the_readers_consent(stores: DeviceStores) -> None:
    assert lifts(stores, pool=None) == [0.0] * 4
    stores.preferences.set(RARE_FIRST, False)
    assert lifts(stores) == [0.0] * 4
