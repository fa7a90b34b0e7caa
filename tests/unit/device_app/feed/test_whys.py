"""Reasons and similarity on hand-made cards, where the true reason is obvious."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from device_app.feed.candidates import Candidates
from device_app.feed.page_order import SlottedRow, developing_groups
from device_app.feed.preference_reader import Named, UserPreferences
from device_app.feed.reasons import WHYS, reasons
from device_app.feed.scores import ScoreTerms, adjusted
from device_app.feed.similarity import SimilarityRule, floor_of
from device_app.reading import interest_labels as by_capitals
from device_app.reading.interest_labels import forget_names, proper_names
from device_app.settings import FeedSettings
from protocol.news import NewsCard
from protocol.releases import RecallProtocol, ReleaseManifest
from protocol.similarity import FEWEST_NEWS, SIMILARITY_PERCENTILE, random_cosines, similarity_floor
from tests.doubles.news import NOW, card, synthetic_pool

DIM = 8
NONE = np.zeros((0, DIM), np.float32)
NOBODY = UserPreferences((), NONE, (), (), NONE, NONE)
TERMS = (
    "content", "topic_affinity", "section_affinity", "recency", "popularity", "editorial", "followed", "chosen",
    "reactions",
    "rare",
)  # fmt: skip


def _manifest(floor: float | None) -> ReleaseManifest:
    protocol = RecallProtocol(basis_size=2, channels_limit=5, cluster_distance=1.0, score_clip=0.2, score_noise=1.2)
    return ReleaseManifest(
        release="r1",
        previous=None,
        created_at=NOW,
        encoder="encoder",
        dimensions=DIM,
        opset=18,
        recall=protocol,
        models={},
        default_ranker="ranker.features",
        kinship_floor=floor,
    )


def _axis(*weights: float) -> np.ndarray:
    vector = np.zeros(DIM, np.float32)
    vector[: len(weights)] = weights
    return vector / np.linalg.norm(vector)


PESTO = card("pesto", title="A pesto without basil", abstract="Parsley does it.", section="food", topic="recipes")
MATCH = card("match", title="Rovers win again", abstract="Three goals by Vickery.", section="sport", topic="football")
NEXT = card("next", title="What Rovers need now", abstract="A point, says Ann Vickery.", section="sport", topic="clubs")
OTHER = card("other", title="Budget agreed", abstract="After a long night.", section="politics", topic="budget")
NEWS = Candidates((PESTO, NEXT, OTHER), np.stack([_axis(1, 0.9), _axis(0, 0, 1), _axis(0, 0, 0, 1)]), "encoder")
OLD = np.zeros(len(NEWS), dtype=bool)
READ_MATCH = replace(NOBODY, clicks=(MATCH,), click_vectors=_axis(1)[None], click_interests=("",))


def _terms(**lifted: float) -> ScoreTerms:
    """Return score terms that lift the first of the three stories."""
    return ScoreTerms({name: np.array([lifted.get(name, 0.0), 0.0, 0.0]) for name in TERMS})  # type: ignore[misc]


def _why(
    user_preferences: UserPreferences,
    score: ScoreTerms,
    floor: float = 0.8,
    news: Candidates = NEWS,
    *,
    recent: bool = True,
) -> str:
    when = np.full(len(news), recent)
    (said,) = reasons(news, [SlottedRow(0, "for_you")], user_preferences, score, SimilarityRule(news, floor), when)
    return said.words


def test_football_result_is_not_a_reason_for_a_nearby_recipe() -> None:
    assert float(NEWS.vectors[0] @ READ_MATCH.click_vectors[0]) > 0.7
    assert _why(READ_MATCH, _terms(content=3.0)) == ""


def test_similarity_above_the_floor_is_given_as_a_reason() -> None:
    assert _why(READ_MATCH, _terms(content=3.0), floor=0.7) == "Similar to “Rovers win again”, which you read."


def test_shared_topic_is_given_as_a_reason_with_its_click_count() -> None:
    recipes = tuple(card(f"r{n}", title=f"Soup {n}", section="food", topic="recipes") for n in range(3))
    vectors = np.stack([_axis(0, 0, 0, 0, 1, n) for n in range(3)])
    cook = replace(NOBODY, clicks=(*recipes, MATCH), click_vectors=np.concatenate([vectors, _axis(1)[None]]))
    cook = replace(cook, click_interests=("",) * 4)
    (said,) = reasons(NEWS, [SlottedRow(0, "for_you")], cook, _terms(content=1.0), SimilarityRule(NEWS, 0.99), OLD)
    assert said.words == "You read 3 stories on recipes."
    assert {click.topic for click in said.clicks} == {"recipes"}


def test_only_the_term_with_the_largest_lift_is_given_as_a_reason() -> None:
    picker = replace(
        READ_MATCH, chosen_sections=frozenset({"food"}), followed=Named(publishers=frozenset({"The Double"}))
    )
    assert _why(picker, _terms(content=0.5, chosen=1.0), floor=0.5) == "You picked the section food."
    assert _why(picker, _terms(content=1.5, chosen=1.0), floor=0.5).startswith("Similar to")
    assert _why(picker, _terms(content=1.5, followed=2.0), floor=0.5) == "You follow The Double."
    assert _why(picker, _terms(chosen=0.2, popularity=0.9)) == WHYS("popular")
    assert _why(picker, _terms(chosen=0.2, recency=0.3, editorial=0.1)) == WHYS("recent_and_weighty")


def test_old_or_unimportant_story_is_not_called_recent_or_important() -> None:
    assert _why(READ_MATCH, _terms(recency=0.3, editorial=-0.2)) == WHYS("recent")
    assert _why(READ_MATCH, _terms(recency=-0.3, editorial=0.4)) == WHYS("weighty")
    day_old = _terms(recency=0.3, editorial=-0.2)
    assert _why(READ_MATCH, day_old, recent=False) == "", "more recent than most, but not of the last hours"
    assert _why(READ_MATCH, _terms(recency=0.3, editorial=0.4), recent=False) == WHYS("weighty")
    assert _why(READ_MATCH, _terms(content=2.0, recency=-0.3, editorial=-0.1)) == ""
    assert _why(READ_MATCH, _terms(recency=-0.3, editorial=-0.1)) == ""
    assert _why(NOBODY, _terms(content=2.0)) == ""
    assert _why(NOBODY, _terms(editorial=0.4)) == WHYS("unused", said=WHYS("weighty"))


def test_reasons_for_a_reader_without_clicks_do_not_mention_habits() -> None:
    (said,) = reasons(NEWS, [SlottedRow(0, "explore")], NOBODY, _terms(), SimilarityRule(NEWS, 0.8), OLD)
    assert said.words == "One of the best in food, picked at random."


def test_score_term_that_is_equal_for_every_story_is_not_a_reason() -> None:
    picker = replace(READ_MATCH, chosen_sections=frozenset({"food"}))
    same = ScoreTerms({name: np.full(3, 2.0 if name == "chosen" else 0.0) for name in TERMS})  # type: ignore[misc]
    assert _why(picker, same) == ""


def test_similar_to_a_liked_story_is_claimed_only_above_the_floor() -> None:
    liker = replace(READ_MATCH, liked_cards=(MATCH,), liked=_axis(1)[None])
    assert _why(liker, _terms(reactions=2.0), floor=0.7) == "You asked for more like “Rovers win again”."
    assert _why(liker, _terms(reactions=2.0), floor=0.8) == ""


def test_rare_publisher_is_given_as_a_reason() -> None:
    assert _why(NOBODY, _terms(rare=1.0)).endswith(" publishes rarely.")


def test_shared_rare_name_relates_stories_but_a_common_one_does_not() -> None:
    vickery = card("v", title="An evening with Ann Vickery", abstract="", section="books", topic="lives")
    reader = replace(NOBODY, clicks=(vickery,), click_vectors=_axis(0, 0, 0, 0, 0, 1)[None], click_interests=("",))
    news = Candidates((NEXT, PESTO, OTHER), NEWS.vectors[[1, 0, 2]], "encoder")
    assert _why(reader, _terms(content=1.0), news=news) == (
        "It mentions Ann Vickery, like “An evening with Ann Vickery”, which you read."
    )
    everywhere = tuple(card(f"n{n}", title=f"Ann Vickery says {n}") for n in range(10))
    crowd = Candidates((NEXT, *everywhere), np.concatenate([news.vectors[:1], np.eye(10, DIM, dtype=np.float32)]), "e")
    assert SimilarityRule(crowd, 0.8).of(NEXT, crowd.vectors[0], reader.clicks, reader.click_vectors) == []


def test_country_named_across_all_sections_does_not_relate_stories() -> None:
    about = [card(f"c{n}", title=f"Talks in Torgan, day {n}", section=f"section{n}", topic=f"t{n}") for n in range(3)]
    read = replace(NOBODY, clicks=(about[0],), click_vectors=_axis(1)[None], click_interests=("",))
    apart = np.stack([_axis(1), _axis(0, 1), _axis(0, 0, 1)])
    everywhere = SimilarityRule(Candidates(tuple(about), apart, "e"), 0.8)
    assert everywhere.of(about[1], apart[1], read.clicks, read.click_vectors) == []
    two = SimilarityRule(Candidates(tuple(about[:2]), apart[:2], "e"), 0.8)
    assert [similar.name for similar in two.of(about[1], apart[1], read.clicks, read.click_vectors)] == ["Torgan"]


def test_reason_names_the_whole_name_that_both_stories_have() -> None:
    """Each pair of neighbours is a name too, and "Social Democratic" is the longer one of the two."""
    said = ("voters rank housing first, says the Social Democratic Front", "a lead over the Social Democratic Front")
    about = [card(f"c{n}", title=title, section="s", topic=f"t{n}") for n, title in enumerate(said)]
    apart = np.stack([_axis(1), _axis(0, 1)])
    similarity = SimilarityRule(Candidates(tuple(about), apart, "e"), 0.8)
    assert [similar.name for similar in similarity.of(about[1], apart[1], about[:1], apart[:1])] == [
        "Social Democratic Front"
    ]


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("Stocks fall as Anna Maria Berg leaves Torgan", {"Anna Maria Berg", "Anna Maria", "Maria Berg", "Torgan"}),
        (
            "The Social Democratic Front gains in most of the polls",
            {"The Social", "Social Democratic", "Democratic Front", "Social Democratic Front"},
        ),
        ("Kawabata loses Farmers’ and Towns’ leadership vote", set()),
        ("The Farmers’ and Towns’ party gains in the polls", set()),
        ("Bread is dear. Cities wait", set()),
        ("Every Word Of This Headline Is Big", set()),
        ("“Never again,” says Okafor", {"Okafor"}),
        ("She left the Bank of Torgan for the sea of", {"Bank of Torgan"}),
        ("a life of Maria de la Cruz, told by Okafor of late", {"Maria de la Cruz", "Okafor"}),
    ],
)
def test_proper_names_are_recognised_by_their_capitals(title: str, names: set[str]) -> None:
    assert proper_names(card("n", title=title, abstract="")) == names


def test_cached_names_are_cleared_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    read_names = by_capitals._names_in

    def reading(text: str) -> set[str]:
        read.append(text)
        return read_names(text)

    monkeypatch.setattr(by_capitals, "_names_in", reading)
    forget_names()
    reported = card("n", title="Anna Berg wins", abstract="")
    assert proper_names(reported) == proper_names(reported) == {"Anna Berg"}
    assert read == ["Anna Berg wins", ""]
    forget_names()
    assert proper_names(reported) == {"Anna Berg"}
    assert len(read) == 4


def test_reason_terms_add_up_to_the_score_and_ranker_features_count_once() -> None:
    pool = synthetic_pool(200)
    candidates = Candidates(pool.cards, pool.vectors, "encoder")
    draw = np.random.default_rng(4)
    share = 0.2 * draw.random(200)
    fit = (draw.normal(size=200) + share).astype(np.float32)
    reader = replace(
        NOBODY, clicks=pool.cards[:3], click_vectors=pool.vectors[:3], chosen_sections=frozenset({"section1"}),
        liked=np.zeros((0, 256), np.float32), disliked=np.zeros((0, 256), np.float32),
    )  # fmt: skip
    found = adjusted(fit, candidates, reader, NOW, FeedSettings(), weighed={"topic_affinity": share})
    plain = adjusted(fit, candidates, reader, NOW, FeedSettings())
    np.testing.assert_allclose(found.total, plain.total, atol=1e-9)
    spread = float(fit.astype(np.float64).std())
    np.testing.assert_allclose(found.terms["topic_affinity"], (share - share.mean()) / spread)
    lifts = found.lifts(7)
    assert sum(lifts.values()) == pytest.approx(found.total[7] - found.total.mean())


def test_random_pairs_rarely_exceed_the_similarity_floor() -> None:
    vectors = np.random.default_rng(2).normal(size=(500, 16)).astype(np.float32)
    floor = similarity_floor(vectors)
    assert floor is not None
    assert floor == similarity_floor(vectors), "the same news, the same floor"
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    every = (units @ units.T)[np.triu_indices(500, 1)]
    assert (every > floor).mean() == pytest.approx(1 - SIMILARITY_PERCENTILE / 100, rel=0.5)
    assert similarity_floor(vectors[: FEWEST_NEWS - 1]) is None


def test_manifest_carries_its_similarity_floor_and_refuses_an_invalid_one() -> None:
    assert ReleaseManifest.model_validate_json(_manifest(0.41).model_dump_json()).kinship_floor == 0.41
    with pytest.raises(ValidationError, match="kinship_floor"):
        _manifest(1.5)


def test_random_pairs_never_pair_a_row_with_itself() -> None:
    cosines = random_cosines(np.eye(3, dtype=np.float32), np.random.default_rng(1), 500)
    assert cosines.tolist() == [0.0] * 500


def test_release_without_a_similarity_floor_uses_the_default_lists() -> None:
    pool = synthetic_pool(400)
    default_list = Candidates(pool.cards, pool.vectors, "encoder")
    assert floor_of(_manifest(0.4), default_list) == 0.4
    assert floor_of(_manifest(None), default_list) == similarity_floor(pool.vectors)


def test_articles_sharing_only_a_name_are_not_a_developing_story() -> None:
    def report(news_id: str, topic: str) -> NewsCard:
        return card(news_id, story="s", topic=topic, title=f"About {news_id}", abstract="")

    cards = (report("a", "storms"), report("b", "storms"), report("c", "recipes"))
    few = Candidates(cards, np.eye(3, DIM, dtype=np.float32), "encoder")
    scores = np.array([3.0, 2.0, 1.0])
    (group,) = developing_groups(few, np.ones(3, bool), scores, stories=2, similarity=SimilarityRule(few, 0.5))
    assert sorted(group) == [0, 1]
