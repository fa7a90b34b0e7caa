"""Pages of readers who come back while the newspaper goes on keep the laws of the feed, on both devices.

Oracles: what each reader saw and read, recorded beside the device; the stories on the default list; and the newspaper,
which knows topics, events and names. The short form has 2 readers with 10 pages each, which has shown every fault that
was found with 10 readers of 50 pages.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.bench.feed_laws import Newspaper
from experiments.bench.newspaper_pages import newspaper_pool
from protocol.news import NewsCard
from tests.doubles.days_of_reading import DaysOfReading, Visit
from tests.doubles.known_whys import WhyJudge
from tests.doubles.long_form import by_length
from tests.doubles.newspaper_backend import kept_default_ranker

pytestmark = [pytest.mark.node, pytest.mark.long_form]

READERS, PAGES = by_length((2, 10), long=(10, 50))
REPEATED_MOST = 0.1
"""2 of 20 cards."""
SHARE_OF_TOPIC = 12
"""Places of a page that a topic may have."""
UNRELATED_MOST = 0.03


class Reading:
    """All visits, and each opened story with its related ones."""

    def __init__(self, folder: Path) -> None:
        self.newspaper = Newspaper(newspaper_pool(), kept_default_ranker())
        self.visits: list[Visit] = []
        self.related: list[tuple[NewsCard, NewsCard]] = []
        for seed in range(READERS):
            reader = DaysOfReading(self.newspaper.pool, folder, seed)
            self.visits += reader.visits(PAGES)
            self.related += [(each.card, other) for each in reader.articles for other in each.related]
            reader.close()

    def card(self, news_id: str) -> NewsCard:
        return self.newspaper.pool.cards[self.newspaper.row[news_id]]

    def pages(self, visit: Visit) -> dict[str, list[NewsCard]]:
        """The page on each device, the lead first."""
        browser = [self.card(each["id"]) for each in visit.browser["page"]]
        return {"Python": [item.card for item in visit.feed.items], "browser": browser}


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    found = Reading(tmp_path_factory.mktemp("days"))
    assert len(found.visits) == READERS * PAGES
    return found


def test_lead_is_unseen_and_about_an_event_not_yet_read(reading: Reading) -> None:
    old = [
        (at, device, page[0].id, page[0].id in visit.seen, page[0].story in visit.events)
        for at, visit in enumerate(reading.visits)
        for device, page in reading.pages(visit).items()
        if page[0].id in visit.seen or page[0].story in visit.events
    ]
    assert old == []


def test_new_page_shows_the_number_of_new_stories_that_was_offered(reading: Reading) -> None:
    """Unless the reader did something after the offer, which may take some of them away."""
    differ = []
    for at, visit in enumerate(reading.visits):
        offers = {"Python": visit.offered, "browser": visit.browser["offered"]}
        for device, page in reading.pages(visit).items():
            shown = sum(card.id in visit.new for card in page)
            if shown != offers[device]:
                differ.append((at, device, visit.busy, offers[device], shown))
    assert differ == []
    assert sum(visit.offered for visit in reading.visits) > len(reading.visits)


def test_at_most_a_tenth_of_a_fully_seen_page_is_shown_again(reading: Reading) -> None:
    """Beside topics that keep their share of the page though nearly all of their events were seen."""
    after = [visit for visit in reading.visits if visit.before]
    shares = []
    for visit in after:
        events: dict[tuple[str, str], set[str]] = {}
        for card in reading.newspaper.pool.cards:
            if card.id not in visit.seen and card.published_at <= visit.feed.made_at:
                events.setdefault((card.section, card.topic), set()).add(card.story or card.id)
        for page in reading.pages(visit).values():
            again = [card for card in page if card.id in visit.before]
            enough = [card for card in again if len(events.get((card.section, card.topic), ())) >= SHARE_OF_TOPIC]
            shares.append(len(enough) / len(page))
    assert len(after) >= READERS
    assert max(shares) <= REPEATED_MOST


def test_both_devices_make_the_same_page_with_the_same_reasons(reading: Reading) -> None:
    """Where the reader did nothing after the offer, since the browser's comes last."""
    for at, visit in enumerate(reading.visits):
        if not visit.busy:
            here = [{"id": each.card.id, "slot": each.slot, "why": each.reason.words} for each in visit.feed.items]
            assert visit.browser["page"] == here, at


def test_every_reason_is_true(reading: Reading) -> None:
    judge = WhyJudge(reading.newspaper)
    said = [(visit, item) for visit in reading.visits for item in visit.feed.items if item.reason.words]
    false = [(item.card.title, item.reason.words) for visit, item in said if not judge.is_true(item, visit)]
    assert len(said) >= by_length(100, long=200)
    assert false == []


def test_related_stories_share_topic_event_or_name(reading: Reading) -> None:
    row, related = reading.newspaper.row, reading.newspaper.related
    unrelated = [
        (card.title, other.title)
        for card, other in reading.related
        if not related(row[card.id], row[other.id]) and not (card.story and card.story == other.story)
    ]
    assert len(reading.related) >= by_length(30, long=200)
    assert len(unrelated) <= UNRELATED_MOST * len(reading.related), unrelated
