"""The default list: deterministic, recent and weighty first, no section or story in a row for long."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from backend.news.pool import PoolRow
from backend.recall.default_list import default_order

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


def test_newer_and_weightier_news_come_first_other_things_equal() -> None:
    assert default_order([row(1, hours=20), row(2, hours=1)], NOW, 10) == [1, 0]
    assert default_order([row(1, weight=0.1), row(2, weight=0.9)], NOW, 10) == [1, 0]


def test_equal_news_are_ordered_by_id() -> None:
    assert default_order([row(2), row(1), row(3)], NOW, 10) == [1, 0, 2]


def test_the_list_has_the_asked_length_and_no_repeats() -> None:
    news = [row(n, hours=n % 50, section=f"s{n % 6}") for n in range(300)]
    order = default_order(news, NOW, 100)
    assert len(order) == len(set(order)) == 100
    assert sorted(default_order(news, NOW, 1_000)) == list(range(300))


def test_one_busy_section_does_not_fill_the_page() -> None:
    news = [row(n, hours=0.1, weight=0.9, section="busy") for n in range(50)]
    news += [row(100 + n, hours=2, weight=0.6, section=f"quiet{n % 7}") for n in range(50)]
    first = default_order(news, NOW, 24)
    sections = Counter(news[place].section for place in first)
    assert sections["busy"] <= 8
    assert len(sections) == 8


def test_the_second_item_of_a_story_waits() -> None:
    news = [row(1, weight=1, story="s"), row(2, weight=1, story="s"), *(row(n, weight=0.5) for n in range(3, 9))]
    order = default_order(news, NOW, 8)
    assert order[0] == 0
    assert order.index(1) == 7


def test_the_order_does_not_depend_on_when_it_is_asked_for() -> None:
    news = [row(n, hours=(n * 37) % 200, weight=(n % 10) / 10, section=f"s{n % 5}") for n in range(200)]
    assert default_order(news, NOW, 100) == default_order(news, NOW + timedelta(hours=9), 100)


def test_news_dated_in_the_future_count_as_of_now() -> None:
    assert default_order([row(1, hours=-500, weight=0.2), row(2, hours=0, weight=0.9)], NOW, 2) == [1, 0]


def test_no_news_give_an_empty_list() -> None:
    assert default_order([], NOW, 10) == []
