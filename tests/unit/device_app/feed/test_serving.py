"""The current page stays until its reader refreshes it, or it is hours old."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import count
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

import device_app.feed.serving as serving_module
from device_app.errors import BackendUnreachable, DeviceError
from device_app.feed.item import Feed, FeedItem, Reason
from device_app.feed.serving import Serving
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW, card

HOURS = 6.0
AWAY = BackendUnreachable("http://backend", "ConnectError")


class FeedsInMemory:
    """Keeps feeds in memory, where a device has them on disk."""

    def __init__(self) -> None:
        self.feeds: list[Feed] = []

    def last(self) -> Feed | None:
        return self.feeds[-1] if self.feeds else None

    def offline(self, trouble: DeviceError) -> Feed:
        return replace(self.feeds[-1], mode="offline", notice=str(trouble))

    def feed(self, feed_id: str) -> Feed | None:
        return next((feed for feed in self.feeds if feed.feed_id == feed_id), None)


class ServingRig:
    """Serving over feeds that are numbered in the order they were built."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.kept, self.mode, self.items = StillClock(NOW), FeedsInMemory(), "personal", 3
        self._numbers = count(1)
        monkeypatch.setattr(serving_module, "build_feed", lambda *_: self.build())
        self.serving = self.start()

    def start(self) -> Serving:
        context: Any = SimpleNamespace(
            clock=self.clock,
            kept=self.kept,
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
            self.kept.feeds.append(feed)
        return feed

    def shown(self, *, refresh: bool = False) -> str:
        return self.serving.feed(refresh=refresh).feed_id


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> ServingRig:
    return ServingRig(monkeypatch)


def test_reader_actions_change_no_page_until_a_refresh(rig: ServingRig) -> None:
    assert rig.shown() == "feed-1"
    rig.serving.changed()
    assert rig.shown() == "feed-1"
    assert rig.serving.changed_since()
    assert rig.shown(refresh=True) == "feed-2"
    assert not rig.serving.changed_since()


def test_page_is_rebuilt_after_six_hours_and_not_earlier(rig: ServingRig) -> None:
    rig.shown()
    rig.clock.go_on(HOURS * 3_600 - 1)
    assert rig.shown() == "feed-1"
    rig.clock.go_on(1)
    assert rig.shown() == "feed-2"


def test_page_dated_far_in_the_future_is_ignored(rig: ServingRig) -> None:
    rig.shown()
    rig.clock.go_on(-timedelta(days=3).total_seconds())
    assert rig.shown() == "feed-2"


def test_page_survives_a_restart_whole(rig: ServingRig) -> None:
    before = rig.serving.feed(refresh=False)
    rig.serving = rig.start()
    assert rig.serving.feed(refresh=False) is before
    assert rig.serving.page("feed-1") is before
    assert rig.serving.page("feed-9") is None


def test_empty_page_is_retried_at_each_visit(rig: ServingRig) -> None:
    rig.items = 0
    assert [rig.shown(), rig.shown()] == ["feed-1", "feed-2"]


def test_refresh_while_offline_shows_the_last_page_with_a_notice(
    rig: ServingRig,
) -> None:
    rig.shown()
    assert rig.serving.online()
    rig.serving.unreachable(AWAY)
    assert not rig.serving.online()
    assert rig.serving.feed(refresh=False).mode == "personal", "nobody has asked for another"
    made = rig.serving.feed(refresh=True)
    assert (made.feed_id, made.mode) == ("feed-1", "offline")
    assert rig.serving.feed(refresh=False).mode == "offline"
    rig.serving.reached()
    assert rig.serving.online()
    assert rig.serving.feed(refresh=False).mode == "personal", "nor does the front page say that it is gone"
    assert rig.shown(refresh=True) == "feed-2"


def test_first_page_is_made_offline_from_local_articles(rig: ServingRig) -> None:
    rig.serving.unreachable(AWAY)
    assert rig.shown() == "feed-1"


def test_change_made_while_a_feed_is_built_is_offered_afterwards(
    rig: ServingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Feed:
        rig.serving.changed()
        return rig.build()

    monkeypatch.setattr(serving_module, "build_feed", interrupted)
    rig.shown()
    assert rig.serving.changed_since(), "the feed may have been built from what was there before"


def test_erase_leaves_no_feed_in_memory(rig: ServingRig) -> None:
    rig.shown()
    with rig.serving.erasing():
        rig.kept.feeds.clear()
    assert rig.serving.last() is None
    assert rig.shown() == "feed-2"


def test_feed_loaded_during_an_erase_is_not_kept(rig: ServingRig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.shown()
    rig.serving = rig.start()
    read, reading = rig.kept.last, Event()

    def slowly() -> Feed | None:
        feed = read()
        reading.set()
        eraser.join(0.2)  # as long as nothing holds the eraser up, it is through by now
        return feed

    def erase() -> None:
        assert reading.wait(60)
        with rig.serving.erasing():
            rig.kept.feeds.clear()

    monkeypatch.setattr(rig.kept, "last", slowly)
    eraser = Thread(target=erase)
    eraser.start()
    rig.serving.last()
    eraser.join(60)
    assert not eraser.is_alive()
    monkeypatch.undo()
    assert rig.serving.last() is None
