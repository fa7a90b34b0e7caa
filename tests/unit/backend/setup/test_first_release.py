"""The first release is prepared while the server serves. Oracle: a stand-in process that records its input."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine

from backend.db.engine import migrate, open_engine
from backend.news.followed_feeds import FollowedFeeds
from backend.news.pool import NewsPool
from backend.setup.first_release import FirstRelease
from protocol.own_feeds import Preparation
from tests.doubles.recall_world import items, settings_in

FEED = "https://courant.example/feed"
WORKS = """
import json, sys
def tell(*told): print(json.dumps(told), flush=True)
json.loads(sys.stdin.readline())
tell("step", "Exporting the first models"); tell("end")
assert sys.stdin.readline().strip() == "news"
tell("step", "Reading the headlines with BERT"); tell("done", 3, 5); tell("end")
"""
FAILS = """
import json, sys
print(json.dumps(["refused", "The disk is full."]), flush=True)
sys.exit(1)
"""


@dataclass
class Watched:
    """What was called, and when the status last changed."""

    engine: Engine
    folder: Path
    done: threading.Event = field(default_factory=threading.Event)

    def release(self, program: str) -> FirstRelease:
        return FirstRelease(settings_in(self.folder), self.engine, (sys.executable, "-c", program))


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    settings = settings_in(tmp_path)
    migrate(settings.database_url)
    engine = open_engine(settings.database_url)
    yield Watched(engine, tmp_path)
    engine.dispose()


def test_first_release_waits_for_stories_and_reports_completion(watched: Watched) -> None:
    first = watched.release(WORKS)
    assert first.status() == Preparation()
    first.start(watched.done.set)
    now = datetime.now(UTC)
    FollowedFeeds(watched.engine).add(FEED, now)
    NewsPool(watched.engine).add(items(3), source=FEED)
    assert not watched.done.is_set(), "the feed has not answered yet"
    FollowedFeeds(watched.engine).answered(FEED, at=now, due_at=now + timedelta(hours=1))
    assert watched.done.wait(60)
    assert first.status() is None
    first.stop()


def test_failed_first_release_is_reported_and_retried(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    first = watched.release(FAILS)
    failed = threading.Event()
    again = first._stopping.wait

    def waits(seconds: float) -> bool:
        if seconds > 1:
            failed.set()
        return again(seconds)

    monkeypatch.setattr(first._stopping, "wait", waits)
    first.start(watched.done.set)
    assert failed.wait(60)
    assert first.status() == Preparation(trouble="The disk is full.")
    first.stop()
    assert not watched.done.is_set()


def test_stopping_a_first_release_ends_its_process_at_once(watched: Watched) -> None:
    first = watched.release(WORKS)
    first.start(watched.done.set)
    first.stop()
    assert first._thread is not None
    assert not first._thread.is_alive()
    assert not watched.done.is_set()
