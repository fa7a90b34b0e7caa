"""An incremental catalogue equals a full rebuild, over seeded histories of a pool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

from backend.db.engine import open_engine, reading
from backend.db.tables import NewsRow
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from backend.news.pool_reading import PoolReading
from backend.recall import stored_vectors
from backend.recall.catalogue import Catalogue, LiveCatalogue, build_catalogue
from backend.recall.indexes.basis import BasisScan
from backend.recall.indexes.index import Vectors
from backend.recall.indexes.selection import IndexRules
from backend.recall.indexing import IndexBeingBuilt, Turn
from backend.recall.served_releases import ServedReleases
from backend.recall.service import RecallService
from backend.releases.store import ReleaseStore
from device_app.uplink.backend_client import read_vectors
from protocol.ids import short_release
from protocol.recall import DEFAULT_LIST_LENGTH, DefaultListAnswer, RecallRequest
from protocol.server_timing import Stopwatch
from tests.doubles.long_form import by_length
from tests.doubles.recall_world import (
    BASIS_SIZE,
    DIMENSIONS,
    ENCODER,
    clustered_vectors,
    indexes_in,
    items,
    publish,
    report,
    settings_in,
)

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
REPORTS = (
    *({"kind": "code", "codebook": 16, "code": code} for code in (0, 7, 15)),
    *(report(seed=seed) for seed in (1, 2)),
    {"kind": "none"},
)


class WatchedPool(NewsPool):
    """Records how many rows each read took from the database, or 'all'."""

    taken: list[int | str]

    @contextmanager
    def reading(self, encoder: str, now: datetime, since: int | None = None) -> Iterator[PoolReading]:
        with super().reading(encoder, now, since) as found:
            if encoder:  # `live` reads without
                self.taken.append("all" if found.changed is None else len(found.changed))
            yield found


class PoolLife:
    """A pool that changes by a seeded draw, with its own clock and catalogues."""

    def __init__(self, folder: Path, seed: int, database_url: str | None = None) -> None:
        self.settings = settings_in(folder, **({"database_url": database_url} if database_url else {}))
        publish(self.settings)
        engine = open_engine(self.settings.database_url)
        self.now, self.draw, self.ids = START, np.random.default_rng(seed), list[str]()
        self.pool = WatchedPool(engine, lifetime=timedelta(days=4), clock=lambda: self.now)
        self.pool.taken = []
        self.served = ServedReleases(ReleaseStore.open(engine, self.settings), answered=5)
        self.served.refresh()
        self.rules = IndexRules().under(BASIS_SIZE, DIMENSIONS)
        self.arrive(150)

    def built(
        self, previous: Catalogue | None, rules: IndexRules | None = None, turn: Turn = lambda: nullcontext(True)
    ) -> Catalogue:
        kept = indexes_in(self.settings)
        return build_catalogue(
            self.pool, ENCODER, self.now, kept, rules=rules or self.rules, previous=previous, turn=turn
        )

    def service(self, catalogue: Catalogue) -> RecallService:
        return RecallService(self.served, LiveCatalogue(catalogue))

    def some(self, most: int) -> list[str]:
        return self.draw.choice(self.ids, size=int(self.draw.integers(1, most)), replace=False).tolist()

    def deliver(self, news: list[NewsItem], with_vectors: float) -> None:
        self.pool.add(news, source="test")
        coded = [item.id for item in news if self.draw.random() < with_vectors]
        vectors = clustered_vectors(len(coded), seed=int(self.draw.integers(10**6)))
        self.pool.store_vectors(ENCODER, coded, vectors)

    def arrive(self, count: int) -> None:
        first = len(self.ids) + 1
        news = items(count, now=self.now, first=first)
        days = self.draw.uniform(0, 5, size=count)
        news = [
            each.model_copy(update={"published_at": self.now - timedelta(days=float(age))})
            for each, age in zip(news, days, strict=True)
        ]
        self.ids += [each.id for each in news]
        self.deliver(news, 0.9)

    def close(self) -> None:
        self.pool._engine.dispose()

    def original_and_copy(self) -> None:
        """Add two equal articles, the older of which is about to expire."""
        original, copy = items(1, now=self.now, first=5_000)[0], items(1, now=self.now, first=6_000)[0]
        again = {"title": original.title, "abstract": original.abstract}
        old = self.now - self.pool.lifetime + timedelta(hours=1)
        self.deliver([original.model_copy(update={"published_at": old}), copy.model_copy(update=again)], 1.0)

    def moved(self, news_id: str, **fields: object) -> NewsItem:
        """Return the pool's article with this id, in another section and with other fields."""
        names = ("id", "title", "abstract", "url", "published_at", "story")
        with reading(self.pool._engine) as connection:
            query = select(*(getattr(NewsRow, name) for name in names)).where(NewsRow.id == news_id)
            row = connection.execute(query).one()._asdict()
        return items(1)[0].model_copy(update=row | {"section": "moved", "weight": 1.0} | fields)

    def expired(self) -> list[str]:
        """Return ids of articles that have expired and were not removed."""
        old = NewsRow.published_at <= self.pool.horizon(self.now)
        with reading(self.pool._engine) as connection:
            return list(connection.scalars(select(NewsRow.id).where(old, NewsRow.taken_down_at.is_(None))))

    def change(self) -> None:
        """Make one of all changes that can happen to a pool."""
        what = self.draw.integers(8)
        if what == 0:
            self.arrive(int(self.draw.integers(1, 40)))
        elif what == 1:
            self.now += timedelta(hours=float(self.draw.uniform(0, 20)))  # some expire, and nobody has removed them yet
        elif what == 2:
            self.pool.expire(self.now)
        elif what == 3:
            for news_id in set(self.some(4)) & {row.id for row in self.pool.live(self.now)}:
                self.pool.take_down(news_id)
        elif what == 4:  # other words, a new vector later or at once
            again = items(6, now=self.now, first=int(self.draw.integers(10_000, 10**6)))
            news = [each.model_copy(update={"id": news_id}) for each, news_id in zip(again, self.some(6), strict=False)]
            self.deliver(news, 0.5)
        elif what == 5:  # copies of what is there, which link to it, and come up when it goes
            rows = [row for row in self.pool.live(self.now) if row.duplicate_of is None][-5:]
            copies = [
                items(1)[0].model_copy(
                    update={
                        "id": f"copy{len(self.ids) + at}",
                        "title": row.title,
                        "abstract": row.abstract,
                        "published_at": self.now,
                    }
                )
                for at, row in enumerate(rows)
            ]
            self.ids += [each.id for each in copies]
            self.deliver(copies, 1.0)
        elif what == 6:  # another section, as the sorter gives it; and some that had expired come again
            again = [self.moved(row.id) for row in self.pool.live(self.now)[: len(self.some(5))]]
            back = [self.moved(news_id, published_at=self.now) for news_id in self.expired()[::3]]
            self.pool.add([*again, *back], source="test")
        else:
            missing = self.pool.missing_vectors(ENCODER)
            vectors = clustered_vectors(len(missing), seed=int(self.draw.integers(10**6)))
            self.pool.store_vectors(ENCODER, [row.id for row in missing], vectors)


