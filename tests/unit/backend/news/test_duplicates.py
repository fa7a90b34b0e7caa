"""Oracle: the rule of `backend/news/duplicates.py` applied by comparing all pairs, without buckets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from backend.db.engine import migrate, open_engine, reading
from backend.db.tables import NewsRow
from backend.news.duplicates import DUPLICATE_THRESHOLD, bucket_keys, jaccard, shingles
from backend.news.ingest import ingest
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from backend.news.pool_reading import PoolRow
from backend.news.sources.files import read_mind
from tests.doubles.long_form import by_length

MakeItem = Callable[..., NewsItem]
STORM = "The storm reached the coast of Jutland on Monday morning with strong winds and heavy rain"
COURANT, COPIER = "https://courant.example/rss", "https://copier.example/rss"
OTHER = "Parliament votes on the new budget after a long night of talks between all five parties"


def by_all_pairs(rows: list[PoolRow], arrivals: Mapping[str, int]) -> dict[str, str]:
    """Return duplicate -> original by the rule; two texts are similar if they share a bucket and 0.7."""
    words = {row.id: shingles(row.title, row.abstract) for row in rows}
    compared = [row for row in rows if words[row.id]]
    keys = dict(zip([row.id for row in compared], bucket_keys([words[row.id] for row in compared]), strict=True))
    originals: list[str] = []
    links: dict[str, str] = {}
    for row in sorted(compared, key=lambda row: arrivals[row.id]):
        similar = (
            original
            for original in originals
            if jaccard(words[row.id], words[original]) >= DUPLICATE_THRESHOLD and (keys[row.id] == keys[original]).any()
        )
        found = next(similar, None)
        if found is None:
            originals.append(row.id)
        else:
            links[row.id] = found
    return links


def links(pool: NewsPool, now: datetime) -> dict[str, str]:
    return {row.id: row.duplicate_of for row in pool.live(now) if row.duplicate_of}


def test_near_duplicate_is_linked_to_the_first_arrival(pool: NewsPool, item: MakeItem, now: datetime) -> None:
    report = pool.add([item("a", STORM, minutes_old=9), item("b", STORM + " today"), item("c", OTHER)], source="test")
    assert report.duplicates == 1
    assert links(pool, now) == {"b": "a"}


def test_duplicate_is_linked_across_batches_and_runs(pool: NewsPool, item: MakeItem, now: datetime) -> None:
    pool.add([item("a", STORM, minutes_old=9)], source="one")
    assert pool.add([item("b", STORM)], source="two").duplicates == 1
    assert links(pool, now) == {"b": "a"}


def test_backdated_copy_does_not_replace_the_original(pool: NewsPool, item: MakeItem, now: datetime) -> None:
    """Regression: the attacker's copy was offered, under the attacker's name, and the original was its duplicate."""
    pool.add([item("a", STORM, minutes_old=5), item("b", STORM, minutes_old=4)], source=COURANT)
    pool.add([item("copy", STORM, minutes_old=600)], source=COPIER)
    assert links(pool, now) == {"copy": "a"}, "articles of one feed are never duplicates"
    pool.add([item("copy", STORM + " today", minutes_old=6_000)], source=COPIER)
    pool.add([item("a", STORM + " again", minutes_old=1)], source=COURANT)
    assert links(pool, now) == {"copy": "a"}, "an edit of the original makes it no younger"


def test_old_story_edited_into_a_copy_does_not_replace_the_original(
    pool: NewsPool, item: MakeItem, now: datetime
) -> None:
    """The attacker has stories ready, and edits one as soon as there is something to copy."""
    pool.add([item("ready", OTHER, minutes_old=60)], source=COPIER)
    pool.add([item("a", STORM)], source=COURANT)
    pool.add([item("ready", STORM, minutes_old=60)], source=COPIER)
    assert links(pool, now) == {"ready": "a"}
    pool.add([item("ready", OTHER, minutes_old=60)], source=COPIER)
    assert links(pool, now) == {}


def test_taking_the_original_down_makes_the_next_arrival_the_original(
    pool: NewsPool, item: MakeItem, now: datetime
) -> None:
    pool.add([item(news_id, STORM, minutes_old=age) for news_id, age in [("a", 9), ("b", 5), ("c", 7)]], source="t")
    pool.take_down("a")
    assert links(pool, now) == {"c": "b"}


def test_expiry_of_the_original_makes_the_next_arrival_the_original(
    pool: NewsPool, item: MakeItem, now: datetime
) -> None:
    days = 24 * 60
    pool.add(
        [item(news_id, STORM, minutes_old=age) for news_id, age in [("a", 29 * days), ("b", 5), ("c", 7)]], source="t"
    )
    later = now + timedelta(days=2)
    assert pool.expire(later) == 1
    assert links(pool, later) == {"c": "b"}


def test_rewritten_original_releases_its_duplicates(pool: NewsPool, item: MakeItem, now: datetime) -> None:
    pool.add([item("a", STORM, minutes_old=9), item("b", STORM)], source="test")
    pool.add([item("a", OTHER, minutes_old=9)], source="test")
    assert links(pool, now) == {}


def test_short_titles_are_never_duplicates(pool: NewsPool, item: MakeItem, now: datetime) -> None:
    pool.add([item("a", "Letters today"), item("b", "Letters today")], source="test")
    assert links(pool, now) == {}


def test_duplicates_are_found_in_texts_without_spaces(pool: NewsPool, item: MakeItem, now: datetime) -> None:
    text = "台风星期一早晨登陆海岸带来强风和暴雨"
    pool.add(
        [item("a", text, minutes_old=1), item("b", text + "。"), item("c", "议会经过漫长的夜晚通过新预算")], source="t"
    )
    assert links(pool, now) == {"b": "a"}


def test_jaccard_is_the_share_of_common_shingles() -> None:
    left, right = shingles("a b c d e", ""), shingles("a b c d f", "")
    assert jaccard(left, right) == pytest.approx(3 / 5)  # ab bc cd of ab bc cd de df
    assert jaccard(left, frozenset()) == 0.0


def test_buckets_find_similar_pairs_at_the_stated_rates() -> None:
    """The band formula 1 - (1 - s^4)^10, over 400 random pairs at similarity 0.8 and at 0.2."""
    generator = np.random.default_rng(5)
    for share, low, high in [(160, 0.97, 1.0), (60, 0.0, 0.06)]:  # Jaccard 160/200 = 0.8, 60/300 = 0.2
        hits = 0
        for _ in range(200):
            words = [f"{number:x}" for number in generator.integers(2**60, size=300)]
            own = (180 - share) if share == 60 else 20
            left, right = (
                frozenset(words[: share + own]),
                frozenset(words[:share] + words[share + own : share + 2 * own]),
            )
            hits += bool((bucket_keys([left])[0] == bucket_keys([right])[0]).any())
        assert low <= hits / 200 <= high


def test_bucket_keys_never_change_between_runs() -> None:
    """They are stored: another hash would separate new articles from old ones. Golden values of this version."""
    assert bucket_keys([shingles(STORM, "")])[0, :2].tolist() == [8932988912670235793, 2218054431477032965]


FRAGMENTS = [
    "storm hits the coast",
    "heavy rain on monday",
    "parliament votes late",
    "budget talks go on",
    "cats and dogs",
]
DELIVERIES = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=4), st.integers(0, 50)),
    min_size=1,
    max_size=25,
)


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A migrated database file from which every example starts."""
    path = tmp_path_factory.mktemp("empty") / "pool.db"
    migrate(f"sqlite:///{path}")
    return path.read_bytes()


