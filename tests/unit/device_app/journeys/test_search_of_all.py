"""A search covers everything on the device: the whole pool if there is a copy, else the received lists.

Oracle: a scan of every card of the pool, and every cosine.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from device_app.device import Device
from device_app.feed.candidates import Candidates
from device_app.feed.similarity import SimilarityRule
from device_app.feed.whole_pool import NEAR, NEAR_LEADS, SEARCH_PAGE
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import Make

LISTED = 50
WORDS = "harbour"


@pytest.fixture
def backend() -> FakeBackend:
    """A backend where every fifth headline contains the word, some of every topic."""
    made = FakeBackend(pool_codes=True)
    cards = tuple(
        card.model_copy(update={"title": f"The hárbour, part {row}"}) if row % 5 == 0 else card
        for row, card in enumerate(made.pool.cards)
    )
    made.pool = replace(made.pool, cards=cards)
    made.publish()
    return made


def device_with_pool(make: Make) -> Device:
    device = make(default_list_limit=LISTED)
    device.sync()
    device.reading.feed(refresh=True)
    while device.prefetch_step():
        pass
    return device


def matching_ids(backend: FakeBackend) -> set[str]:
    return {card.id for card in backend.pool.cards if "hárbour" in card.title}


def test_search_finds_every_matching_story_once_across_pages(make: Make, backend: FakeBackend) -> None:
    device = device_with_pool(make)
    backend.requests.clear()
    first = device.library.search(WORDS)
    wanted = matching_ids(backend)
    assert first.total == len(wanted) == 160
    pages = [first, device.library.search(WORDS, 2), device.library.search(WORDS, 3), device.library.search(WORDS, 4)]
    assert [len(page.cards) for page in pages] == [SEARCH_PAGE, SEARCH_PAGE, SEARCH_PAGE, 10]
    assert [page.upto for page in pages[:3]] == [50, 100, 150]
    shown = [card.id for page in pages for card in page.cards]
    assert len(shown) == len(set(shown))
    assert set(shown) == wanted
    device.library.save_search(WORDS)
    assert device.library.searches().searches[0].stories == 160
    assert backend.requests == []


def test_search_results_stay_fixed_until_a_refresh(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = device_with_pool(make)
    first = device.library.search(WORDS)
    came = [
        backend.pool.cards[0].model_copy(update={"id": f"came-{number}", "title": "Harbour", "published_at": clock()})
        for number in range(3)
    ]
    device.parts.stores.news.put_cards(came, clock())
    clock.go_on(60)
    pages = [device.library.search(f" {WORDS} ", number) for number in (1, 2, 3, 4)]
    assert (pages[0].cards, pages[0].near) == (first.cards, first.near), "after Back"
    shown = [card.id for page in pages for card in page.cards]
    assert len(shown) == len(set(shown)), "no page repeats what another had"
    assert set(shown) == matching_ids(backend), "and none skips any"
    assert {(page.new, page.made_at, page.total) for page in pages} == {(3, first.made_at, 160)}
    assert device.library.searches().searches == (), "words that are not saved are kept nowhere"
    device.lists.renew(f"search/{WORDS}")
    again = [device.library.search(WORDS, number) for number in (1, 2, 3, 4)]
    assert {card.id for page in again for card in page.cards} == matching_ids(backend) | {card.id for card in came}
    device.privacy.erase()
    device.parts.stores.news.put_cards([came[0].model_copy(update={"id": "later"})], clock())
    after = device.library.search(WORDS)
    assert "later" in {card.id for card in after.cards}
    assert after.new == 0, "an erase takes what was held"


def test_previous_and_next_story_follow_the_order_of_the_results(make: Make, backend: FakeBackend) -> None:
    """The last of a page has the first of the next page after it, which can be opened."""
    device = device_with_pool(make)
    first, second = device.library.search(WORDS), device.library.search(WORDS, 2)
    ids = device.lists.shown(f"search/ {WORDS} ")
    assert ids[: first.total] == [card.id for page in (1, 2, 3, 4) for card in device.library.search(WORDS, page).cards]
    assert ids[first.total :] == [card.id for card in first.near]
    make_again = device_with_pool(make)
    assert make_again.lists.shown(f"search/{WORDS}") == [], "kept nowhere"
    before, after = make_again.whole_pool.beside(first.cards[-1].id, ids)
    assert (before, after) == (first.cards[-2], second.cards[0])
    assert after is not None
    assert make_again.reading.open(after.id, found=True).card == after
    assert make_again.whole_pool.beside(ids[0], ids)[0] is None
    assert make_again.whole_pool.beside(ids[-1], ids)[1] is None
    assert make_again.whole_pool.beside("elsewhere", ids) == (None, None)


def test_equally_relevant_results_are_ordered_by_date(make: Make, backend: FakeBackend) -> None:
    device = device_with_pool(make)
    alike: dict[float, list[int]] = {}
    for hit in device.whole_pool.hits(WORDS):
        alike.setdefault(hit.relevance, []).append(hit.published_us)
    assert max(map(len, alike.values())) > 20
    assert all(times == sorted(times, reverse=True) for times in alike.values())


def test_old_story_ranks_below_a_fresh_one_unless_far_more_relevant(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = device_with_pool(make)
    card = backend.pool.cards[0]
    old, fresh = clock() - timedelta(days=60), clock() - timedelta(hours=1)
    device.parts.stores.news.put_cards(
        [
            card.model_copy(update={"id": "old", "title": "Quokka seen", "published_at": old}),
            card.model_copy(update={"id": "fresh", "title": "A quokka was seen near town", "published_at": fresh}),
        ],
        clock(),
    )
    assert [hit.id for hit in device.whole_pool.hits("quokka")] == ["fresh", "old"]
    by_words = {hit.id: hit.relevance for hit in device.parts.stores.search_index.hits("quokka")}
    assert by_words["old"] > by_words["fresh"], "by its words alone the old one came first"


def test_similar_results_contain_no_search_term_and_reach_the_stated_similarity(
    make: Make, backend: FakeBackend
) -> None:
    device = device_with_pool(make)
    backend.requests.clear()
    found = device.library.search(WORDS)
    assert 1 <= len(found.near) <= NEAR
    row = {card.id: at for at, card in enumerate(backend.pool.cards)}
    leads = [row[card.id] for card in found.cards[:NEAR_LEADS]]
    likeness = (backend.pool.vectors @ backend.pool.vectors[leads].T).max(axis=1)
    topics = {backend.pool.cards[lead].topic for lead in leads}
    left = [card for card in backend.pool.cards if card.id not in matching_ids(backend) and card.topic in topics]
    best = sorted((float(likeness[row[card.id]]) for card in left), reverse=True)
    assert not {card.id for card in found.near} & matching_ids(backend)
    assert {card.topic for card in found.near} <= topics
    assert [likeness[row[card.id]] for card in found.near] == pytest.approx(best[: len(found.near)], abs=0.02)
    assert device.reading.open(found.near[0].id, found=True).card == found.near[0]
    assert device.library.search(WORDS, 2).near == ()
    hidden = found.near[0]
    device.interests.stance("topic", hidden.topic, "block")
    assert hidden.topic not in {card.topic for card in device.library.search(WORDS).near}
    assert backend.requests == []


def test_story_that_only_shares_a_name_is_not_listed_as_similar(make: Make, backend: FakeBackend) -> None:
    """Example: a basketball player with the surname of a candidate."""
    device = device_with_pool(make)
    leads = device.library.search(WORDS).cards[:NEAR_LEADS]
    topics = {card.topic for card in leads}
    cards, vectors = backend.pool.cards, backend.pool.vectors
    row = next(at for at, card in enumerate(cards) if card.id == leads[0].id)
    others = [at for at in np.argsort(-(vectors @ vectors[row])) if cards[at].topic not in topics]
    other = next(at for at in others if cards[at].id not in matching_ids(backend))
    named = {at: cards[at].model_copy(update={"abstract": "Alessio Fantozzi was hurt."}) for at in (row, other)}
    backend.pool = replace(backend.pool, cards=tuple(named.get(at, card) for at, card in enumerate(cards)))
    backend.publish()
    device.sync()
    device.lists.renew(f"search/{WORDS}")
    both = Candidates((named[other],), vectors[other : other + 1], "")
    tie = SimilarityRule(both, None).of(named[row], vectors[row], both.cards, both.vectors)[0].tie
    for topic in topics:
        device.interests.stance("topic", topic, "block")  # else what is nearer by topic fills the places
    found = device.library.search(WORDS)
    assert tie == "name"
    assert found.cards[0].abstract == "Alessio Fantozzi was hurt."
    assert found.near == ()


def test_without_a_pool_copy_only_received_stories_are_searched(make: Make, backend: FakeBackend) -> None:
    backend.pool_codes = False
    backend.publish()
    device = device_with_pool(make)
    here = set(device.parts.stores.default_list.current().news_ids)  # type: ignore[union-attr]
    found = device.library.search(WORDS)
    assert {card.id for card in found.cards} == matching_ids(backend) & here
    assert found.near == ()
    assert (device.whole_pool.size(), device.whole_pool.texts()) == (None, LISTED)


def test_search_covers_local_texts_as_well_as_pool_headlines(make: Make, backend: FakeBackend) -> None:
    device = device_with_pool(make)
    news_id = device.reading.feed().items[0].card.id
    assert [card.id for card in device.library.search(f"First of {news_id}").cards] == [news_id]


def test_pool_of_another_encoder_is_excluded(make: Make, backend: FakeBackend) -> None:
    device = device_with_pool(make)
    database = device.parts.stores.database
    with database.transaction():
        database.write(
            "UPDATE pool SET listing = CAST(replace(CAST(listing AS TEXT), ?, ?) AS BLOB)", (backend.encoder, "f" * 64)
        )
    device = make(default_list_limit=LISTED)
    device.reading.feed(refresh=True)
    assert device.whole_pool.size() is None
    assert device.library.search(WORDS).total < len(matching_ids(backend))
    pool = device.parts.stores.pool
    stored = pool.current()
    assert stored is not None
    read = stored.listing.model_copy(update={"encoder": backend.encoder})
    pool.use(read, read.model_dump_json().encode(), stored.kept_at)
    assert device.library.search(WORDS).total == len(matching_ids(backend)), "what lacked the pool was not held"


def test_whole_pool_is_searched_after_a_restart_before_loading_models(make: Make, backend: FakeBackend) -> None:
    device_with_pool(make)
    device = make(default_list_limit=LISTED)
    assert device.library.search(WORDS).total == len(matching_ids(backend))
    assert (device.whole_pool.size(), device.parts.serving.loaded()) == (800, None)
