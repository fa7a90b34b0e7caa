"""A reader of their own feeds points the same folder at a publisher's backend. Oracle: what was read before, and the
requests that each backend in memory got."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from device_app.composition import build_device
from device_app.device import Device
from device_app.errors import ReleaseRefused
from device_app.settings import DeviceSettings
from tests.doubles.backend import FakeBackend
from tests.doubles.news import synthetic_pool


def device_of(folder: Path, backend: FakeBackend, **settings: object) -> Device:
    made = DeviceSettings(data_dir=folder, **settings)  # type: ignore[arg-type]
    return build_device(made, transport=backend.transport(), chance=random.Random(1))


def read_own(folder: Path) -> tuple[FakeBackend, list[str]]:
    """Some reading of own feeds; the ids that were opened, the last one saved."""
    own = FakeBackend(pool_codes=True)
    device = device_of(folder, own, own_feeds=True)
    device.choose_sections(("section2",))
    opened = [item.card.id for item in device.feed(refresh=True).items[:5]]
    for news_id in opened:
        device.open(news_id)
    device.react(opened[-1], "save")
    device.close()
    return own, opened


@pytest.fixture
def publisher() -> FakeBackend:
    """Other news under another key and another encoder."""
    pool = synthetic_pool(seed=9)
    theirs = tuple(card.model_copy(update={"id": f"publisher:{card.id}"}) for card in pool.cards)
    return FakeBackend(pool=replace(pool, cards=theirs), encoder="f" * 64)


def test_the_reading_is_kept_and_nothing_is_reported_until_the_reader_says_so(
    tmp_path: Path, publisher: FakeBackend
) -> None:
    own, opened = read_own(tmp_path)
    assert not [path for method, path, _ in own.requests if path.startswith("/v1/recall")]
    assert publisher.key is not None
    key = publisher.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    device = device_of(tmp_path, publisher, backend_key=key)
    device.sync()
    page = device.feed(refresh=True)
    assert page.items
    assert {item.card.id for item in page.items} <= {card.id for card in publisher.pool.cards}
    assert [entry.news_id for entry in device.history().entries] == opened[::-1]
    assert [card.id for card in device.saved()] == opened[-1:]
    assert device.status().chosen_sections == ("section2",)
    kept = device.privacy().settings
    assert (kept.mode, kept.counting, kept.training) == ("broadcast", False, False)
    for item in page.items[:4]:
        device.open(item.card.id)
    device.feed(refresh=True)
    assert not [path for method, path, _ in publisher.requests if path.startswith("/v1/recall")]
    device.set_privacy(mode="code")
    device.feed(refresh=True)
    assert [path for method, path, _ in publisher.requests if path.startswith("/v1/recall")], "now it may"
    device.close()


def test_without_the_publishers_key_its_releases_are_refused(tmp_path: Path, publisher: FakeBackend) -> None:
    read_own(tmp_path)
    device = device_of(tmp_path, publisher)
    with pytest.raises(ReleaseRefused):
        device.sync()
    assert device.status().shield == "red"
    device.close()
