"""Searches as people write them find the stories that answer them, in both devices, and nothing where nothing does.

Oracle: 100 searches of the generated newspaper with their answers marked by hand, and 20 that it doesn't answer
(tests/doubles/search_queries.toml). Vectors are random, so that what is found owes nothing to a similarity that they
give. Not statistical: everything is fixed by seeds. The short form has a quarter of the newspaper.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device_app.composition import build_device
from device_app.privacy.noise_sources import SeededNoise
from device_app.settings import DeviceSettings, PerformanceSettings
from experiments.bench.newspaper_pages import NOW
from newsroom.edition import named_edition
from protocol.news import NewsCard
from tests.conformance.node_end import ask_node
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.long_form import by_length
from tests.doubles.news import SyntheticPool
from tests.doubles.search_queries import MarkedQuery, figures, marked_queries

pytestmark = [pytest.mark.node, pytest.mark.long_form]
ARTICLES = by_length(1_500, long=6_000)
RECALL = 0.8
DIMENSIONS = 256


def newspaper(articles: int) -> SyntheticPool:
    """An edition of the generated newspaper with random vectors."""
    printed = NewsCard.model_fields.keys() - {"dated", "also"}
    edition = [named.article for named in named_edition(NOW, seed=7, articles=articles)]
    cards = tuple(NewsCard.model_validate({name: getattr(item, name) for name in printed}) for item in edition)
    vectors = np.random.default_rng(7).normal(size=(len(cards), DIMENSIONS)).astype(np.float32)
    return SyntheticPool(cards, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@pytest.fixture(scope="module")
def pool() -> SyntheticPool:
    return newspaper(ARTICLES)


@pytest.fixture(scope="module")
def queries(pool: SyntheticPool) -> tuple[list[MarkedQuery], list[str]]:
    """Those that this edition answers, and those that it doesn't."""
    answered, unanswered = marked_queries()
    assert (len(answered), len(unanswered)) == (100, 20)
    return [query for query in answered if query.answers(pool.cards)], unanswered


@pytest.fixture(scope="module")
def found(
    pool: SyntheticPool, queries: tuple[list[MarkedQuery], list[str]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[list[str]]]:
    """Ids that each device shows for each search, in order: with all words, then close in meaning."""
    folder, backend = tmp_path_factory.mktemp("answers"), FakeBackend(pool=pool, pool_codes=True, created_at=NOW)
    settings = DeviceSettings(data_dir=folder, performance=PerformanceSettings(default_list_limit=100))
    device = build_device(
        settings,
        transport=backend.transport(),
        noise=SeededNoise("search"),
        chance=random.Random(5),
        clock=StillClock(NOW),
    )
    words = [query.words for query in queries[0]] + queries[1]
    try:
        device.sync()
        assert device.whole_pool.size() == len(pool.cards)
        device.parts.stores.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        copy = Path(shutil.copy(device.parts.stores.database.path, folder / "given.sqlite"))
        backend.requests.clear()
        mine = [device.library.search(text) for text in words]
        assert backend.requests == []
        given: dict[str, Any] = {
            "file": copy.as_uri(),
            "searches": None,
            "privacy": device.settings.privacy.model_dump(mode="json"),
            "url": "http://127.0.0.1:9",
            "key": "00" * 32,
            "seed": "5",
            "now": NOW.timestamp() * 1000,
            "more": False,
            "words": [(text, 1) for text in words],
            "names": [],
        }
    finally:
        device.close()
    (theirs,) = ask_node([("feed_searched", given)])
    return {
        "python": [[card.id for card in (*each.cards, *each.near)] for each in mine],
        "browser": [[*each["cards"], *each["near"]] for each in theirs["first"]],
    }


@pytest.mark.parametrize("device", ["python", "browser"])
def test_searches_find_most_of_the_stories_that_answer_them(
    pool: SyntheticPool, queries: tuple[list[MarkedQuery], list[str]], found: dict[str, list[list[str]]], device: str
) -> None:
    shown = found[device][: len(queries[0])]
    recalls = [query.recall(each, pool.cards) for query, each in zip(queries[0], shown, strict=True)]
    assert np.mean(recalls) >= RECALL, figures(queries[0], shown, pool.cards)


@pytest.mark.parametrize("device", ["python", "browser"])
def test_searches_that_nothing_answers_find_nothing(
    queries: tuple[list[MarkedQuery], list[str]], found: dict[str, list[list[str]]], device: str
) -> None:
    shown = dict(zip(queries[1], found[device][len(queries[0]) :], strict=True))
    assert {words for words, each in shown.items() if each} == set()


def test_both_devices_find_the_same_answers_in_the_same_order(found: dict[str, list[list[str]]]) -> None:
    assert found["browser"] == found["python"]
