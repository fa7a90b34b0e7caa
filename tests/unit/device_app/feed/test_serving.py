"""The feed in use: what the reader did while it was built makes it stale, at whatever moment."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

import device_app.feed.serving as serving_module
from device_app.feed.serving import Serving


@pytest.fixture(autouse=True)
def _counted_feeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Feeds are numbers here: how many were built before."""
    numbers = count()
    monkeypatch.setattr(serving_module, "build_feed", lambda *_: SimpleNamespace(mode="fresh", number=next(numbers)))


class ChangedAsItIsKept(Serving):
    """Another thread's `changed()` comes at the last moment: when a feed is about to be kept as the one in use."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_current" and value is not None and vars(self).pop("changes", False):
            self.changed()
        super().__setattr__(name, value)


def serving(kind: type[Serving] = Serving) -> Any:
    context: Any = SimpleNamespace(performance=SimpleNamespace(recall_max_age_sec=3_600.0))
    made: Any = kind(context, SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
    made._models = SimpleNamespace()
    return made


def test_a_feed_is_served_again_until_the_reader_does_something() -> None:
    mine = serving()
    assert [mine.feed(refresh=False).number for _ in range(2)] == [0, 0]
    mine.changed()
    assert mine.feed(refresh=False).number == 1
    assert mine.feed(refresh=True).number == 2


def test_a_change_in_the_moment_a_feed_is_kept_is_not_lost() -> None:
    mine = serving(ChangedAsItIsKept)
    mine.changes = True
    assert mine.feed(refresh=False).number == 0
    assert mine.feed(refresh=False).number == 1, "the feed of before the change was kept"


def test_what_is_erased_leaves_no_feed_in_memory() -> None:
    mine = serving()
    mine.feed_context.recall = mine.feed_context.user_preferences = SimpleNamespace(forget=lambda: None)
    mine.feed(refresh=False)
    mine.erased()
    assert mine._current is None
    assert mine._last is None
