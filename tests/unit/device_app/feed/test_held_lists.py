"""A list stays the same until its reader refreshes it or it is old. Oracle: the lists that the test put in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from device_app.feed.held_lists import FOUND_KEPT, PREFERENCE, HeldLists
from device_app.stores import DeviceStores
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW, card

HOURS = 6.0


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[DeviceStores]:
    opened = DeviceStores(tmp_path / "device.sqlite")
    yield opened
    opened.close()


def test_list_survives_restarts_and_is_renewed_on_request_or_when_old(stores: DeviceStores) -> None:
    clock = StillClock()
    first, second = [card("a"), card("b")], [card("c"), card("b"), card("a")]
    stores.news.put_cards([*first, *second], clock())
    lists = HeldLists(stores, HOURS, clock)
    made_at = lists.hold("fresh", first).made_at
    clock.go_on(3_600)
    held = HeldLists(stores, HOURS, clock).hold("fresh", second)
    assert ([one.id for one in held.cards], held.new, held.made_at) == (["a", "b"], 1, made_at)
    assert [one.id for one in lists.hold("explore", second).cards] == ["c", "b", "a"], "each list for itself"
    lists.renew("fresh")
    assert [one.id for one in lists.hold("fresh", second).cards] == ["c", "b", "a"]
    assert lists.hold("fresh", second).new == 0
    clock.go_on(HOURS * 3_600 - 1)
    assert [one.id for one in lists.hold("fresh", first).cards] == ["c", "b", "a"]
    clock.go_on(1)
    assert [one.id for one in lists.hold("fresh", first).cards] == ["a", "b"]


def test_hidden_story_keeps_its_place_but_a_removed_one_does_not(stores: DeviceStores) -> None:
    clock = StillClock()
    stores.news.put_cards([card("a"), card("b")], clock())
    lists = HeldLists(stores, HOURS, clock)
    lists.hold("explore", [card("a"), card("b"), card("never-kept")])
    held = lists.hold("explore", [card("b")])
    assert ([one.id for one in held.cards], held.new) == (["a", "b"], 0)


def test_empty_list_is_not_kept_and_an_erase_drops_all_lists(stores: DeviceStores) -> None:
    lists, listed = HeldLists(stores, HOURS, StillClock()), [card("a")]
    stores.news.put_cards([*listed, card("b")], NOW)
    assert lists.hold("fresh", []).cards == ()
    assert list(lists.hold("fresh", listed).cards) == listed
    assert lists.hold("fresh", [card("b")]).new == 1
    stores.erase()
    assert list(lists.hold("following", listed).cards) == listed
    assert stores.preferences.rows() == []


@pytest.mark.parametrize("kept", [3, {"ids": ["a"]}, {"made_at": "yesterday", "ids": []}, {"made_at": 1, "ids": "a"}])
def test_unreadable_stored_list_is_made_again(stores: DeviceStores, kept: object) -> None:
    stores.preferences.set(PREFERENCE + "fresh", kept)
    held = HeldLists(stores, HOURS, StillClock()).hold("fresh", [card("b")])
    assert ([one.id for one in held.cards], held.new) == (["b"], 0)


def test_stories_new_since_the_previous_list_are_marked(stores: DeviceStores) -> None:
    clock = StillClock()
    stores.news.put_cards([card("a")], clock())
    lists = HeldLists(stores, HOURS, clock)
    assert lists.hold("topic/rail/ways", [card("a")]).came == frozenset(), "a first list has nothing new"
    clock.go_on(60)
    fresh = card("b").model_copy(update={"published_at": clock()})
    old = card("c").model_copy(update={"published_at": clock() - timedelta(days=3)})
    stores.news.put_cards([fresh, old], clock())
    assert lists.hold("topic/rail/ways", [fresh, old, card("a")]).came == frozenset(), "it holds still"
    lists.renew("topic/rail/ways")
    held = lists.hold("topic/rail/ways", [fresh, old, card("a")])
    assert held.came == {"b"}, "old news that arrives late is not new"
    assert HeldLists(stores, HOURS, clock).hold("topic/rail/ways", []).came == {"b"}, "over restarts"
    clock.go_on(HOURS * 3_600)
    assert lists.hold("topic/rail/ways", [fresh, card("a")]).came == frozenset()
    for name in ("", "topic/", "other/x", "fresh\n", "topic/" + "x" * 121):
        with pytest.raises(ValueError, match="name: "):
            lists.hold(name, [card("a")])
        with pytest.raises(ValueError, match="name: "):
            lists.renew(name)


def test_search_results_are_kept_for_hours_and_only_in_memory(stores: DeviceStores) -> None:
    clock = StillClock()
    lists = HeldLists(stores, HOURS, clock)
    first = lists.hold_found("old  harbour", ["a", "b"])
    assert (first.ids, first.new, first.made_at) == (("a", "b"), 0, clock())
    clock.go_on(60)
    again = lists.hold_found(" old harbour", ["c", "b", "a"])
    assert (again.ids, again.new, again.made_at) == (("a", "b"), 1, first.made_at)
    assert lists.hold_found("old harbour", ["d"], "near").ids == ("d",), "each part for itself"
    assert lists.hold_found("nothing", []).ids == ()
    assert lists.hold_found("nothing", ["e"]).ids == ("e",), "what found nothing is not held"
    assert HeldLists(stores, HOURS, clock).hold_found("old harbour", ["c"]).ids == ("c",), "not over a restart"
    assert "harbour" not in repr(vars(lists)), "and under a hash"
    lists.renew("search/old harbour")
    assert lists.hold_found("old harbour", ["c"]).ids == ("c",)
    assert lists.hold_found("old harbour", ["f"], "near").ids == ("f",)
    clock.go_on(HOURS * 3_600)
    assert lists.hold_found("old harbour", ["g"]).ids == ("g",)
    for number in range(FOUND_KEPT):
        lists.hold_found(f"other {number}", ["x"])
    assert lists.hold_found("old harbour", ["h"]).ids == ("h",), "the one used longest ago has gone"
    lists.forget()
    assert lists.hold_found("other 15", ["i"]).ids == ("i",)
    with pytest.raises(ValueError, match="name: "):
        lists.hold("search/words", [card("a")])
    with pytest.raises(ValueError, match="name: "):
        lists.renew("search/" + "x" * 201)
