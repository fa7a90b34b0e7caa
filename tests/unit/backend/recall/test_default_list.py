"""The default list is deterministic, recent and important first, and mixes sections and stories.

Oracle: a plain restatement, which sorts the whole pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from backend.news.pool_reading import PoolRow
from backend.recall.catalogue import NewsColumns
from backend.recall.default_list import (
    HALF_LIFE_HOURS,
    SECTION_REPEAT,
    SECTION_WINDOW,
    STORY_REPEAT,
    WEIGHT_FLOOR,
    default_order,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def row(number: int, *, hours: float = 1, weight: float = 0.5, section: str = "a", story: str | None = None) -> PoolRow:
    return PoolRow(
        number=number,
        id=f"n{number:04d}",
        title="t",
        abstract="",
        url="",
        publisher="",
        section=section,
        topic="t",
        story=story,
        published_at=NOW - timedelta(hours=hours),
        weight=weight,
        duplicate_of=None,
    )


def order_of(news: Sequence[PoolRow], now: datetime, limit: int) -> list[int]:
    return default_order(NewsColumns.of(news), now, limit)


def whole_order(news: Sequence[PoolRow], limit: int) -> list[int]:
    """Apply the rules, one article after the other, over the whole pool."""
    ages = [max((NOW - each.published_at).total_seconds() / 3_600, 0) for each in news]
    scores = [
        (WEIGHT_FLOOR + (1 - WEIGHT_FLOOR) * each.weight) * 0.5 ** (age / HALF_LIFE_HOURS)
        for each, age in zip(news, ages, strict=True)
    ]
    reported: Counter[str] = Counter()
    worth: dict[int, float] = {}
    for at in sorted(range(len(news)), key=lambda at: (-scores[at], news[at].id)):
        story = news[at].story
        worth[at] = scores[at] * (STORY_REPEAT ** reported[story] if story else 1)
        reported[story or ""] += 1
    order: list[int] = []
    while worth and len(order) < limit:
        recent = Counter(news[at].section for at in order[-SECTION_WINDOW:])
        heads: dict[str, int] = {}
        for at in worth:
            section = news[at].section
            if section not in heads or (-worth[at], news[at].id) < (-worth[heads[section]], news[heads[section]].id):
                heads[section] = at
        best = max(heads, key=lambda name: (worth[heads[name]] * SECTION_REPEAT ** recent[name], name))
        order.append(heads[best])
        del worth[heads[best]]
    return order


@pytest.mark.parametrize("seed", range(4))
def test_default_list_of_the_best_articles_equals_that_of_the_whole_pool(seed: int) -> None:
    """With few sections and long stories, so that places go to articles far down; some have equal weights and dates."""
    draw = np.random.default_rng(seed)
    news = [
        row(
            number,
            hours=float(draw.integers(0, 90)),
            weight=float(draw.integers(0, 4)) / 4,
            section="rare" if draw.random() < 0.02 else f"s{draw.integers(1 + seed)}",
            story=f"story{draw.integers(6)}" if draw.random() < 0.4 else None,
        )
        for number in draw.permutation(700).tolist()
    ]
    assert order_of(news, NOW, 25) == whole_order(news, 25)


def test_newer_and_more_important_articles_come_first() -> None:
    assert order_of([row(1, hours=20), row(2, hours=1)], NOW, 10) == [1, 0]
    assert order_of([row(1, weight=0.1), row(2, weight=0.9)], NOW, 10) == [1, 0]


def test_equal_articles_are_ordered_by_id() -> None:
    assert order_of([row(2), row(1), row(3)], NOW, 10) == [1, 0, 2]


def test_list_has_the_requested_length_without_repeats() -> None:
    news = [row(n, hours=n % 50, section=f"s{n % 6}") for n in range(300)]
    order = order_of(news, NOW, 100)
    assert len(order) == len(set(order)) == 100
    assert sorted(order_of(news, NOW, 1_000)) == list(range(300))


def test_one_busy_section_does_not_fill_the_page() -> None:
    news = [row(n, hours=0.1, weight=0.9, section="busy") for n in range(50)]
    news += [row(100 + n, hours=2, weight=0.6, section=f"quiet{n % 7}") for n in range(50)]
    first = order_of(news, NOW, 24)
    sections = Counter(news[place].section for place in first)
    assert sections["busy"] <= 8
    assert len(sections) == 8


def test_second_article_of_a_story_comes_later_in_the_list() -> None:
    news = [row(1, weight=1, story="s"), row(2, weight=1, story="s"), *(row(n, weight=0.5) for n in range(3, 9))]
    order = order_of(news, NOW, 8)
    assert order[0] == 0
    assert order.index(1) == 7


def test_order_does_not_depend_on_the_time_of_the_request() -> None:
    news = [row(n, hours=(n * 37) % 200, weight=(n % 10) / 10, section=f"s{n % 5}") for n in range(200)]
    assert order_of(news, NOW, 100) == order_of(news, NOW + timedelta(hours=9), 100)


def test_articles_dated_in_the_future_count_as_published_now() -> None:
    assert order_of([row(1, hours=-500, weight=0.2), row(2, hours=0, weight=0.9)], NOW, 2) == [1, 0]


def test_empty_pool_gives_an_empty_list() -> None:
    assert order_of([], NOW, 10) == []
