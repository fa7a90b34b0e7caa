"""Stories are sorted into sections. Oracles: the taxonomy's own words, an encoder with known answers, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Engine

import backend.news.sections as taxonomy_module
from backend.db.engine import migrate, open_engine
from backend.news import sections as sections_module
from backend.news.followed_feeds import FollowedFeeds
from backend.news.item import UNSORTED, NewsItem
from backend.news.pool import NewsPool
from backend.news.sections import (
    NewsSection,
    SectionClassifier,
    SectionRefused,
    SectionSorter,
    chosen_section,
    section_named,
    sentences,
    sorter_name,
    taxonomy,
    text_of,
    with_neighbours,
)

NOW = datetime.now(UTC)
FEED = "https://courant.example/feed"


class _Words:
    """Gives each word its own direction, so that texts are as similar as their words."""

    def __init__(self, digest: str = "words") -> None:
        self.digest = digest

    def encode(self, titles: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(titles), 512), np.float32)
        for row, title in enumerate(titles):
            for word in title.lower().split():
                rows[row, sum(map(ord, word)) * 31 % 512] += 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def engine(tmp_path: object) -> Engine:
    url = f"sqlite:///{tmp_path}/pool.sqlite"
    migrate(url)
    return open_engine(url)


def story(number: int, title: str, section: str = UNSORTED, topic: str | None = None) -> NewsItem:
    return NewsItem(
        id=f"n{number}",
        title=title,
        section=section,
        topic=topic or section,
        published_at=NOW,
        url="https://x.example/",
    )


def test_taxonomy_has_about_fifteen_sections_with_unique_labels_and_sentences() -> None:
    assert 13 <= len(taxonomy()) <= 17
    labels = [label for section in taxonomy() for label in {section.name, *section.labels}]
    assert len(labels) == len(set(labels))
    assert len(sentences()) == len(set(sentences()))
    assert all(len(section.sentences) >= 20 for section in taxonomy())


def test_section_is_found_by_any_name_and_readers_may_add_their_own() -> None:
    assert section_named(" Tech ") == chosen_section("tech") == "technology"
    assert section_named("My blogs") is None
    assert chosen_section("My  Blogs") == "my blogs"
    for blank in ("", " ", "x" * 81, "a\x00b"):
        with pytest.raises(SectionRefused, match="1 to 80"):
            chosen_section(blank)


def test_classifier_recognises_its_own_sentences_with_balanced_sections() -> None:
    encoder = _Words()
    sea, land = (
        NewsSection("sea", (), ("ferry harbour", "harbour waves", "ferry waves")),
        NewsSection("land", (), ("road hill",)),
    )
    sections = (sea, land)
    classifier = SectionClassifier(sections, encoder.encode([one for each in sections for one in each.sentences]))
    found = classifier.probabilities(encoder.encode(["ferry harbour", "road hill", "ferry ferry", "hill"]))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert [classifier.names[row] for row in found.argmax(axis=1)] == ["sea", "land", "sea", "land"]
    with pytest.raises(ValueError, match="4, D"):
        SectionClassifier(sections, np.zeros((3, 8), np.float32))


def test_ambiguous_story_gets_the_section_of_its_neighbours() -> None:
    vectors = np.array([[1, 0], [0.9, 0.1]], np.float32)
    known_vectors = np.array([[1, 0.1]] * 9 + [[0, 1]] * 9, np.float32)
    known = np.repeat([[0.0, 1.0], [1.0, 0.0]], 9, axis=0)
    mixed = with_neighbours(np.array([[0.5, 0.5], [0.6, 0.4]]), vectors, known, known_vectors)
    assert list(mixed.argmax(axis=1)) == [1, 1]
    alone = np.array([[0.5, 0.5]])
    nothing = np.zeros((0, 2)), np.zeros((0, 0), np.float32)
    np.testing.assert_array_equal(with_neighbours(alone, vectors[:1], *nothing), alone)


def test_story_is_classified_by_title_and_beginning_of_abstract() -> None:
    assert text_of("Title", "") == "Title"
    assert text_of("Title", "Words") == "Title. Words"
    assert len(text_of("Title", "w" * 1_000)) == 400


def test_story_without_a_section_is_classified_once_and_a_second_delivery_changes_nothing(engine: Engine) -> None:
    pool, encoder, sorter = NewsPool(engine), _Words(), SectionSorter(engine)
    FollowedFeeds(engine).add(FEED, NOW)
    striker, recipe = taxonomy()[7].sentences[0], taxonomy()[9].sentences[0]
    items = [
        story(1, striker),
        story(2, recipe, topic="baking"),
        story(3, "Chosen", section="my blogs"),
        story(4, "No vector yet"),
    ]
    pool.add(items, source=FEED)
    titles = [item.title for item in items[:3]]
    pool.store_vectors(encoder.digest, ["n1", "n2", "n3"], encoder.encode(titles), titles=titles)
    before = pool.version()
    assert sorter.sort_waiting(encoder.digest, lambda: encoder) == 2
    assert pool.version() > before
    found = {row.id: (row.section, row.topic) for row in pool.live(NOW)}
    assert found == {
        "n1": ("sport", "sport"),
        "n2": ("food", "baking"),
        "n3": ("my blogs", "my blogs"),
        "n4": (UNSORTED, UNSORTED),
    }
    assert sorter.waiting(encoder.digest), "the one without a vector"
    assert pool.add(items, source=FEED).changed == 0
    assert sorter.sort_waiting(encoder.digest, lambda: encoder) == 0


def test_many_waiting_stories_are_sorted_in_lots(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections_module, "STORIES_AT_ONCE", 2)
    pool, encoder, sorter = NewsPool(engine), _Words(), SectionSorter(engine)
    FollowedFeeds(engine).add(FEED, NOW)
    titles = [taxonomy()[row].sentences[0] for row in range(5)]
    pool.add([story(row, title) for row, title in enumerate(titles)], source=FEED)
    pool.store_vectors(encoder.digest, [f"n{row}" for row in range(5)], encoder.encode(titles), titles=titles)
    assert [sorter.sort_waiting(encoder.digest, lambda: encoder) for _ in range(4)] == [2, 2, 1, 0]


def test_encoder_is_not_opened_without_waiting_stories(engine: Engine) -> None:
    NewsPool(engine).add([story(1, "Chosen", section="sport")], source=FEED)
    assert SectionSorter(engine).sort_waiting("words", lambda: pytest.fail("opened")) == 0


def test_another_encoder_classifies_again_only_stories_the_classifier_sorted(engine: Engine) -> None:
    """The other encoder answers sport for everything, so the stories it sorts show that it was used."""

    class SaysSport(_Words):
        def encode(self, titles: Sequence[str]) -> NDArray[np.float32]:
            striker = taxonomy()[7].sentences[0]
            typical = set(sentences())
            return super().encode([title if title in typical else striker for title in titles])

    pool, first, second, sorter = NewsPool(engine), _Words(), SaysSport("other"), SectionSorter(engine)
    FollowedFeeds(engine).add(FEED, NOW)
    recipe = taxonomy()[9].sentences[0]
    items = [
        story(1, recipe + " today"),
        story(2, recipe + " again", topic="baking"),
        story(3, recipe + " chosen", section="food"),
        story(4, recipe + " later"),
    ]
    pool.add(items, source=FEED)
    titles = [item.title for item in items]

    def vectors(encoder: _Words, count: int) -> None:
        ids = [item.id for item in items[:count]]
        pool.store_vectors(encoder.digest, ids, encoder.encode(titles[:count]), titles=titles[:count])

    def sections() -> dict[str, tuple[str, str]]:
        return {row.id: (row.section, row.topic) for row in pool.live(NOW)}

    vectors(first, 4)
    assert sorter.sort_waiting(first.digest, lambda: first) == 3
    assert sections() == {
        "n1": ("food", "food"),
        "n2": ("food", "baking"),
        "n3": ("food", "food"),
        "n4": ("food", "food"),
    }
    assert not sorter.waiting(first.digest)
    assert sorter.waiting(second.digest)

    assert sorter.sort_waiting(second.digest, lambda: second) == 0, "no vector of the new encoder is here yet"
    vectors(second, 3)
    before = pool.version()
    assert sorter.sort_waiting(second.digest, lambda: second) == 2
    assert pool.version() > before
    assert sections() == {
        "n1": ("sport", "sport"),
        "n2": ("sport", "baking"),
        "n3": ("food", "food"),
        "n4": ("food", "food"),
    }, "the chosen one stays, and one without a new vector keeps what it has until that is here"

    vectors(second, 4)
    assert sorter.sort_waiting(second.digest, lambda: second) == 1
    assert not sorter.waiting(second.digest)
    before = pool.version()
    assert sorter.sort_waiting(first.digest, lambda: first) == 3, "a roll-back sorts again as well"
    assert pool.version() > before
    assert sections()["n1"] == ("food", "food")


def test_changed_story_is_reclassified_unless_it_has_a_section(engine: Engine) -> None:
    pool, encoder, sorter = NewsPool(engine), _Words(), SectionSorter(engine)
    FollowedFeeds(engine).add(FEED, NOW)
    striker, recipe = taxonomy()[7].sentences[0], taxonomy()[9].sentences[0]
    pool.add([story(1, striker), story(2, striker + " too")], source=FEED)

    def sort(*titles: str) -> int:
        pool.store_vectors(encoder.digest, ["n1", "n2"], encoder.encode(titles), titles=titles)
        return sorter.sort_waiting(encoder.digest, lambda: encoder)

    assert sort(striker, striker + " too") == 2
    pool.add([story(1, recipe), story(2, striker + " too", section="my blogs")], source=FEED)
    assert sort(recipe, striker + " too") == 1
    assert {row.id: row.section for row in pool.live(NOW)} == {"n1": "food", "n2": "my blogs"}
    assert not sorter.waiting(encoder.digest)
    assert sorter.sort_waiting("other", lambda: _Words("other")) == 0, "and what came with a section never waits"
    assert sorter.waiting("other"), "the first, whose vector by the other encoder is to come"


def test_changed_taxonomy_counts_as_another_classifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorter_name("words")
    assert sorter_name("words") == before != sorter_name("other")
    changed = tmp_path / "sections.toml"
    changed.write_bytes(taxonomy_module.FILE.read_bytes() + b"\n")
    monkeypatch.setattr(taxonomy_module, "FILE", changed)
    assert sorter_name("words") != before


def test_neighbours_are_the_same_however_many_are_compared_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Oracle: all similarities at once."""
    draw = np.random.default_rng(3)
    vectors, known_vectors = (draw.normal(size=(count, 8)).astype(np.float32) for count in (37, 50))
    probabilities, known = draw.dirichlet(np.ones(4), 37), np.eye(4)[draw.integers(0, 4, 50)]
    whole = with_neighbours(probabilities, vectors, known, known_vectors)
    monkeypatch.setattr(taxonomy_module, "NEARNESS_BYTES", 5 * 4 * 87)
    np.testing.assert_allclose(with_neighbours(probabilities, vectors, known, known_vectors), whole, rtol=1e-12)
