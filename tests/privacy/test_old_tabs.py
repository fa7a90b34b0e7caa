"""A page that stayed open while its reader erased everything, and pages with ids that no feed of this device has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.doubles.journey import Make
from tests.unit.device_app.journeys.conftest import backend, clock, make

__all__ = ["backend", "clock", "make"]


def test_actions_on_a_page_opened_before_an_erase_store_nothing_about_its_feed(make: Make, tmp_path: Path) -> None:
    device = make()
    page = device.reading.feed()
    news = [item.card.id for item in page.items]
    device.reading.view(page.feed_id, news[:1])
    device.reading.open(news[1], page.feed_id)
    device.privacy.erase()
    assert device.parts.viewing._watched == {}
    assert device.reading.view(page.feed_id, news) == 0
    device.reading.feed()
    device.reading.open(news[2], page.feed_id)
    assert device.parts.viewing._watched == {}
    assert page.feed_id not in json.dumps(device.privacy.export(), default=str)
    assert [file for file in tmp_path.rglob("*") if file.is_file() and page.feed_id.encode() in file.read_bytes()] == []


@pytest.mark.parametrize("feed_id", ["never-made", "x" * 80])
def test_click_with_an_unknown_feed_id_is_stored_without_a_feed(make: Make, feed_id: str) -> None:
    device = make()
    story = device.reading.open(device.reading.feed().items[0].card.id, feed_id)
    assert story.feed_id is None
    assert [click.feed_id for click in device.parts.stores.clicks.recent()] == [""]
    assert feed_id not in json.dumps(device.privacy.export(), default=str)
