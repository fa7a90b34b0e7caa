"""The page in use: it holds still until its reader asks for another, or it is hours old."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

import device_app.feed.serving as serving_module
from device_app.feed.item import Feed, FeedItem, Reason
from device_app.feed.serving import Serving
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW, card

HOURS = 6.0


class Shelf:
    """Feeds in memory, where a device has them on its disk."""

    def __init__(self) -> None:
        self.feeds: list[Feed] = []

    def last(self) -> Feed | None:
        return self.feeds[-1] if self.feeds else None

    def feed(self, feed_id: str) -> Feed | None:
        return next((feed for feed in self.feeds if feed.feed_id == feed_id), None)


class Desk:
    """A serving over feeds that are numbered in the order they were built."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.shelf, self.mode, self.items = StillClock(NOW), Shelf(), "personal", 3
        self._numbers = count(1)
        monkeypatch.setattr(serving_module, "build_feed", lambda *_: self.build())
        self.serving = self.start()

    def start(self) -> Serving:
        context: Any = SimpleNamespace(
            clock=self.clock,
            kept=self.shelf,
            weights=SimpleNamespace(page_hours=HOURS),
            recall=SimpleNamespace(forget=lambda: None),
            user_preferences=SimpleNamespace(forget=lambda: None),
        )
        made: Any = Serving(context, SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
        made._models = SimpleNamespace()
        return made

    def build(self) -> Feed:
        items = tuple(FeedItem(card(f"n{at}"), at, "for_you", Reason("editors", ""), 0.0) for at in range(self.items))
        feed = Feed(f"feed-{next(self._numbers)}", self.clock(), "r1", items, self.mode)  # type: ignore[arg-type]
        if self.mode != "offline":
            self.shelf.feeds.append(feed)
        return feed

    def shown(self, *, refresh: bool = False) -> str:
        return self.serving.feed(refresh=refresh).feed_id


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


def test_what_the_reader_does_changes_no_page_until_another_is_asked_for(desk: Desk) -> None:
    assert desk.shown() == "feed-1"
    desk.serving.changed()
    assert desk.shown() == "feed-1"
    assert desk.serving.told_since()
    assert desk.shown(refresh=True) == "feed-2"
    assert not desk.serving.told_since()


def test_a_page_is_made_anew_when_it_is_six_hours_old_and_not_before(desk: Desk) -> None:
    desk.shown()
    desk.clock.go_on(HOURS * 3_600 - 1)
    assert desk.shown() == "feed-1"
    desk.clock.go_on(1)
    assert desk.shown() == "feed-2"


def test_a_page_from_far_ahead_of_the_clock_is_none(desk: Desk) -> None:
    desk.shown()
    desk.clock.go_on(-timedelta(days=3).total_seconds())
    assert desk.shown() == "feed-2"


def test_a_page_survives_a_restart_whole(desk: Desk) -> None:
    before = desk.serving.feed(refresh=False)
    desk.serving = desk.start()
    assert desk.serving.feed(refresh=False) is before
    assert desk.serving.page("feed-1") is before
    assert desk.serving.page("feed-9") is None


def test_a_page_without_stories_is_tried_again_at_each_visit(desk: Desk) -> None:
    desk.items = 0
    assert [desk.shown(), desk.shown()] == ["feed-1", "feed-2"]


def test_what_can_not_be_made_is_told_for_a_while_and_takes_no_page_away(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("device_app.feed.serving.time.monotonic", lambda: now[0])
    desk.shown()
    desk.mode = "offline"
    assert desk.serving.feed(refresh=True).mode == "offline"
    assert desk.serving.feed(refresh=False).mode == "offline"
    now[0] += serving_module.OFFLINE_RETRY_SEC
    assert desk.shown() == "feed-1"


def test_a_change_while_a_feed_is_built_is_offered_afterwards(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> Feed:
        desk.serving.changed()
        return desk.build()

    monkeypatch.setattr(serving_module, "build_feed", interrupted)
    desk.shown()
    assert desk.serving.told_since(), "the feed may have been built from what was there before"


def test_what_is_erased_leaves_no_feed_in_memory(desk: Desk) -> None:
    desk.shown()
    with desk.serving.erasing():
        desk.shelf.feeds.clear()
    assert desk.serving.last() is None
    assert desk.shown() == "feed-2"
