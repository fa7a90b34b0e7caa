"""Filters, scores, variety and slots on synthetic articles; every oracle is a direct count or a brute-force search."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from device_app.feed.candidates import Candidates, together, unit
from device_app.feed.diversity import SPREADS, Cap, Share, diversified
from device_app.feed.exclusions import allowed, one_of_each
from device_app.feed.exploration import explore_rows, fresh_rows
from device_app.feed.feature_context import feature_context
from device_app.feed.page_order import developing_groups, placed
from device_app.feed.preference_reader import MutedInterest, Named, UserPreferences
from device_app.feed.reasons import reasons
from device_app.feed.scores import adjusted, recency
from device_app.feed.similarity import SimilarityRule
from device_app.ranking.ranker import FEATURES, feature_columns
from device_app.settings import FeedSettings
from models.user.candidate_attention import KNOWN_WEIGHTS
from tests.doubles.news import NOW, card, synthetic_pool

NONE = np.zeros((0, 256), np.float32)
NO_TASTES = UserPreferences((), NONE, (), (), NONE, NONE)
POOL = synthetic_pool(600)
CANDIDATES = Candidates(POOL.cards, POOL.vectors, "encoder")
SETTINGS = FeedSettings()
SIMILARITY = SimilarityRule(CANDIDATES, CANDIDATES.similarity_floor)


def _reader_of(topic: str, clicks: int = 6) -> UserPreferences:
    rows = POOL.of_topic(topic)[:clicks]
    return replace(
        NO_TASTES,
        clicks=tuple(POOL.cards[row] for row in rows),
        click_vectors=POOL.vectors[rows],
        click_interests=("mine",) * len(rows),
        read=frozenset(POOL.cards[row].id for row in rows),
    )


def _fit(user_preferences: UserPreferences) -> np.ndarray:
    return (CANDIDATES.unit_vectors @ user_preferences.click_vectors.mean(axis=0)).astype(np.float32)


@pytest.mark.parametrize(
    "blocked",
    [
        Named(topics=frozenset({"section1 topic2"})),
        Named(sections=frozenset({"section1"})),
        Named(publishers=frozenset({"Paper 3"})),
    ],
)
def test_only_stories_with_a_blocked_name_are_excluded(blocked: Named) -> None:
    kept = allowed(CANDIDATES, replace(NO_TASTES, blocked=blocked))
    for row, one in enumerate(POOL.cards):
        hit = one.topic in blocked.topics or one.section in blocked.sections or one.publisher in blocked.publishers
        assert kept[row] == (not hit)


def test_opened_and_unwanted_articles_are_excluded() -> None:
    kept = allowed(CANDIDATES, replace(NO_TASTES, read=frozenset({"n00003"}), disliked_ids=frozenset({"n00005"})))
    assert np.flatnonzero(~kept).tolist() == [3, 5]


def test_muted_interest_removes_its_topic_and_leaves_the_others() -> None:
    rows = POOL.of_topic("section2 topic1")[:8]
    user_preferences = replace(
        _reader_of("section5 topic0"), muted=(MutedInterest("x", POOL.vectors[rows]),), read=frozenset()
    )
    kept = allowed(CANDIDATES, user_preferences)
    gone = Counter(POOL.cards[row].topic for row in np.flatnonzero(~kept))
    assert set(gone) == {"section2 topic1"}
    assert gone["section2 topic1"] >= 0.7 * len(POOL.of_topic("section2 topic1"))


def test_seen_story_loses_the_penalty_and_twice_the_penalty_after_three_views() -> None:
    reader = _reader_of("section5 topic0")
    fit = np.zeros(len(CANDIDATES), dtype=np.float32)
    times = np.zeros(len(CANDIDATES))
    times[[3, 4]] = 1, 3
    weights = FeedSettings(seen_penalty=0.7)
    plain = adjusted(fit, CANDIDATES, reader, NOW, weights).total
    sunk = plain - adjusted(fit, CANDIDATES, reader, NOW, weights, times_seen=times).total
    np.testing.assert_allclose(sunk[[2, 3, 4]], [0.0, 0.7, 1.4])


def test_fresh_and_explore_slots_get_unseen_stories() -> None:
    reader = _reader_of("section5 topic0")
    scores = np.linspace(1, 0, len(CANDIDATES))
    seen = np.zeros(len(CANDIDATES), dtype=bool)
    for _ in range(5):
        drawn_by = random.Random(1)
        page = placed(
            CANDIDATES, scores, reader, NOW, SETTINGS, size=30, chance=drawn_by, similarity=SIMILARITY, seen=seen
        )
        drawn = [place.row for place in page if place.slot in ("fresh", "explore")]
        assert drawn
        assert not seen[drawn].any()
        seen[drawn] = True


def test_lead_is_neither_seen_nor_a_further_report_of_an_event_that_was_read() -> None:
    """Scores rise with the row, so that the last row would lead. n3 lists a report that was read."""
    report = [
        card(f"n{row}", title=f"Headline {row}", topic=f"topic {row}", section=f"section {row}") for row in range(6)
    ]
    report[5] = report[5].model_copy(update={"story": "storm"})
    candidates = Candidates(tuple(report), np.eye(6, 256, dtype=np.float32), "encoder")
    reader = replace(NO_TASTES, read_events=frozenset({"storm", "n3"}))
    scores, seen = np.arange(6, dtype=float), np.array([False, False, False, False, True, False])
    settings = SETTINGS.model_copy(update={"fresh_slots": 0, "explore_slots": 0, "developing_stories": 0})
    page = placed(
        candidates,
        scores,
        reader,
        NOW,
        settings,
        size=3,
        chance=random.Random(1),
        similarity=SimilarityRule(candidates, None),
        seen=seen,
    )
    assert (page[0].slot, candidates.cards[page[0].row].id) == ("lead", "n2")


def test_promised_report_of_the_leads_event_replaces_the_lead() -> None:
    report = [
        card(f"n{row}", title=f"Headline {row}", topic=f"topic {row}", section=f"section {row}") for row in range(6)
    ]
    for row in (0, 5):
        report[row] = report[row].model_copy(update={"story": "storm"})
    candidates = Candidates(tuple(report), np.eye(6, 256, dtype=np.float32), "encoder")
    settings = SETTINGS.model_copy(update={"fresh_slots": 0, "explore_slots": 0, "developing_stories": 0})
    page = placed(
        candidates,
        np.arange(6, dtype=float),
        NO_TASTES,
        NOW,
        settings,
        size=3,
        chance=random.Random(1),
        similarity=SimilarityRule(candidates, None),
        promised={0: "for_you"},
    )
    assert [(place.row, place.slot) for place in page] == [(0, "lead"), (4, "for_you"), (3, "for_you")]


def test_promised_report_of_a_developing_story_splits_no_other_group() -> None:
    report = [
        card(f"n{row}", title=f"Headline {row}", topic=f"topic {row}", section=f"section {row}") for row in range(8)
    ]
    for row in (5, 6):
        report[row] = report[row].model_copy(update={"story": "storm", "topic": "weather", "section": "news"})
    candidates = Candidates(tuple(report), np.eye(8, 256, dtype=np.float32), "encoder")
    settings = SETTINGS.model_copy(update={"fresh_slots": 0, "explore_slots": 0, "section_share": 1.0})
    page = placed(
        candidates,
        np.arange(8, dtype=float),
        NO_TASTES,
        NOW,
        settings,
        size=6,
        chance=random.Random(1),
        similarity=SimilarityRule(candidates, None),
        promised={0: "developing"},
    )
    assert [place.row for place in page if place.slot == "developing"] == [5, 6]
    assert 0 in [place.row for place in page if place.slot == "for_you"]


def test_developing_stories_have_a_report_of_the_last_hours() -> None:
    ages = {"new": (1, 30), "old": (9, 30)}
    reports = [
        card(f"{story}-{age}", title=f"{story} {age}", story=story, published_at=NOW - timedelta(hours=age))
        for story, pair in ages.items()
        for age in pair
    ]
    candidates = Candidates(tuple(reports), np.tile(POOL.vectors[:1], (4, 1)), "encoder")
    assert SETTINGS.fresh_hours == 6
    page = placed(
        candidates,
        np.array([0.0, 0.0, 5.0, 5.0]),
        NO_TASTES,
        NOW,
        SETTINGS,
        size=30,
        chance=random.Random(1),
        similarity=SimilarityRule(candidates, None),
    )
    developing = [candidates.cards[place.row].story for place in page if place.slot == "developing"]
    assert developing == ["new", "new"]


def test_only_the_best_article_of_a_story_or_headline_is_shown() -> None:
    cards = (
        card("a", story="s"), card("b", story="s"), card("c", title="Same"), card("d", title=" same "), card("e"),
    )  # fmt: skip
    few = Candidates(cards, np.eye(5, 256, dtype=np.float32), "encoder")
    assert one_of_each(few, np.array([1.0, 2.0, 3.0, 2.5, 0.0])).tolist() == [False, True, True, False, True]


def test_recency_halves_with_every_half_life_and_the_future_counts_as_now() -> None:
    ages = [timedelta(0), timedelta(hours=48), timedelta(hours=96), timedelta(hours=-5)]
    cards = tuple(card(f"n{n}", published_at=NOW - age) for n, age in enumerate(ages))
    few = Candidates(cards, np.eye(4, 256, dtype=np.float32), "encoder")
    np.testing.assert_allclose(recency(few, NOW, 48.0), [1, 0.5, 0.25, 1])


def test_scores_are_independent_of_the_rankers_scale() -> None:
    fit = np.random.default_rng(1).normal(size=600).astype(np.float32)
    base = adjusted(fit, CANDIDATES, NO_TASTES, NOW, SETTINGS).total
    np.testing.assert_allclose(adjusted(100 * fit + 7, CANDIDATES, NO_TASTES, NOW, SETTINGS).total, base, atol=1e-4)
    alike = adjusted(np.full(600, 3.0, np.float32), CANDIDATES, NO_TASTES, NOW, SETTINGS)
    assert alike.terms["content"].tolist() == [0.0] * 600


def test_recency_used_by_the_ranker_is_not_counted_again() -> None:
    fit = np.random.default_rng(1).normal(size=600).astype(np.float32)
    reader = _reader_of("section0 topic0")
    base = adjusted(fit, CANDIDATES, reader, NOW, SETTINGS).total
    once = adjusted(fit, CANDIDATES, reader, NOW, SETTINGS, weighed={"recency": np.zeros(600)}).total
    fresh = recency(CANDIDATES, NOW, SETTINGS.half_life_hours)
    np.testing.assert_allclose(base - once, SETTINGS.recency_weight * fresh)
    popular = adjusted(fit, CANDIDATES, reader, NOW, SETTINGS, weighed={"popularity": np.zeros(600)})
    np.testing.assert_allclose(popular.total, base)


def test_default_rankers_recency_without_clicks_equals_the_feeds_own() -> None:
    fresh = recency(CANDIDATES, NOW, SETTINGS.half_life_hours)
    fit = (KNOWN_WEIGHTS["recency"] * fresh).astype(np.float32)
    own = adjusted(np.zeros(600, np.float32), CANDIDATES, NO_TASTES, NOW, SETTINGS).total
    learnt = adjusted(fit, CANDIDATES, NO_TASTES, NOW, SETTINGS, weighed={"recency": fit.astype(np.float64)}).total
    np.testing.assert_allclose(learnt - learnt.mean(), own - own.mean(), atol=1e-5)


def test_ranker_features_match_the_readers_sections_and_topics() -> None:
    seen = feature_context(CANDIDATES, _reader_of("section0 topic0", 4), NOW, SETTINGS)
    columns = dict(zip(FEATURES, feature_columns(tuple(FEATURES), seen).T, strict=True))
    np.testing.assert_array_equal(columns["topic_affinity"], [one.topic == "section0 topic0" for one in POOL.cards])
    np.testing.assert_array_equal(columns["section_affinity"], [one.section == "section0" for one in POOL.cards])
    np.testing.assert_allclose(columns["recency"], recency(CANDIDATES, NOW, SETTINGS.half_life_hours), rtol=1e-6)
    assert not columns["popularity"].any(), "no list carries it yet"


def test_followed_topic_gets_its_weight_and_a_chosen_section_less_with_more_clicks() -> None:
    fit = np.zeros(600, np.float32)
    base = adjusted(fit, CANDIDATES, NO_TASTES, NOW, SETTINGS).total
    topic = np.array([one.topic == "section1 topic1" for one in POOL.cards])
    follower = replace(NO_TASTES, followed=Named(topics=frozenset({"section1 topic1"})))
    np.testing.assert_allclose(
        adjusted(fit, CANDIDATES, follower, NOW, SETTINGS).total - base, SETTINGS.follow_weight * topic
    )
    chooser = replace(NO_TASTES, chosen_sections=frozenset({"section4"}))
    lift = adjusted(fit, CANDIDATES, chooser, NOW, SETTINGS).total - base
    section = np.array([one.section == "section4" for one in POOL.cards])
    np.testing.assert_allclose(lift, SETTINGS.chosen_section_weight * section)
    reader = replace(_reader_of("section0 topic0", 5), chosen_sections=frozenset({"section4"}))
    faded = adjusted(fit, CANDIDATES, reader, NOW, SETTINGS).total - base
    np.testing.assert_allclose(faded, (1 - 5 / SETTINGS.blend_reads) * lift)


def test_like_raises_similar_stories_and_less_lowers_them() -> None:
    rows = POOL.of_topic("section3 topic0")
    fit = np.zeros(600, np.float32)
    base = adjusted(fit, CANDIDATES, NO_TASTES, NOW, SETTINGS).total
    liked = adjusted(fit, CANDIDATES, replace(NO_TASTES, liked=POOL.vectors[rows[:1]]), NOW, SETTINGS).total - base
    less = adjusted(fit, CANDIDATES, replace(NO_TASTES, disliked=POOL.vectors[rows[:1]]), NOW, SETTINGS).total - base
    cosines = CANDIDATES.unit_vectors @ POOL.vectors[rows[0]]
    nearest = np.argsort(-cosines)[: SETTINGS.reaction_reach]
    assert sorted(np.flatnonzero(liked).tolist()) == sorted(nearest.tolist()), "it reaches so many cards and no more"
    np.testing.assert_allclose(liked[nearest], SETTINGS.reaction_weight * cosines[nearest], rtol=1e-5)
    assert np.flatnonzero(less).tolist() == [rows[0]], "the pressed card goes; no other is pushed as far"
    np.testing.assert_allclose(less[rows[0]], -liked[rows[0]], rtol=1e-6)


def _mmr_by_hand(scores: np.ndarray, units: np.ndarray, count: int, variety: float) -> list[int]:
    """The definition, one candidate at a time, over the whole pool."""
    relevance = (scores - scores.min()) / (SPREADS * scores.std())
    picked: list[int] = []
    while len(picked) < count:

        def worth(row: int) -> float:
            likeness = max((float(units[row] @ units[other]) for other in picked), default=0.0)
            return (1 - variety) * relevance[row] - variety * max(likeness, 0.0)

        picked.append(max((row for row in range(len(scores)) if row not in picked), key=lambda row: (worth(row), -row)))
    return picked


@pytest.mark.parametrize("variety", [0.0, 0.3, 0.9])
def test_variety_matches_maximal_marginal_relevance(variety: float) -> None:
    draw = np.random.default_rng(5)
    scores, units = np.sort(draw.normal(size=60))[::-1].copy(), unit(draw.normal(size=(60, 8)).astype(np.float32))
    assert diversified(scores, units, (), count=12, variety=variety) == _mmr_by_hand(scores, units, 12, variety)


def test_topic_count_stays_within_its_cap() -> None:
    user_preferences = _reader_of("section0 topic0")
    scores = adjusted(_fit(user_preferences), CANDIDATES, user_preferences, NOW, SETTINGS).total
    rows = diversified(scores, CANDIDATES.unit_vectors, [Cap(CANDIDATES.topics, 2)], count=30, variety=0.0)
    assert len(rows) == 30
    assert max(Counter(POOL.cards[row].topic for row in rows).values()) == 2


def test_developing_groups_have_two_or_more_stories_newest_first() -> None:
    cards = tuple(
        card(f"n{n}", story=story, published_at=NOW - timedelta(hours=hours))
        for n, (story, hours) in enumerate([("a", 5), ("a", 1), ("b", 2), ("c", 9), ("c", 8), ("c", 7), ("c", 6)])
    )
    few = Candidates(cards, np.eye(7, 256, dtype=np.float32), "encoder")
    scores = np.array([1.0, 1.0, 9.0, 2.0, 2.0, 0.0, 0.0])
    free = np.ones(7, bool)
    assert developing_groups(few, free, scores, stories=2, similarity=SimilarityRule(few, 0.5)) == [[6, 5, 4], [1, 0]]
    free[1] = False
    assert developing_groups(few, free, scores, stories=2, similarity=SimilarityRule(few, 0.5)) == [[6, 5, 4]]


def test_fresh_articles_are_from_the_last_hours_and_from_different_sections() -> None:
    rows = fresh_rows(CANDIDATES, np.ones(600, bool), NOW, SETTINGS, random.Random(3))
    assert len(rows) == SETTINGS.fresh_slots
    assert all(NOW - POOL.cards[row].published_at <= timedelta(hours=SETTINGS.fresh_hours) for row in rows)
    assert len({POOL.cards[row].section for row in rows}) == len(rows)


def test_exploration_prefers_rarely_read_sections() -> None:
    user_preferences = _reader_of("section0 topic0", 10)
    chance = random.Random(11)
    drawn = Counter(
        POOL.cards[row].section
        for _ in range(200)
        for row in explore_rows(CANDIDATES, np.ones(600, bool), user_preferences, NOW, SETTINGS, chance)
    )
    assert sum(drawn.values()) == 400
    assert drawn["section0"] < 15 < min(count for section, count in drawn.items() if section != "section0")


def test_page_has_a_lead_fills_every_slot_and_repeats_no_story() -> None:
    user_preferences = _reader_of("section0 topic0")
    rows = np.flatnonzero(allowed(CANDIDATES, user_preferences))
    showable = CANDIDATES.only(rows)
    scores = adjusted(_fit(user_preferences)[rows], showable, user_preferences, NOW, SETTINGS).total
    similarity = SimilarityRule(showable, CANDIDATES.similarity_floor)
    page = placed(
        showable, scores, user_preferences, NOW, SETTINGS, size=30, chance=random.Random(2), similarity=similarity
    )
    slots = Counter(place.slot for place in page)
    assert len(page) == 30
    assert page[0].slot == "lead"
    assert slots["lead"] == 1
    assert slots["fresh"] == SETTINGS.fresh_slots
    assert slots["explore"] == SETTINGS.explore_slots
    assert slots["developing"] >= 2
    assert len({place.row for place in page}) == 30
    grouped = {showable.cards[place.row].story for place in page if place.slot == "developing"}
    alone = [showable.cards[place.row].story for place in page if place.slot != "developing"]
    reported = [story for story in alone if story]
    assert not grouped & set(reported)
    assert len(reported) == len(set(reported))


@pytest.mark.parametrize(("less", "places"), [(0, 6), (1, 5), (3, 3), (9, 1)])
def test_less_reduces_a_topic_in_a_read_section_but_leaves_at_least_one_story(less: int, places: int) -> None:
    """All of the read topic's stories have been opened, so its section's share goes to the topics beside it."""
    read = _reader_of("section0 topic0", clicks=100)
    user_preferences = replace(read, unwanted=("section0 topic1",) * less)
    rows = np.flatnonzero(allowed(CANDIDATES, user_preferences))
    showable = CANDIDATES.only(rows)
    similarity = SimilarityRule(showable, CANDIDATES.similarity_floor)
    reported = showable.named(showable.topics, {"section0 topic1"})
    page = placed(
        showable,
        reported.astype(np.float64),
        user_preferences,
        NOW,
        SETTINGS,
        size=30,
        chance=random.Random(2),
        similarity=similarity,
    )
    slots = Counter(place.slot for place in page if reported[place.row])
    assert slots["lead"] + slots["for_you"] + slots["developing"] == max(places, slots["developing"])
    assert slots["developing"] <= 2, "reports on one event, which are news for everybody"
    assert len(page) == 30


@pytest.mark.parametrize("sections", [1, 2, 4])
def test_page_of_a_narrow_pool_is_full_despite_section_shares(sections: int) -> None:
    names = {f"section{number}" for number in range(sections)}
    few = CANDIDATES.only(np.array([card.section in names for card in CANDIDATES.cards]))
    scores = np.random.default_rng(3).normal(size=len(few))
    page = placed(
        few,
        scores,
        NO_TASTES,
        NOW,
        SETTINGS,
        size=30,
        chance=random.Random(1),
        similarity=SimilarityRule(few, few.similarity_floor),
    )
    rows = [place.row for place in page]
    assert len(set(rows)) == len(rows) == 30


def test_reasons_name_the_clicks_with_the_largest_weights() -> None:
    user_preferences = _reader_of("section0 topic0")
    scores = adjusted(_fit(user_preferences), CANDIDATES, user_preferences, NOW, SETTINGS)
    page = placed(
        CANDIDATES,
        scores.total,
        user_preferences,
        NOW,
        SETTINGS,
        size=30,
        chance=random.Random(2),
        similarity=SIMILARITY,
    )
    said = reasons(CANDIDATES, page, user_preferences, scores, SIMILARITY, np.ones(len(CANDIDATES), dtype=bool))
    lead = said[0]
    assert (lead.kind, lead.interest) == ("interest", "mine")
    vector = CANDIDATES.unit_vectors[page[0].row]
    nearest = int(np.argmax(user_preferences.click_vectors @ vector))
    assert lead.clicks[0] == user_preferences.clicks[nearest]
    assert {reason.kind for reason, place in zip(said, page, strict=True) if place.slot == "fresh"} == {"recent"}


def test_reason_for_a_reader_without_clicks_says_that_nothing_about_them_is_used() -> None:
    scores = adjusted(np.zeros(600, np.float32), CANDIDATES, NO_TASTES, NOW, SETTINGS)
    page = placed(
        CANDIDATES, scores.total, NO_TASTES, NOW, SETTINGS, size=30, chance=random.Random(2), similarity=SIMILARITY
    )
    recent = np.ones(len(CANDIDATES), dtype=bool)
    assert "Nothing about you" in reasons(CANDIDATES, page, NO_TASTES, scores, SIMILARITY, recent)[0].words


def test_candidates_merge_without_repeats_and_never_across_encoders() -> None:
    first, second = CANDIDATES.only(np.arange(10)), CANDIDATES.only(np.arange(5, 15))
    both = together(first, second)
    assert [one.id for one in both.cards] == [f"n{row:05d}" for row in range(15)]
    np.testing.assert_array_equal(both.vectors, POOL.vectors[:15])
    assert together(first, Candidates(second.cards, second.vectors, "another")) is first


def test_feed_page_is_empty_when_no_candidate_is_left() -> None:
    """Every place went to fresh and unfamiliar stories, or the caps excluded everything."""
    rows = np.ones(len(CANDIDATES), dtype=bool)
    scores = np.linspace(0, 1, len(CANDIDATES))
    caps = [Cap(CANDIDATES.topics, 0)]
    for some, count in (([], 0), (caps, 5)):
        assert diversified(scores, CANDIDATES.unit_vectors, some, [Share(rows, 3)], count=count, variety=0.3) == []
