"""A stored feed that can't be read is made again. The attack: a server's timing of 400 digits, stored as null."""

from __future__ import annotations

import json

from device_app.device import Device
from protocol.server_timing import parse_server_timing
from tests.doubles.clock import StillClock
from tests.doubles.journey import Make
from tests.doubles.new_page import new_page


def break_feeds(device: Device) -> None:
    """Store the feeds as the version that accepted such a header did."""
    database = device.parts.stores.database
    with database.transaction():
        for feed_id, content in database.rows("SELECT feed_id, content FROM feed"):
            broken = json.dumps(json.loads(content) | {"server_ms": {"decode": None}})
            database.write("UPDATE feed SET content = ? WHERE feed_id = ?", (broken, feed_id))


def test_server_timing_beyond_a_day_is_left_out() -> None:
    header = f"decode;dur={'9' * 400}, merge;dur=86400001, search;dur=1.5"
    assert parse_server_timing(header) == {"search": 1.5}


def test_unreadable_page_is_made_again(make: Make) -> None:
    device = make()
    before = device.reading.feed()
    break_feeds(device)
    again = make()
    page = again.reading.feed()
    assert page.feed_id != before.feed_id
    assert page.items
    assert again.reading.page(before.feed_id) is None
    assert make().reading.feed().feed_id == page.feed_id, "the one made again is kept"


def test_deleting_a_click_removes_unreadable_feeds(make: Make, clock: StillClock) -> None:
    device = make()
    first = device.reading.feed()
    for item in first.items[:6]:
        clock.go_on(30)
        device.reading.open(item.card.id, first.feed_id)
    page = new_page(device)
    named = next(card.id for item in page.items for card in item.reason.clicks)
    break_feeds(device)
    again = make()
    database = again.parts.stores.database
    again.library.delete_click(database.number("SELECT id FROM click WHERE news_id = ?", (named,)))
    assert database.number("SELECT count(*) FROM click WHERE news_id = ?", (named,)) == 0
    assert not any(named in str(content) for (content,) in database.rows("SELECT content FROM feed"))
