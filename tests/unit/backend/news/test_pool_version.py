"""The log of changes, compared with the changes made to the pool, on both engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sqlalchemy import ColumnElement, Connection, Engine, delete, func, select, update
from sqlalchemy.orm import InstrumentedAttribute

from backend.db.engine import reading, writing
from backend.db.statements import T, among
from backend.db.tables import PoolChangeRow, PoolVersionRow
from backend.news import pool_version
from backend.news.item import NewsItem
from backend.news.pool import NEWS_LIFETIME, NewsPool
from backend.news.pool_version import changed_since

STORM = "The storm reached the coast of Jutland on Monday morning with strong winds and heavy rain"
MakeItem = Callable[..., NewsItem]


def changed_rows(pool: NewsPool, since: int) -> list[int] | None:
    with reading(pool._engine) as connection:
        found = changed_since(connection, since)
    return None if found is None else found.tolist()


def numbers(pool: NewsPool, now: datetime) -> dict[str, int]:
    return {row.id: row.number for row in pool.live(now)}


def test_changes_since_a_version_are_exactly_the_changed_rows(pool: NewsPool, item: MakeItem, now: datetime) -> None:
    old = {"minutes_old": NEWS_LIFETIME / timedelta(minutes=1) - 30}
    pool.add([item("a"), item("b"), item("old", STORM, **old), item("copy", STORM)], source="test")
    number = numbers(pool, now)
    start = pool.version()
    assert changed_rows(pool, start) == []
    pool.add([item("b", "Other words"), item("a")], source="test")
    assert changed_rows(pool, start) == [number["b"]], "a is as it was"
    pool.store_vectors("e", ["a"], np.ones((1, 4), dtype=np.float32))
    assert changed_rows(pool, start) == sorted([number["a"], number["b"]])
    at = pool.version()
    pool.expire(now + timedelta(hours=1))
    assert changed_rows(pool, at) == sorted([number["old"], number["copy"]]), "the copy stands for itself now"
    at = pool.version()
    pool.take_down("copy")
    assert changed_rows(pool, at) == [number["copy"]]
    pool.add([item("new", STORM)], source="test")
    assert changed_rows(pool, pool.version()) == []


def test_copy_of_a_removed_original_is_reported(pool: NewsPool, item: MakeItem, now: datetime) -> None:
    pool.add([item("first", STORM), item("copy", STORM), item("other")], source="test")
    number, at = numbers(pool, now), pool.version()
    pool.take_down("first")
    assert changed_rows(pool, at) == sorted([number["first"], number["copy"]])


def test_limited_number_of_versions_is_kept_and_older_ones_report_nothing(
    pool: NewsPool, item: MakeItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_version, "VERSIONS_KEPT", 6)  # of half a step each, and here all steps are whole
    monkeypatch.setattr("backend.news.pool_version.secrets.randbelow", lambda step: step - 1)
    versions = [pool.version()]
    for name in "abcde":
        pool.add([item(name)], source="test")
        versions.append(pool.version())
    assert changed_rows(pool, versions[1]) is None
    assert changed_rows(pool, versions[2]) is not None
    with reading(pool._engine) as connection:
        assert connection.execute(select(func.count()).select_from(PoolChangeRow)).scalar_one() == 3
    assert changed_rows(pool, pool.version() + 1) is None, "an earlier database: it was restored"


def test_restored_database_does_not_hide_changes_from_readers_of_a_lost_version(
    engine: Engine, pool: NewsPool, item: MakeItem
) -> None:
    """PostgreSQL is restored, or a replica takes over, while a server continues with what it has read.

    Regression: the database grew past that server's version, and its changes up to there were never reported.
    """
    pool.add([item("a")], source="test")
    states = PoolVersionRow.version, PoolVersionRow.noted_from
    with reading(engine) as connection:
        version, since = connection.execute(select(*states)).one()
    pool.add([item("lost")], source="test")
    held = pool.version()
    pool.take_down("lost")
    with writing(engine) as connection:
        connection.execute(update(PoolVersionRow).values(version=version, noted_from=since))
        connection.execute(delete(PoolChangeRow).where(PoolChangeRow.version > version))
    while pool.version() <= held:
        pool.add([item(f"n{pool.version()}")], source="test")
        assert pool.version() != held
    assert changed_rows(pool, held) is None
    pool.add([item("last")], source="test")
    assert changed_rows(pool, held) is None


def test_too_many_changes_are_not_reported(
    engine: Engine, pool: NewsPool, item: MakeItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_version, "CHANGES_LIMIT", 3)
    start = pool.version()
    pool.add([item("a"), item("b")], source="test")
    at = pool.version()
    pool.add([item("c")], source="test")
    assert len(changed_rows(pool, start) or ()) == 3
    pool.add([item("d")], source="test")
    assert changed_rows(pool, start) is None
    assert len(changed_rows(pool, at) or ()) == 2


def test_oversized_version_is_not_recorded(
    engine: Engine, pool: NewsPool, item: MakeItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_version, "CHANGES_LIMIT", 3)
    pool.add([item("a")], source="test")
    before = pool.version()
    pool.add([item(name) for name in "bcde"], source="test")
    with reading(engine) as connection:
        assert not connection.execute(select(func.count()).select_from(PoolChangeRow)).scalar_one()
    after = pool.version()
    assert changed_rows(pool, before) is None
    assert changed_rows(pool, after) == []
    pool.add([item("f")], source="test")
    assert changed_rows(pool, after) == [numbers(pool, datetime(2026, 11, 20, 12, tzinfo=UTC))["f"]]


def test_articles_without_a_vector_are_found_among_the_changes(pool: NewsPool, item: MakeItem) -> None:
    pool.add([item("a"), item("b")], source="test")
    at = pool.version()
    assert pool.missing_vectors("e", since=at) == [], "whoever asks so knows that none were without"
    pool.add([item("c"), item("b", "Other words")], source="test")
    assert [row.id for row in pool.missing_vectors("e", since=at)] == ["b", "c"]
    pool.store_vectors("e", ["b"], np.ones((1, 4), dtype=np.float32))
    assert [row.id for row in pool.missing_vectors("e", since=at)] == ["c"]


def test_many_changes_are_read_in_parts(pool: NewsPool, item: MakeItem, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def watched(connection: Connection, column: InstrumentedAttribute[T], values: Iterable[T]) -> ColumnElement[bool]:
        values = list(values)
        asked.append(len(values))
        return among(connection, column, values)

    at = pool.version()
    pool.add([item(f"n{row:03}") for row in range(250)], source="test")
    monkeypatch.setattr("backend.news.pool.among", watched)
    monkeypatch.setattr("backend.news.pool.ROWS_PER_FETCH", 100, raising=False)
    assert [row.id for row in pool.missing_vectors("e", since=at)] == [f"n{row:03}" for row in range(250)]
    assert asked == [100, 100, 50]
