"""The updater: new articles appear, expired ones go, and no failure takes the serving catalogue away."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.db.engine import open_engine
from backend.errors import BackendSettingsRefused
from backend.news.pool import NewsPool
from backend.news.pool_reading import PoolRow
from backend.popularity.estimate import NoisyCounts
from backend.recall import catalogue_updater, encoder_takeover
from backend.recall.catalogue import Catalogue, LiveCatalogue, build_catalogue
from backend.recall.catalogue_updater import CatalogueUpdater
from backend.recall.indexes.selection import IndexRules
from backend.recall.indexes.store import IndexStore
from backend.recall.served_releases import ServedReleases
from backend.releases.store import ReleaseStore
from backend.storage.object_store import LocalFolder
from tests.doubles.recall_world import ENCODER, clustered_vectors, fill, indexes_in, items, publish, settings_in


class RandomTitles:
    """An encoder with random vectors that counts its calls."""

    def __init__(self, digest: str = ENCODER) -> None:
        self.digest = digest
        self.encoded: list[str] = []

    def encode(self, titles: Sequence[str]) -> NDArray[np.float32]:
        self.encoded += titles
        return clustered_vectors(len(titles), seed=len(self.encoded))

    def encode_news(self, news: Sequence[PoolRow]) -> NDArray[np.float32]:
        return self.encode([each.title for each in news])


class UpdatedCatalogue:
    """A pool of 50 articles with vectors, one release, and an updater that the test steps."""

    def __init__(self, folder: Path, open_encoder: Callable[[], Any], *, release: bool = True) -> None:
        settings = settings_in(folder)
        fill(settings, 50)
        if release:
            publish(settings)
        engine = open_engine(settings.database_url)
        self.now = datetime.now(UTC)
        self.pool = NewsPool(engine, clock=lambda: self.now)
        served = ServedReleases(ReleaseStore.open(engine, settings), answered=5)
        self.live = LiveCatalogue(build_catalogue(self.pool, ENCODER, self.now, indexes_in(settings)))
        self.updater = CatalogueUpdater(
            self.pool,
            served,
            self.live,
            open_encoder,
            indexes_in(settings),
            IndexRules(),
            poll_sec=0.02,
            expire_every_sec=1e-9,
            clock=lambda: self.now,
        )


def test_unchanged_pool_keeps_its_catalogue(tmp_path: Path) -> None:
    world = UpdatedCatalogue(tmp_path, RandomTitles)
    before = world.live.current
    assert world.updater.step() is False
    assert world.live.current is before


def test_new_articles_are_embedded_in_batches_and_appear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_takeover, "TITLES_AT_ONCE", 10)
    encoder = RandomTitles()
    world = UpdatedCatalogue(tmp_path, lambda: encoder)
    world.pool.add(items(25, first=100), source="test")
    assert [world.updater.step() for _ in range(4)] == [True, True, False, False]
    assert len(world.live.current) == 75
    assert encoder.encoded == [item.title for item in items(25, first=100)]


def test_catalogue_is_not_rebuilt_soon_after_a_long_build_while_titles_are_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build takes 24 s of processor here, and the catalogue then stays for 12."""
    now, processor = [100.0], [0.0]
    clocks = SimpleNamespace(monotonic=lambda: now[0], thread_time=lambda: processor[0])
    monkeypatch.setattr(catalogue_updater, "time", clocks)

    def long(*given: Any, **how: Any) -> Catalogue:
        processor[0] += 24.0
        return build_catalogue(*given, **how)

    monkeypatch.setattr(catalogue_updater, "build_catalogue", long)
    monkeypatch.setattr(encoder_takeover, "TITLES_AT_ONCE", 10)
    encoder = RandomTitles()
    world = UpdatedCatalogue(tmp_path, lambda: encoder)
    world.pool.add(items(25, first=100), source="test")
    assert [world.updater.step() for _ in range(3)] == [True, True, False]
    assert (len(encoder.encoded), len(world.live.current)) == (25, 60), "the catalogue is as it was before the rest"
    now[0] += 11.9
    assert (world.updater.step(), len(world.live.current)) == (False, 60)
    now[0] += 0.2
    assert (world.updater.step(), len(world.live.current)) == (False, 75)
    world.pool.take_down("n0")
    world.updater.step()
    assert len(world.live.current) == 75
    now[0] += 12.1
    world.updater.step()
    assert len(world.live.current) == 74


