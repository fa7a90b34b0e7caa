"""The stored counts. Oracles: decayed sums by hand."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from backend.composition import build_services
from backend.db.engine import reading_session, writing_session
from backend.db.tables import NewsCountRow, NewsRow
from backend.errors import BackendSettingsRefused
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.strategies.reported_basis import pool_of
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import COMPOSED
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from backend.popularity.estimate import lifts
from backend.popularity.store import CountRepository, OpenedCount, write_count
from backend.settings import BackendSettings, load_settings
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW
from tests.doubles.round_rig import DIM, ENCODER, BackendRig

HALF_LIFE = 24.0
KEPT = timedelta(days=14)


class CountedPool:
    """A backend with articles a, b, c in its pool, and rounds to attach counts to."""

    def __init__(self, folder: Path) -> None:
        self.backend = BackendRig.make(folder, StillClock(NOW))
        self.pool = NewsPool(self.backend.engine, clock=lambda: NOW)
        self.pool.add(
            [
                NewsItem(id=name, title=f"{name} {name * 7} of its own", section="s", topic="t", published_at=NOW)
                for name in "abc"
            ],
            source="test",
        )
        self.book = CountRepository(self.backend.engine, half_life_hours=HALF_LIFE)

    def count(
        self, at: datetime, clicks: dict[str, float], variance: float = 4.0, displays: float | None = None
    ) -> int:
        """displays: of each article; by default ten for every click."""
        status = self.backend.coordinator.open_round(
            "private_counts/secure/huber", cohort=9, cohort_minimum=2, seconds=60
        )
        self.backend.coordinator.cancel(status.round)
        number = int(status.round.removeprefix("round-"))
        shown = {name: 10 * value if displays is None else displays for name, value in clicks.items()}
        opened = OpenedCount(number, at, 9, shown, clicks, 16 * variance, variance)
        with writing_session(self.backend.engine) as session:
            write_count(session, opened, kept=KEPT)
        return number

    def numbers(self) -> np.ndarray:
        with reading_session(self.backend.engine) as session:
            found = dict(session.query(NewsRow.id, NewsRow.number).all())
        return np.array([found[name] for name in "abc" if name in found])


@pytest.fixture
def counting(tmp_path: Path) -> CountedPool:
    return CountedPool(tmp_path)


def test_before_the_first_count_lifts_are_zero(counting: CountedPool) -> None:
    counted, asked = counting.book.counted(counting.numbers(), NOW)
    assert counting.book.version() == 0
    assert not asked.any()
    assert counted.clicks.tolist() == [0, 0, 0]
    assert lifts(counting.book, counting.numbers(), ["t"] * 3, NOW).values.tolist() == [0, 0, 0]


def test_older_counts_weigh_less_and_their_variance_by_the_squared_weight(counting: CountedPool) -> None:
    counting.count(NOW - timedelta(hours=48), {"a": 8.0, "b": -4.0})
    last = counting.count(NOW - timedelta(hours=24), {"a": 2.0, "c": 6.0})
    counted, asked = counting.book.counted(counting.numbers(), NOW)
    assert counting.book.version() == last
    assert asked.tolist() == [True, True, True]
    np.testing.assert_allclose(counted.clicks, [8 / 4 + 2 / 2, -4 / 4, 6 / 2])
    np.testing.assert_allclose(counted.displays, 10 * counted.clicks)
    np.testing.assert_allclose(counted.clicks_variance, [4 / 16 + 4 / 4, 4 / 16, 4 / 4])
    np.testing.assert_allclose(counted.displays_variance, 16 * counted.clicks_variance)


def test_removed_articles_leave_the_counts(counting: CountedPool) -> None:
    counting.pool.take_down("b")
    number = counting.count(NOW, {"a": 1.0, "b": 1.0, "z": 1.0})
    with reading_session(counting.backend.engine) as session:
        assert session.query(NewsCountRow).count() == 1
    assert counting.book.made()[0].news == 1
    counting.pool.expire(NOW + timedelta(days=40))
    with reading_session(counting.backend.engine) as session:
        assert session.query(NewsCountRow).count() == 0
    assert counting.book.version() == number


def test_expired_counts_are_deleted(counting: CountedPool) -> None:
    counting.count(NOW - KEPT - timedelta(seconds=1), {"a": 1.0})
    kept = counting.count(NOW, {"a": 2.0})
    assert [made.round for made in counting.book.made()] == [kept]


def test_failed_write_of_a_count_leaves_nothing(counting: CountedPool) -> None:
    counting.count(NOW, {"a": 1.0})
    with pytest.raises(ValueError, match="same articles"), writing_session(counting.backend.engine) as session:
        write_count(session, OpenedCount(9, NOW, 2, {"a": 1.0}, {"b": 1.0}, 1.0, 1.0), kept=KEPT)
    assert len(counting.book.made()) == 1


def test_frequently_clicked_articles_are_lifted(counting: CountedPool) -> None:
    status = counting.backend.coordinator.open_round(
        "private_counts/secure/huber", cohort=9, cohort_minimum=2, seconds=60
    )
    counting.backend.coordinator.cancel(status.round)
    shown = {"a": 1_000.0, "b": 1_000.0, "c": 1_000.0}
    opened = OpenedCount(1, NOW, 900, shown, {"a": 300.0, "b": 100.0, "c": -2.0}, 25.0, 1.0)
    with writing_session(counting.backend.engine) as session:
        write_count(session, opened, kept=KEPT)
    found = lifts(counting.book, counting.numbers(), ["t"] * 3, NOW)
    assert found.version == 1
    assert found.values[0] > found.values[1] > found.values[2]
    assert -2.0 <= found.values.min() < found.values.max() <= 2.0


@pytest.mark.parametrize("half_life_hours", [6.0, 48.0])
def test_training_rounds_use_the_servers_half_life_for_counts(counting: CountedPool, half_life_hours: float) -> None:
    """Regression: 24 hours, whatever the setting was."""
    rig = counting.backend
    vectors = np.eye(3, DIM, dtype=np.float32)
    counting.pool.store_vectors(ENCODER, list("abc"), vectors)
    counting.count(NOW - timedelta(hours=48), {"a": 500.0, "b": 5.0, "c": 50.0}, displays=900.0)
    counting.count(NOW, {"a": 5.0, "b": 100.0, "c": 50.0}, displays=900.0)
    coordinator = Coordinator(
        rig.engine, rig.releases, COMPOSED, rig.folder, rig.clock, counts_half_life_hours=half_life_hours
    )
    request = RoundRequest("basis/exact/mean", 2, 2, 60.0)
    context = coordinator._loader.context(rig.releases.require_current(), request, None)

    found, popularity = pool_of(context)
    order = np.argmax(found @ vectors.T, axis=1)
    mine = CountRepository(rig.engine, half_life_hours=half_life_hours)
    lifted = lifts(mine, counting.numbers(), ["t"] * 3, NOW).values[order]
    np.testing.assert_allclose(np.diff(popularity), np.diff(lifted), atol=1e-6)
    assert np.abs(np.diff(lifted)).max() > 0.05
    other = lifts(counting.book, counting.numbers(), ["t"] * 3, NOW).values[order]
    assert np.abs(np.diff(lifted) - np.diff(other)).max() > 0.01


def test_server_applies_its_half_life_to_lists_and_rounds(tmp_path: Path) -> None:
    services = build_services(BackendSettings(data_dir=tmp_path, popularity_half_life_hours=12.0))
    try:
        assert services.counts.half_life_hours == 12.0
        assert services.coordinator._loader.counts_half_life_hours == 12.0
    finally:
        services.close()


@pytest.mark.parametrize(("hours", "limit"), [(0, "greater than 0"), (73, "less than or equal to 72")])
def test_half_life_out_of_range_is_named_in_the_error(tmp_path: Path, hours: float, limit: str) -> None:
    with pytest.raises(BackendSettingsRefused, match=f"popularity_half_life_hours: .*{limit}"):
        load_settings(data_dir=tmp_path, popularity_half_life_hours=hours)