@dataclass(frozen=True)
class DeviceList:
    """A default list as a device has it: ids in order, and each article's card and codes."""

    ids: list[str]
    held: dict[str, tuple[str, bytes]]

    @classmethod
    def of(cls, answer: DefaultListAnswer) -> DeviceList:
        rows = read_vectors(answer, DIMENSIONS)
        held = {
            card.id: (card.model_dump_json(), row.tobytes()) for card, row in zip(answer.candidates, rows, strict=True)
        }
        return cls(answer.listed(()), held) if answer.order is None else cls([], held)

    def after(self, answer: DefaultListAnswer) -> DeviceList:
        held = self.held | self.of(answer).held
        ids = answer.listed(self.ids)
        return DeviceList(ids, {one: held[one] for one in ids})


def assert_alike(life: PoolLife, grown: Catalogue, whole: Catalogue, services: tuple[RecallService, ...]) -> None:
    assert grown.pool_version == whole.pool_version
    assert grown.ids == whole.ids
    assert grown.cards == whole.cards
    columns = grown.news.columns, whole.news.columns
    assert [(each.sections, each.topics, each.stories) for each in columns[:1]] == [
        (each.sections, each.topics, each.stories) for each in columns[1:]
    ]
    for name in ("keys", "published_at", "weights", "log_popularity", "vectors"):
        np.testing.assert_array_equal(np.asarray(getattr(grown, name)), np.asarray(getattr(whole, name)), name)
    for name in ("duplicates", "without_vector"):
        mine, theirs = getattr(grown.news, name), getattr(whole.news, name)
        np.testing.assert_array_equal(mine.numbers, theirs.numbers)
        np.testing.assert_array_equal(mine.published_at, theirs.published_at)
    assert grown.default_list == whole.default_list
    for kind in REPORTS:
        asked = RecallRequest.model_validate({"release": short_release("r1"), "limit": 60, "report": kind})
        answers = [service.answer(asked, Stopwatch()) for service in services]
        assert answers[0] == answers[1], kind
    release = life.served.current
    queries = release.basis_values[:3]
    scans = [
        service._scans.of(each, release.basis_values) for service, each in zip(services, (grown, whole), strict=True)
    ]
    np.testing.assert_allclose(scans[0]._coordinates, scans[1]._coordinates, atol=1e-6)
    assert_same_order(scans[0], scans[1], queries)


