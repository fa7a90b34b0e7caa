"""Naming, muting and forgetting interests."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from device_app.reading.interest_labels import label_of
from device_app.reading.interest_profile import (
    ClickedNews,
    InterestChoice,
    InterestNames,
    clicks_of,
    interest_cards,
    named_profile,
    without_muted,
)
from device_app.store.database import Database
from device_app.store.preferences import Preferences
from protocol.news import NewsCard
from tests.doubles.news import NOW, card


def _click(
    click_id: int, news_id: str, topic: str, vector: tuple[float, float] = (1.0, 0.0), **changes: str
) -> ClickedNews:
    at = NOW + timedelta(minutes=click_id)
    return ClickedNews(click_id, at, card(news_id, topic=topic, **changes), np.array(vector, dtype=np.float32))


def _named(topics: str, titles: list[str], labels: list[int], kept: tuple[InterestChoice, ...] = ()) -> tuple[str, ...]:
    """Names of the interests of clicks on these topics (a letter each: r for rowing) under these headlines."""
    words = {"r": "rowing", "c": "courts", "t": "tides"}
    clicks = [
        _click(at, f"n{at}", words[topic], title=title, abstract="")
        for at, (topic, title) in enumerate(zip(topics, titles, strict=True))
    ]
    return named_profile(clicks, (), np.array(labels), kept).names


CLICKS = [
    _click(1, "a", "rowing"),
    _click(2, "b", "rowing", (0.9, 0.1)),
    _click(3, "c", "courts", (0.0, 1.0)),
    _click(4, "d", "rowing"),
]
LABELS = np.array([0, 0, 1, 0])


def cards_of(clicks: list[ClickedNews]) -> list[NewsCard]:
    return [click.card for click in clicks]


@pytest.fixture
def names(tmp_path: Path) -> InterestNames:
    return InterestNames(Preferences(Database(tmp_path / "device.sqlite")))


def test_interest_is_labelled_by_the_topics_of_its_clicks() -> None:
    assert label_of(cards_of(CLICKS[:2])) == "rowing"
    assert label_of(cards_of([CLICKS[0], CLICKS[2]])) == "rowing and courts"
    assert label_of(cards_of([*CLICKS[:2], CLICKS[3], CLICKS[2]])) == "rowing"


def test_interests_on_one_topic_are_distinguished_by_other_topics() -> None:
    titles = ["Crews rest"] * 8
    assert _named("rrrtrrrc", titles, [0, 0, 0, 0, 1, 1, 1, 1]) == ("rowing and tides", "rowing and courts")
    assert _named("rrrtrrrr", titles, [0, 0, 0, 0, 1, 1, 1, 1]) == ("rowing and tides", "rowing")


def test_interests_on_one_topic_are_distinguished_by_names() -> None:
    titles = [
        "Late crews of Henley wait", "Why Henley rowed late", "The crews of Oxford won", "Rain in Oxford and Henley",
        "The Boat Race of Oxford", "How Oxford lost",
    ]  # fmt: skip
    labels = [0, 0, 1, 0, 1, 1]
    assert _named("rrrrrr", titles, labels) == ("rowing: Henley", "rowing: Oxford")
    assert _named("rrrrrr", titles, labels) == ("rowing: Henley", "rowing: Oxford"), "the same each time"


def test_indistinguishable_interests_are_numbered_avoiding_the_readers_names() -> None:
    assert _named("rrr", ["Crews rest"] * 3, [0, 1, 2]) == ("rowing", "rowing 2", "rowing 3")
    given = (InterestChoice(1, "Rowing", False, frozenset({"n1"})),)
    assert _named("rr", ["Crews rest"] * 2, [0, 1], given) == ("rowing 2", "Rowing")


def test_muted_interest_gets_another_name_than_an_active_one(names: InterestNames) -> None:
    names.mute(["a"], True)
    active, muted = without_muted(CLICKS, names.kept())
    cards = interest_cards(named_profile(active, muted, np.array([0, 1, 0]), names.kept()), names.kept())
    assert [one.label for one in cards] == ["rowing", "courts", "rowing 2"]


def test_interest_cards_show_weight_headlines_and_topics() -> None:
    profile = named_profile(CLICKS, (), LABELS, ())
    rowing, courts = interest_cards(profile, ())
    assert (rowing.label, rowing.weight, rowing.clicks, rowing.key) == ("rowing", 0.75, 3, 1)
    assert [headline.id for headline in rowing.headlines] == ["a", "d", "b"]
    assert rowing.last_click_at == CLICKS[3].at
    assert (courts.label, courts.weight, courts.named_by_reader) == ("courts", 0.25, False)
    assert [click.click_id for click in clicks_of(profile, 4)] == [1, 2, 4]
    assert clicks_of(profile, 99) == ()


def test_name_of_an_interest_stays_with_it_as_clicks_change(names: InterestNames) -> None:
    names.name(["a", "b", "d"], "  On   the water ")
    later = [*CLICKS[1:], _click(5, "e", "rowing"), _click(6, "f", "courts", (0.0, 1.0))]
    profile = named_profile(later, (), np.array([0, 1, 0, 0, 1]), names.kept())
    assert profile.names == ("On the water", "courts")
    assert profile.click_names == ("On the water", "courts", "On the water", "On the water", "courts")


def test_name_given_to_an_interest_is_used_for_one_interest_only() -> None:
    kept = (InterestChoice(1, "Mine", False, frozenset({"a", "b", "c"})),)
    profile = named_profile(CLICKS, (), LABELS, kept)
    assert profile.names == ("Mine", "courts")


def test_muted_interest_contributes_no_clicks_and_comes_last(names: InterestNames) -> None:
    names.mute(["a", "b", "d"], True)
    active, muted = without_muted(CLICKS, names.kept())
    assert [click.card.id for click in active] == ["c"]
    profile = named_profile(active, muted, np.array([0]), names.kept())
    cards = interest_cards(profile, names.kept())
    assert [(one.label, one.muted, one.weight) for one in cards] == [("courts", False, 1.0), ("rowing", True, 0.0)]
    names.mute(["a", "b", "d"], False)
    assert names.kept() == ()


def test_renaming_keeps_the_mute_and_muting_keeps_the_name(names: InterestNames) -> None:
    names.name(["a", "b"], "Water")
    names.mute(["a", "b"], True)
    assert [(one.name, one.muted) for one in names.kept()] == [("Water", True)]
    names.name(["a", "b"], "Lakes")
    assert [(one.name, one.muted) for one in names.kept()] == [("Lakes", True)]
    names.forget(["a", "b"])
    assert names.kept() == ()


def test_blank_name_restores_the_label_and_a_long_one_is_refused(names: InterestNames) -> None:
    names.name(["a"], "Water")
    names.name(["a"], " ")
    assert names.kept() == ()
    with pytest.raises(ValueError, match="limit 60"):
        names.name(["a"], "x" * 61)