@pytest.mark.long_form
@settings(max_examples=by_length(12, long=30), deadline=None)
@given(deliveries=DELIVERIES, batch_rows=st.integers(1, 9))
def test_links_are_independent_of_batch_boundaries(
    deliveries: list[tuple[int, list[str], int]], batch_rows: int, empty_database: bytes
) -> None:
    now = datetime(2026, 11, 20, tzinfo=UTC)
    items = [
        NewsItem(
            id=f"n{number}",
            title=" ".join(fragments),
            section="x",
            topic="y",
            published_at=now - timedelta(minutes=age),
        )
        for number, fragments, age in deliveries
    ]
    pools = []
    for rows_per_batch in (len(items), batch_rows):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "pool.db"
            path.write_bytes(empty_database)
            engine = open_engine(f"sqlite:///{path}")
            pool = NewsPool(engine)
            ingest(pool, items, source="test", batch_rows=rows_per_batch)
            pools.append(pool.live(now))
            with reading(engine) as connection:
                arrivals = {row.id: row.arrival for row in connection.execute(select(NewsRow.id, NewsRow.arrival))}
            assert links(pool, now) == by_all_pairs(pools[-1], arrivals)
            version = pool.version()
            last = {item.id: item for item in items}
            assert ingest(pool, last.values(), source="test").unchanged == len(last)
            assert pool.version() == version
            engine.dispose()
    assert pools[0] == pools[1]


@pytest.mark.data
@pytest.mark.long_form
def test_mind_duplicates_match_an_all_pairs_comparison(shared_data: Path, tmp_path: Path) -> None:
    """All pairs of 4,000 articles, or of 2,000, through a sparse product, without MinHash; one in ten may be missed."""
    from scipy.sparse import csr_array

    now, articles = datetime.now(UTC), by_length(2_000, long=4_000)
    engine = open_engine(f"sqlite:///{tmp_path / 'pool.db'}")
    migrate(engine)
    pool = NewsPool(engine)
    news = islice(read_mind(shared_data / "mind-subset/train/news.tsv", published_at=now), articles)
    report = ingest(pool, news, source="mind")
    rows = pool.live(now)
    found = {row.id for row in rows if row.duplicate_of}
    engine.dispose()
    assert report.added == len(rows) == articles

    sets = [shingles(row.title, row.abstract) for row in rows]
    column: dict[str, int] = {}
    entries = [column.setdefault(word, len(column)) for words in sets for word in words]
    ends = np.cumsum([0, *map(len, sets)])
    matrix = csr_array((np.ones(len(entries), np.int32), entries, ends), shape=(len(sets), len(column)))
    frequent = np.asarray(matrix.sum(axis=0)).ravel() > 300
    rare = matrix[:, ~frequent]
    candidates = (rare @ rare.T).tocoo()
    expected = {
        rows[max(left, right)].id
        for left, right in zip(*candidates.coords, strict=True)
        if left < right and jaccard(sets[left], sets[right]) >= DUPLICATE_THRESHOLD
    }
    assert len(expected) >= 5
    assert found <= expected
    assert len(expected - found) <= 0.1 * len(expected)
