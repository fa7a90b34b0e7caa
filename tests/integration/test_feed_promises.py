"""Reasons are true, and learning is damped and remembered, with the default ranker over the generated newspaper.

The oracle is the newspaper itself, which knows every story's topic and names; the pages are the product's own. Readers
are drawn with several seeds, and each has to pass.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.bench.feed_laws import BLEND_READS, PICKED, Newspaper
from experiments.bench.newspaper_pages import LOOKED_AT, PAGE, newspaper_pool
from tests.doubles.newspaper_backend import kept_default_ranker

SECTIONS = ("football", "science")
SEEDS = (1, 2, 3)
LISTED = 160
"""As great a part of this pool as the default list is of the whole newspaper."""
each_seed = pytest.mark.parametrize("seed", SEEDS)
each_section = pytest.mark.parametrize("section", SECTIONS)


@pytest.fixture(scope="module")
def newspaper() -> Newspaper:
    """Two sections of at least 300 stories and 900 other stories, ranked as in a first release."""
    pool = newspaper_pool(whole=SECTIONS, others=900)
    assert all(len(pool.rows(section=section)) >= 300 for section in SECTIONS)
    return Newspaper(pool, kept_default_ranker())


@each_seed
def test_related_stories_share_a_topic_or_a_name(newspaper: Newspaper, seed: int) -> None:
    figures = newspaper.similarity(300, seed)
    assert figures.whys >= 300
    assert figures.related >= 0.95, figures
    assert figures.random_pairs <= 0.005, figures


def test_old_similarity_floor_would_relate_far_more_pairs(newspaper: Newspaper) -> None:
    """The limit is meaningful: at an earlier floor, a cosine of .2, most of the same reasons are untrue."""
    lax = replace(newspaper, pool=replace(newspaper.pool, floor=0.2))
    figures = lax.similarity(300, SEEDS[0])
    assert figures.related < 0.95
    assert figures.random_pairs > 0.05


@each_section
@each_seed
@pytest.mark.parametrize("picked", [False, True], ids=["nothing picked", "sections picked"])
def test_five_reads_of_a_topic_give_it_30_to_45_percent_of_later_pages(
    newspaper: Newspaper, section: str, seed: int, picked: bool
) -> None:
    figures = newspaper.learning(section, newspaper.largest_topic(section), seed, picked=picked)
    assert figures.is_steady, figures
    assert max(figures.greatest_in_column) <= 0.5, figures
    if picked:
        assert min(figures.of_picked) >= 0.25, figures


@pytest.mark.parametrize("has_pool", [True, False], ids=["copy of the pool", "no copy"])
def test_topic_stays_on_three_pages_with_a_pool_copy_but_not_with_a_short_list(
    newspaper: Newspaper, has_pool: bool
) -> None:
    """The short form of `ownfeed bench feed`, which has 40 topics and 3 seeds."""
    short = replace(newspaper.pool, listed=newspaper.pool.listed[:LISTED])
    device = replace(newspaper, pool=short, has_pool=has_pool)
    drawn = [device.learning(*name, SEEDS[0], picked=False) for name in newspaper.topics(6, SEEDS[0])]
    assert len(drawn) == 6
    steady = sum(figures.is_steady for figures in drawn)
    assert steady == 6 if has_pool else steady <= 2, drawn


@each_section
def test_picked_sections_keep_a_quarter_until_twenty_reads(newspaper: Newspaper, section: str) -> None:
    topic = newspaper.largest_topic(section)
    last = newspaper.learning(section, topic, 5, picked=True, reads=BLEND_READS - 1)
    assert min(last.of_picked) >= 0.25, last
    after = newspaper.learning(section, topic, 5, picked=True, reads=BLEND_READS)
    assert after.of_picked[0] < last.of_picked[0], "then reading alone decides"


@each_seed
@pytest.mark.parametrize("picked", [(), ("food",), ("football", "science"), ("food", "film", "games")])
def test_first_page_mixes_many_sections_without_a_dominant_one(
    newspaper: Newspaper, seed: int, picked: tuple[str, ...]
) -> None:
    figures = newspaper.cold(seed, picked)
    assert figures.sections >= 8, figures
    assert figures.greatest <= 0.2, figures


@pytest.mark.parametrize("kind", ["liked", "less"])
def test_one_reaction_moves_at_most_three_cards(newspaper: Newspaper, kind: str) -> None:
    moved = [newspaper.moved(seed, kind, position=at) for seed in range(8) for at in (0, 1, 4, 10)]  # type: ignore[arg-type]
    assert max(moved) <= 3, moved
    assert sum(moved) > 0, "a reaction does something"


def test_unseen_stories_may_be_shown_again(newspaper: Newspaper) -> None:
    reader = newspaper.reader(*PICKED)
    first = reader.page(1)
    assert len(first) == PAGE
    after = reader.looks_at(first)
    again = {shown.row for shown in after.page(1)}
    assert not again & {shown.row for shown in first[:LOOKED_AT]}
    assert again & {shown.row for shown in first[LOOKED_AT:]}
