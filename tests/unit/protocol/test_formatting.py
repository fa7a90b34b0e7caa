"""Formatted figures on both sides of every step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from protocol import formatting

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("since", "words"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=89), "just now"),
        (timedelta(minutes=14), "14 min"),
        (timedelta(hours=3, minutes=59), "3 h"),
        (timedelta(hours=24), "yesterday"),
        (timedelta(days=4), "4 days"),
        (timedelta(days=20), "31 Oct 2026"),
    ],
)
def test_age_is_formatted_in_its_largest_unit(since: timedelta, words: str) -> None:
    assert formatting.age(NOW - since, NOW) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (999_960, "1.0 MB"), (2_340_000, "2.3 MB"), (5e12, "5.0 TB")],
)
def test_size_is_formatted_in_its_unit(count: float, words: str) -> None:
    assert formatting.size(count) == words


@pytest.mark.parametrize(
    ("ms", "words"),
    [(None, "–"), (0.44, "0.44 ms"), (9.84, "9.8 ms"), (19.4, "19 ms"), (999.0, "999 ms"), (1_300.0, "1.30 s")],
)
def test_milliseconds_are_formatted(ms: float | None, words: str) -> None:
    assert formatting.milliseconds(ms) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (50.0, "50"),
        (50.00000000000001, "50"),
        (1 / 3, "0.333"),
        (999.9, "1,000"),
        (12_312, "12,312"),
        (999_999.9, "1 million"),
        (4_900_000, "4.9 million"),
        (1e9, "1,000 million"),
        (float("inf"), "without bound"),
    ],
)
def test_number_is_formatted(value: float, words: str) -> None:
    assert formatting.number(value) == words


@pytest.mark.parametrize(
    ("value", "text"), [(150.0, "150"), (0.5, "0.5"), (1e9, "1000000000"), (0.1 + 0.2, "0.3"), (0.0, "0")]
)
def test_number_in_a_form_field_is_formatted_as_a_person_types_it(value: float, text: str) -> None:
    assert formatting.typed(value) == text


def test_reading_minutes_are_at_least_one() -> None:
    assert formatting.reading_minutes("one word") == 1
    assert formatting.reading_minutes("word " * 660) == 3


def test_plural_follows_the_number() -> None:
    assert formatting.plural(1, "click") == "1 click"
    assert formatting.plural(10_000, "click") == "10,000 clicks"
    assert formatting.plural(0, "story", "stories") == "0 stories"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "0 s ago"), (119, "119 s ago"), (840, "14 min ago"), (10_800, "3 h ago"), (4 * 86_400, "4 days ago")],
)
def test_elapsed_time_is_formatted_with_ago(seconds: float, words: str) -> None:
    assert formatting.ago(NOW - timedelta(seconds=seconds), NOW) == words