def assert_same_order(mine: BasisScan, theirs: BasisScan, queries: Vectors, apart: float = 1e-5) -> None:
    """Check equal rows where scores differ: two matrix products may differ in the last digit."""
    narrow = queries @ theirs._axes.T
    scores = narrow @ theirs._coordinates[:, :-1].T  # [c, n]
    for line, found, expected in zip(scores, mine.search(queries, 50), theirs.search(queries, 50), strict=True):
        np.testing.assert_allclose(line[found], line[expected], atol=apart)
        gaps = np.diff(line[expected]) < -apart
        alone = np.r_[True, gaps] & np.r_[gaps, False]
        np.testing.assert_array_equal(np.array(found)[alone], np.array(expected)[alone])
        assert alone.sum() > len(expected) / 2
        assert len(set(found)) == len(found)


@pytest.mark.long_form
@pytest.mark.parametrize("seed", range(by_length(2, long=4)))
def test_incremental_catalogue_always_equals_a_full_rebuild(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str, seed: int
) -> None:
    monkeypatch.setattr(stored_vectors, "ROOM_LEAST", 60)  # so that files are used up
    with closing(PoolLife(tmp_path, seed, database_url)) as life:
        grown = life.built(None)
        live = life.service(grown)
        for _ in range(10):
            for _ in range(int(life.draw.integers(1, 4))):
                life.change()
            grown = life.built(grown)
            live._live.swap(grown)
            whole = life.built(None)
            assert_alike(life, grown, whole, (live, life.service(whole)))
        assert life.pool.taken.count("all") == 10 + 1, "only those that are made whole read all"