def test_a_catalogue_is_shown_between_two_lots_of_stories_that_are_sorted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = UpdatedCatalogue(tmp_path, RandomTitles)
    shown, left = [], [2, 2, 0]

    def sort(digest: str, encoder: object) -> int:
        shown.append(len(world.live.current))
        return left.pop(0)

    monkeypatch.setattr(world.updater, "_sort", sort)
    before = len(world.live.current)
    world.pool.add(items(3, first=100), source="test")
    assert [world.updater.step() for _ in range(4)] == [True, True, False, False]
    assert shown == [before, before + 3, before + 3], "sorted three times, until none was left"


def test_grown_catalogue_is_left_out_of_garbage_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen_sizes: list[int] = []
    world = UpdatedCatalogue(tmp_path, RandomTitles)
    collector = SimpleNamespace(freeze=lambda: frozen_sizes.append(len(world.live.current)))
    monkeypatch.setattr(catalogue_updater, "gc", collector)
    for size in (51, 55, 63, 64, 80, 81):
        world.pool.add(items(size - len(world.live.current), first=1_000 * size), source="test")
        while world.updater.step():
            pass
        assert len(world.live.current) == size
    assert frozen_sizes == [51, 64, 81], "whenever it has grown by more than a quarter"


def test_titles_left_by_a_killed_run_are_embedded(tmp_path: Path) -> None:
    world = UpdatedCatalogue(tmp_path, RandomTitles)
    world.pool.add(items(3, first=100), source="test")
    world.live.swap(build_catalogue(world.pool, ENCODER, world.now, IndexStore(LocalFolder(tmp_path / "index"))))
    assert world.live.current.without_vector == 3
    world.updater.step()
    assert len(world.live.current) == 53


def test_expired_articles_are_removed(tmp_path: Path) -> None:
    world = UpdatedCatalogue(tmp_path, RandomTitles)
    world.now += timedelta(days=40)
    world.updater.step()
    assert len(world.live.current) == 0


def test_missing_encoder_is_logged_once_and_other_changes_still_apply(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def missing() -> RandomTitles:
        raise BackendSettingsRefused("There is no encoder.")

    world = UpdatedCatalogue(tmp_path, missing)
    world.pool.add(items(3, first=100), source="test")
    world.pool.take_down("n0")
    world.updater.step()
    world.updater.step()
    assert len(world.live.current) == 49
    assert caplog.text.count("There is no encoder.") == 1


def test_encoder_with_another_digest_embeds_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = RandomTitles("another")
    world = UpdatedCatalogue(tmp_path, lambda: other)
    world.pool.add(items(3, first=100), source="test")
    world.updater.step()
    assert other.encoded == []
    assert "the prepared encoder is another" in caplog.text


def test_before_the_first_release_the_updater_is_idle(tmp_path: Path) -> None:
    world = UpdatedCatalogue(tmp_path, RandomTitles, release=False)
    assert world.updater.step() is False


def test_updater_thread_survives_a_failure_and_stops_promptly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = UpdatedCatalogue(tmp_path, RandomTitles)
    version, calls = world.pool.version, []

    def failing_first() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("disk on fire")
        return version()

    monkeypatch.setattr(world.pool, "version", failing_first)
    world.updater.start()
    world.pool.add(items(5, first=100), source="test")
    deadline = time.monotonic() + 10
    while len(world.live.current) < 55 and time.monotonic() < deadline:
        time.sleep(0.01)
    started = time.monotonic()
    world.updater.stop()
    assert len(world.live.current) == 55
    assert time.monotonic() - started < 2
    assert "disk on fire" in caplog.text


def test_new_count_rebuilds_the_catalogue_once(tmp_path: Path) -> None:
    world = UpdatedCatalogue(tmp_path, RandomTitles)

    class StoredCounts:
        number = 0

        def version(self) -> int:
            return self.number

        def counted(self, numbers: NDArray[np.int64], now: datetime) -> tuple[NoisyCounts, NDArray[np.bool_]]:
            counts = np.where(numbers % 2, 300.0, 10.0)
            return NoisyCounts(counts, np.full(len(numbers), 1_000.0), np.ones(len(numbers)), np.ones(len(numbers))), (
                numbers >= 0
            )

    world.updater._counts = counts = StoredCounts()
    before = world.live.current
    world.updater.step()
    assert world.live.current is before
    counts.number = 3
    world.updater.step()
    after = world.live.current
    assert (before.counted, after.counted) == (0, 3)
    assert not before.lifts.any()
    assert (after.lifts[after.keys % 2 == 1] > after.lifts[after.keys % 2 == 0].max()).all()
    world.updater.step()
    assert world.live.current is after
