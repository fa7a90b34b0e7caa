"""The conformance suite of the news pool; `pool` runs every test on SQLite and on PostgreSQL.

Oracle: a plain dictionary of the deliveries.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

import numpy as np
import pytest
from sqlalchemy import Engine

from backend.news.errors import UnknownNews
from backend.news.item import NewsItem
from backend.news.pool import BODIES_LIMIT_CHARS, NewsPool
from device_app.uplink.backend_client import BODIES_ANSWER_LIMIT_BYTES

MakeItem = Callable[..., NewsItem]
STORM = "The storm reached the coast of Jutland on Monday morning with strong winds and heavy rain"


def vectors(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 256)).astype(np.float32)


class TestNewsPool:
    def test_added_item_is_returned_as_delivered(self, pool: NewsPool, item: MakeItem, now: datetime) -> None:
        delivered = item(
            "a",
            "Überraschung 👩‍👩‍👧 في القاهرة",
            abstract="מזג האוויר",
            body="One.\n\nTwo.",
            url="https://example.org/a",
            publisher="The Sound",
            story="storm",
            weight=0.75,
            minutes_old=3,
        )
        report = pool.add([delivered], source="test")
        (row,) = pool.live(now)
        assert (report.added, report.changed) == (1, 1)
        assert (
            NewsItem(
                **{
                    name: getattr(row, name)
                    for name in NewsItem.model_fields
                    if name not in ("body", "picture", "text_pictures")
                },
                body=pool.bodies(["a"])["a"],
            )
            == delivered
        )

    def test_newest_are_the_last_published_live_ones(self, pool: NewsPool, item: MakeItem, now: datetime) -> None:
        ages = {"a": 30, "b": 10, "c": 20, "d": 5, "e": 10}
        pool.add([item(name, minutes_old=age) for name, age in ages.items()], source="test")
        pool.take_down("d")
        live = sorted(pool.live(now), key=lambda row: (row.published_at, row.number), reverse=True)
        assert [row.id for row in pool.newest(now, 3)] == ["e", "b", "c"]
        assert pool.newest(now, 9) == live
        assert pool.newest(now + timedelta(days=1_000), 9) == []

    def test_adding_the_same_again_changes_nothing(self, pool: NewsPool, item: MakeItem) -> None:
        pool.add([item("a"), item("b")], source="test")
        before = pool.version()
        report = pool.add([item("a"), item("b")], source="test")
        assert (report.added, report.updated, report.unchanged) == (0, 0, 2)
        assert pool.version() == before

    def test_change_of_the_time_alone_does_not_count_as_a_change(
        self, pool: NewsPool, item: MakeItem, now: datetime
    ) -> None:
        pool.add([item("a", minutes_old=60)], source="test")
        assert pool.add([item("a")], source="test").unchanged == 1
        assert pool.live(now)[0].published_at == now - timedelta(minutes=60)

    def test_changed_content_updates_the_row_and_raises_the_version(
        self, pool: NewsPool, item: MakeItem, now: datetime
    ) -> None:
        pool.add([item("a", body="old")], source="test")
        before = pool.version()
        assert pool.add([item("a", body="new", section="culture")], source="test").updated == 1
        assert pool.version() > before
        assert pool.live(now)[0].section == "culture"
        assert pool.bodies(["a"]) == {"a": "<p>new</p>"}
        pool.add([item("a")], source="test")
        assert pool.bodies(["a", "nowhere"]) == {"a": ""}, "what has no text is told from what is not there"

    def test_later_of_two_articles_with_one_id_in_a_batch_wins(
        self, pool: NewsPool, item: MakeItem, now: datetime
    ) -> None:
        report = pool.add([item("a", "First"), item("a", "Second")], source="test")
        assert (report.added, report.updated) == (1, 1)
        assert [row.title for row in pool.live(now)] == ["Second"]

    def test_delivery_without_articles_changes_nothing(self, pool: NewsPool) -> None:
        assert pool.add([], source="test").changed == 0
        assert pool.version() == 0

    def test_batch_failing_midway_leaves_nothing(self, pool: NewsPool, item: MakeItem, now: datetime) -> None:
        broken = item("b").model_copy(update={"weight": 7.0})  # past validation, into the table's own check
        with pytest.raises(Exception, match="weight_in_unit_interval"):
            pool.add([item("a"), broken, item("c")], source="test")
        assert pool.live(now) == []
        assert pool.version() == 0

    def test_articles_are_live_for_their_lifetime(self, engine: Engine, item: MakeItem, now: datetime) -> None:
        pool = NewsPool(engine, lifetime=timedelta(hours=1))
        pool.add([item("old", minutes_old=60), item("young", minutes_old=59)], source="test")
        assert [row.id for row in pool.live(now)] == ["young"]

    def test_lifetime_of_zero_is_refused(self, engine: Engine) -> None:
        with pytest.raises(ValueError, match="lifetime must be positive"):
            NewsPool(engine, lifetime=timedelta(0))

    def test_expiry_removes_text_body_and_vector_and_is_counted_once(
        self, engine: Engine, item: MakeItem, now: datetime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("backend.news.pool.EXPIRED_PER_TRANSACTION", 2)
        pool = NewsPool(engine, lifetime=timedelta(hours=1))
        pool.add([item(f"n{number}", minutes_old=70, body="text") for number in range(5)], source="test")
        pool.add([item("young", body="text")], source="test")
        pool.store_vectors("e", ["n0", "young"], vectors(2))
        before = pool.version()
        assert pool.expire(now) == 5
        assert pool.version() > before
        assert pool.bodies(["n0", "young"]) == {"young": "<p>text</p>"}
        assert pool.vectors("e")[0] == ["young"]
        before = pool.version()
        assert pool.expire(now) == 0
        assert pool.version() == before

    def test_numbers_of_articles_are_never_reused(self, engine: Engine, item: MakeItem, now: datetime) -> None:
        pool = NewsPool(engine, lifetime=timedelta(hours=1))
        pool.add([item("a", minutes_old=70)], source="test")
        pool.expire(now)
        pool.add([item("b")], source="test")
        assert [row.number for row in pool.live(now)] == [2]

    def test_taken_down_item_stays_removed(self, pool: NewsPool, item: MakeItem, now: datetime) -> None:
        pool.add([item("a", body="text"), item("b")], source="test")
        pool.store_vectors("e", ["a"], vectors(1))
        pool.take_down("a")
        version = pool.version()
        report = pool.add([item("a", "A new title")], source="test")
        assert (report.withheld, report.changed) == (1, 0)
        pool.take_down("a")
        assert pool.version() == version
        assert [row.id for row in pool.live(now)] == ["b"]
        assert pool.bodies(["a"]) == {}
        assert pool.vectors("e")[0] == []
        assert [row.id for row in pool.missing_vectors("e")] == ["b"]
        assert (pool.counts().news, pool.counts().taken_down) == (1, 1)

    def test_error_for_taking_down_an_unknown_article_names_its_id(self, pool: NewsPool) -> None:
        with pytest.raises(UnknownNews, match="'nowhere'"):
            pool.take_down("nowhere")

    def test_vectors_are_returned_exactly_in_order_of_arrival(
        self, pool: NewsPool, item: MakeItem, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("backend.news.pool_reading.VECTORS_PER_FETCH", 3)
        ids = [f"n{number}" for number in range(10)]
        pool.add([item(news_id) for news_id in ids], source="test")
        stored = vectors(10)
        assert pool.store_vectors("e", ids[::-1], stored[::-1]) == 10
        found_ids, found = pool.vectors("e")
        assert found_ids == ids
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, stored)

    def test_each_encoder_has_its_own_vectors(self, pool: NewsPool, item: MakeItem) -> None:
        pool.add([item("a"), item("b")], source="test")
        pool.store_vectors("first", ["a", "b"], vectors(2))
        pool.store_vectors("second", ["b"], vectors(1, seed=1))
        assert [row.id for row in pool.missing_vectors("second")] == ["a"]
        assert pool.missing_vectors("first") == []
        assert pool.counts().vectors == {"first": 2, "second": 1}

    def test_missing_vectors_give_an_empty_matrix(self, pool: NewsPool) -> None:
        ids, found = pool.vectors("e")
        assert ids == []
        assert found.shape == (0, 0)

    def test_storing_a_vector_again_replaces_it(self, pool: NewsPool, item: MakeItem) -> None:
        pool.add([item("a")], source="test")
        pool.store_vectors("e", ["a"], vectors(1))
        pool.store_vectors("e", ["a"], vectors(1, seed=1))
        np.testing.assert_array_equal(pool.vectors("e")[1], vectors(1, seed=1))

    def test_changed_title_drops_its_vectors_and_a_changed_body_keeps_them(
        self, pool: NewsPool, item: MakeItem
    ) -> None:
        pool.add([item("a"), item("b")], source="test")
        pool.store_vectors("e", ["a", "b"], vectors(2))
        pool.add([item("a", "Another title"), item("b", body="another body")], source="test")
        assert pool.vectors("e")[0] == ["b"]
        assert [(row.id, row.title) for row in pool.missing_vectors("e")] == [("a", "Another title")]

    def test_vector_is_not_stored_if_its_title_changed_meanwhile(self, pool: NewsPool, item: MakeItem) -> None:
        pool.add([item("a"), item("b")], source="test")
        missing = pool.missing_vectors("e")
        pool.add([item("a", "Another title")], source="test")
        ids, titles = [row.id for row in missing], [row.title for row in missing]
        assert pool.store_vectors("e", ids, vectors(2), titles=titles) == 1
        assert pool.vectors("e")[0] == ["b"]

    def test_vectors_of_unknown_articles_are_left_out(self, pool: NewsPool, item: MakeItem) -> None:
        pool.add([item("a")], source="test")
        assert pool.store_vectors("e", ["a", "gone"], vectors(2)) == 1

    @pytest.mark.parametrize(
        ("matrix", "message"),
        [
            (vectors(2), r"shape \[1, D\], got \[2, 256\]"),
            (vectors(1)[0], r"shape \[1, D\], got \[256\]"),
            (vectors(1).astype(np.float64), "float32, got float64"),
            (np.full((1, 256), np.nan, np.float32), "finite"),
        ],
    )
    def test_malformed_vectors_are_refused(self, pool: NewsPool, matrix: np.ndarray, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            pool.store_vectors("e", ["a"], matrix)

    def test_mismatched_number_of_titles_is_refused(self, pool: NewsPool) -> None:
        with pytest.raises(ValueError, match="titles has 2 entries for 1 ids"):
            pool.store_vectors("e", ["a"], vectors(1), titles=["x", "y"])

    def test_pool_counts_articles_by_source_and_section(self, pool: NewsPool, item: MakeItem) -> None:
        pool.add([item("a", STORM, minutes_old=1), item("b", section="sport")], source="one")
        pool.add([item("c", STORM)], source="two")
        counts = pool.counts()
        assert counts.news == 3
        assert counts.duplicates == 1
        assert counts.sources == {"one": 2, "two": 1}
        assert counts.sections == {"sport": 1, "world": 2}
        assert counts.version == pool.version() >= 2

    def test_concurrent_writers_of_one_pool_lose_nothing(self, pool: NewsPool, item: MakeItem, now: datetime) -> None:
        """Eight writers with overlapping ids: without a lock, numbers would clash or a version would be lost."""
        failures: list[Exception] = []

        def write(writer: int) -> None:
            try:
                pool.add([item(f"n{number}") for number in range(writer, writer + 8)], source=f"w{writer}")
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert {row.id for row in pool.live(now)} == {f"n{number}" for number in range(15)}
        assert sorted(row.number for row in pool.live(now)) == list(range(1, 16))


def test_enormous_texts_are_cut_to_the_total_limit_without_affecting_others(pool: NewsPool, item: MakeItem) -> None:
    """Regression: a list of 1,000 texts of 200,000 three-byte characters came to 600 MB."""
    paragraph = "台" * 98
    giants = [item(f"giant{number}", body="\n\n".join([paragraph] * 100)) for number in range(60)]
    others = [item(f"n{number}", body=f"{number} days. " * 20) for number in range(60)]
    pool.add([*giants, *others], source="test")
    found = pool.bodies([each.id for each in (*giants, *others)], limit_chars=200_000)
    assert 0.9 * 200_000 < sum(map(len, found.values())) <= 200_000
    assert all(found[each.id] == each.body for each in others)
    assert all(found[each.id].endswith(f"<p>{paragraph}</p><p>[…]</p>") for each in giants)
    assert pool.bodies(["giant0"]) == {"giant0": giants[0].body}
    assert pool.bodies([]) == {}
    assert 6 * BODIES_LIMIT_CHARS < BODIES_ANSWER_LIMIT_BYTES, "even of signs that JSON writes in six bytes"
