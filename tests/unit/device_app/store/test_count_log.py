"""Each display and click is contributed to one count window only. Oracle: what was recorded when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from device_app.store.participations import CountWindow, PaidCount
from device_app.stores import DeviceStores
from tests.doubles.news import NOW

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[DeviceStores]:
    stores = DeviceStores(tmp_path / "device.sqlite")
    yield stores
    stores.close()


def take(stores: DeviceStores, window: CountWindow, name: str) -> None:
    taken = PaidCount(name, window.since, window.until, len(window.displayed), len(window.clicked))
    stores.counted.take(taken)


def test_count_window_holds_displayed_feeds_and_their_clicks(stores: DeviceStores) -> None:
    stores.impressions.record("old", ["z"], NOW - 2 * DAY)
    stores.clicks.add("z", "old", NOW - 30 * MINUTE)  # an old feed, opened again
    stores.impressions.record("f", ["a", "b"], NOW - 60 * MINUTE)
    stores.clicks.add("a", "f", NOW - 59 * MINUTE)
    stores.clicks.add("a", None, NOW - 20 * MINUTE)  # found by searching
    stores.clicks.add("s", None, NOW - 20 * MINUTE)
    window = stores.counted.window(NOW, DAY)
    assert (window.since, window.until) == (NOW - DAY, NOW)
    assert (window.displayed, window.clicked) == (frozenset("ab"), frozenset("az"))


def test_counted_events_are_left_out_of_later_windows_and_new_events_are_not(stores: DeviceStores) -> None:
    stores.impressions.record("f", ["a", "b"], NOW)
    take(stores, stores.counted.window(NOW, DAY), "round-1")
    again = stores.counted.window(NOW + MINUTE, DAY)
    assert (again.since, again.displayed, again.clicked) == (NOW, frozenset(), frozenset())
    stores.clicks.add("a", "f", NOW + MINUTE)  # a late click on what was displayed before
    stores.impressions.record("g", ["b", "c"], NOW + MINUTE)
    later = stores.counted.window(NOW + MINUTE, DAY)
    assert (later.displayed, later.clicked) == (frozenset("bc"), frozenset("a"))
    take(stores, later, "round-2")
    assert [one.round for one in stores.counted.list()] == ["round-2", "round-1"]
    assert stores.counted.list()[0].displayed == 2


def test_overlapping_count_window_is_refused_and_its_payment_undone(stores: DeviceStores) -> None:
    window = stores.counted.window(NOW, DAY)
    take(stores, window, "round-1")

    def pay() -> None:
        with stores.database.transaction():
            stores.preferences.set("paid", True)
            take(stores, window, "round-2")

    with pytest.raises(ValueError, match="was already counted"):
        pay()
    assert stores.preferences.get("paid") is None
    assert len(stores.counted.list()) == 1


def test_clock_set_back_contributes_nothing_twice(stores: DeviceStores) -> None:
    stores.impressions.record("f", ["a"], NOW)
    take(stores, stores.counted.window(NOW, DAY), "round-1")
    back = stores.counted.window(NOW - 60 * MINUTE, DAY)
    assert (back.displayed, back.since) == (frozenset(), NOW)


def test_erase_deletes_counted_events_with_the_reading(stores: DeviceStores) -> None:
    stores.impressions.record("f", ["a"], NOW)
    take(stores, stores.counted.window(NOW, DAY), "round-1")
    stores.erase()
    window = stores.counted.window(NOW, DAY)
    assert (stores.counted.list(), window.displayed) == ([], frozenset())


def test_popularity_is_stored_with_displays_and_read_as_of_a_time(stores: DeviceStores) -> None:
    stores.impressions.record("f", ["a", "b"], NOW, [0.5, -0.25])
    stores.impressions.record("g", ["a", "c"], NOW + MINUTE, [0.75, 0.0])
    stores.impressions.record("h", ["b"], NOW + 2 * MINUTE)  # a feed from before anything was counted
    read = stores.impressions.popularity_at
    assert read(["a", "b", "c", "d"], NOW) == {"a": 0.5, "b": -0.25}
    assert read(["a", "b", "c", "d"], NOW + 5 * MINUTE) == {"a": 0.75, "b": -0.25, "c": 0.0}
    assert read(["a"], NOW - MINUTE) == {}
