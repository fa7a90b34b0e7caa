"""Mute rules hide stories everywhere, and show them again. Oracle: which stories the test gave a word to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from device_app.reading.mute_patterns import PatternRefused
from device_app.reading.muting import Muting
from device_app.store.articles import Selection
from device_app.stores import DeviceStores
from protocol.news import NewsCard

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[DeviceStores]:
    made = DeviceStores(tmp_path / "device.sqlite")
    made.news.put_cards([card("a", "Lottery draw"), card("b", "A harbour"), card("c", "Old lottery", days=3)], NOW)
    yield made
    made.close()


def card(news_id: str, title: str, days: float = 0) -> NewsCard:
    return NewsCard(
        id=news_id, title=title, abstract="", url=f"https://example.org/{news_id}", publisher="Wire", section="sea",
        topic="ports", published_at=NOW - timedelta(days=days, minutes=1), weight=0.5,
    )  # fmt: skip


def muting(stores: DeviceStores) -> Muting:
    return Muting(stores.mute_rules, lambda: NOW)


def listed_ids(stores: DeviceStores) -> set[str]:
    return {place.id for place in stores.articles.page(Selection(), 10)}


def test_mute_rule_hides_present_and_future_stories_and_counts_those_of_today(stores: DeviceStores) -> None:
    rules = muting(stores)
    rules.add("title", "word", "lottery")
    assert listed_ids(stores) == {"b"}
    assert stores.articles.counts() == {"Wire": (1, 1)}
    stores.news.put_cards([card("d", "The LOTTERY again"), card("e", "A lighthouse")], NOW)
    ((rule, today),) = rules.rules()
    assert (rule.pattern, today) == ("lottery", 2)
    assert listed_ids(stores) == {"b", "e"}
    assert stores.articles.count_hidden(Selection(("Wire",))) == 3


def test_removing_a_rule_shows_its_stories_unless_another_rule_hides_them(stores: DeviceStores) -> None:
    rules = muting(stores)
    rules.add("title", "word", "lottery")
    rules.add("address", "phrase", "example.org/a")
    first = rules.rules()[0][0]
    rules.remove(first.id)
    assert listed_ids(stores) == {"b", "c"}
    assert rules.remove(first.id) is None


def test_rules_check_a_late_text_and_a_corrected_title(stores: DeviceStores) -> None:
    rules = muting(stores)
    rules.add("text", "phrase", "crossword")
    rules.add("title", "regex", "^correct(ed)?$")
    assert listed_ids(stores) == {"a", "b", "c"}
    stores.news.put_bodies({"a": "The answers to our crossword."})
    stores.news.put_cards([card("b", "Corrected")], NOW)
    rules.catch_up()
    assert listed_ids(stores) == {"c"}


def test_invalid_pattern_changes_nothing(stores: DeviceStores) -> None:
    with pytest.raises(PatternRefused, match="ends too early"):
        muting(stores).add("title", "regex", "(lottery")
    assert stores.mute_rules.all() == ()


def test_no_story_waits_for_checking_when_there_are_no_rules(stores: DeviceStores) -> None:
    assert stores.database.number("SELECT count(*) FROM unjudged") == 0
    assert muting(stores).catch_up() == 0