@pytest.mark.long_form
@pytest.mark.parametrize("seed", range(by_length(1, long=3)))
def test_changes_since_any_earlier_default_list_give_exactly_the_new_one(tmp_path: Path, seed: int) -> None:
    with closing(PoolLife(tmp_path, seed)) as life:
        grown = life.built(None)
        service = life.service(grown)
        devices: dict[str, DeviceList] = {}  # by the name of its list: a device that slept since then
        smaller = 0
        for _ in range(12):
            name, whole = service.default_list(DEFAULT_LIST_LENGTH)
            expected = DeviceList.of(DefaultListAnswer.model_validate_json(whole))
            for since, device in devices.items():
                named, changes = service.default_list(DEFAULT_LIST_LENGTH, since)
                assert named == name
                assert device.after(DefaultListAnswer.model_validate_json(changes)) == expected
                smaller += len(changes) < len(whole) / 2
            devices[name] = expected
            life.change()
            grown = life.built(grown)
            service._live.swap(grown)
        assert smaller > 20
        name, whole = service.default_list(DEFAULT_LIST_LENGTH)
        assert service.default_list(DEFAULT_LIST_LENGTH, "unknown").answer == whole
        other = service.default_list(50)
        assert DefaultListAnswer.model_validate_json(service.default_list(50, other.name).answer).order is None
        publish(life.settings, seed=9)
        life.served.refresh()
        assert (
            DefaultListAnswer.model_validate_json(service.default_list(DEFAULT_LIST_LENGTH, name).answer).order is None
        )


def test_list_of_another_process_has_the_same_name_and_gives_changes(tmp_path: Path) -> None:
    with closing(PoolLife(tmp_path, 5)) as life:
        first = life.service(life.built(None))
        life.now += timedelta(minutes=1)
        second = life.service(life.built(None))
        name = first.default_list(DEFAULT_LIST_LENGTH).name
        assert second.default_list(DEFAULT_LIST_LENGTH).name == name
        life.arrive(1)
        second._live.swap(life.built(None))
        assert (
            DefaultListAnswer.model_validate_json(second.default_list(DEFAULT_LIST_LENGTH, name).answer).order
            is not None
        )


def test_update_by_a_hundred_articles_reads_only_those(tmp_path: Path) -> None:
    life = PoolLife(tmp_path, 1)
    before = life.built(None)
    life.deliver(items(5, now=life.now, first=5_000), 1.0)
    after = life.built(before)
    assert life.pool.taken == ["all", 5]
    assert len(after) == len(before) + 5
    assert all(mine is theirs for mine, theirs in zip(before.cards, after.cards, strict=False)), "cards are kept"
    assert (after.vectors.found_in(before.vectors)[:-5] == np.arange(len(before))).all()  # type: ignore[index]


def test_original_delivered_again_replaces_its_copy(tmp_path: Path) -> None:
    life = PoolLife(tmp_path, 1)
    life.original_and_copy()
    before = life.built(None)
    life.now += timedelta(hours=2)  # nobody has removed the original yet
    freed = life.built(before)
    assert ("n5000" in freed.ids, "n6000" in freed.ids) == (False, True)
    life.pool.add([life.moved("n5000", published_at=life.now)], source="test")
    after, whole = life.built(freed), life.built(None)
    assert ("n5000" in whole.ids, "n6000" in whole.ids) == (True, False)
    assert_alike(life, after, whole, (life.service(after), life.service(whole)))


def test_vector_of_a_copy_is_stored_once_after_its_original_expired(tmp_path: Path) -> None:
    life = PoolLife(tmp_path, 1)
    life.original_and_copy()
    before = life.built(None)
    life.now += timedelta(hours=2)
    freed = life.built(before)
    again = life.built(life.built(freed))
    assert again.vectors._file is freed.vectors._file
    assert again.vectors._file.filled == freed.vectors._file.filled
    np.testing.assert_array_equal(again.vectors.found_in(freed.vectors), np.arange(len(freed)))


def test_new_vectors_are_stored_once_while_another_process_builds_the_index(tmp_path: Path) -> None:
    life, rules = PoolLife(tmp_path, 1), IndexRules()
    before = life.built(None, rules)
    filled = before.vectors._file.filled
    life.deliver(items(5, now=life.now, first=5_000), 1.0)
    for _ in range(3):
        with pytest.raises(IndexBeingBuilt):
            life.built(before, rules, turn=lambda: nullcontext(False))
    after = life.built(before, rules)
    assert after.vectors._file is before.vectors._file
    assert after.vectors._file.filled == filled + 5
    np.testing.assert_array_equal(after.vectors[:], life.built(None, rules).vectors[:])
    assert after.indexed.vectors is after.vectors, "an index holds no second copy of all vectors"
