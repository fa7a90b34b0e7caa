"""A page stays the same, seen stories move down, and a refresh is offered. Oracles: the earlier page, and counts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from device_app.device import Device
from device_app.feed.item import Feed
from device_app.feed.offer import Offer
from protocol.news import NewsCard
from tests.doubles.arrivals import stories_arrive
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import TOPIC, Make, click_on, share
from tests.doubles.new_page import new_page
from tests.doubles.news import NOW, card

LONG_AGO = NOW - timedelta(days=30)


def ids(feed: Feed) -> list[str]:
    return [item.card.id for item in feed.items]


def look_at_all(device: Device, feed: Feed) -> None:
    device.reading.view(feed.feed_id, ids(feed))


def test_reading_and_reacting_keep_the_page_and_send_nothing(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    page = device.reading.feed()
    while device.prefetch_step():
        pass
    sent = len(backend.requests)
    for item in page.items[3:6]:
        clock.go_on(30)
        device.reading.open(item.card.id, page.feed_id)
        assert device.reading.feed().items == page.items
    for item, kind in zip(page.items[7:10], ("like", "less", "save"), strict=True):
        device.library.react(item.card.id, kind)  # type: ignore[arg-type]
        assert device.reading.feed().items == page.items
    device.interests.stance("topic", page.items[0].card.topic, "block")
    again = make().reading.feed()
    assert (again.feed_id, again.items, again.made_at) == (page.feed_id, page.items, page.made_at), "after a restart"
    assert len(backend.requests) == sent


def test_refresh_is_offered_only_after_changes_the_reader_made(make: Make, clock: StillClock) -> None:
    device = make()
    page = device.reading.feed()
    assert device.reading.offer(page) == Offer()
    clock.go_on(5)
    device.library.react(page.items[1].card.id, "save")
    assert not device.reading.offer(page), "a saved story is kept, and teaches nothing"
    device.library.react(page.items[1].card.id, "like")
    assert device.reading.offer(page).changed
    device.library.react(page.items[1].card.id, "like")
    assert not device.reading.offer(page), "taken back"
    device.reading.open(page.items[2].card.id, page.feed_id)
    assert device.reading.offer(page) == Offer(read=1)
    newer = new_page(device)
    assert not device.reading.offer(newer)
    assert device.reading.offer(page) == Offer(after=newer.feed_id)
    assert device.reading.offer(newer).before == page.feed_id


def arriving(clock: StillClock, name: str, count: int) -> list[NewsCard]:
    """Return stories published now, each of its own publisher, over eight topics of the pool."""
    return [
        card(
            f"{name}{n}",
            title=f"Word{n} {name} thing{n}",
            published_at=clock(),
            section=f"section{n % 8}",
            topic=f"section{n % 8} topic1",
            publisher=f"Publisher {name} {n}",
            weight=1.0,
        )
        for n in range(count)
    ]


def test_only_recent_stories_that_the_reader_may_want_are_offered_as_new(make: Make, clock: StillClock) -> None:
    device = make()
    page = device.reading.feed()
    clock.go_on(3_600)
    new = arriving(clock, "new", 4)
    stories_arrive(device, [*new, card("old", published_at=NOW - timedelta(days=3))], clock())
    assert device.reading.feed() == page
    assert device.reading.offer(page) == Offer(new=4), "one is three days old: it came late, and is no news"
    device.interests.stance("topic", new[1].topic, "block")
    assert device.reading.offer(page).new == 3
    clock.go_on(1)
    device.reading.open("new0")
    assert device.reading.offer(page).new == 2
    clock.go_on(1)
    assert {"new2", "new3"} < set(ids(new_page(device)))
    assert device.reading.offer(device.reading.feed()).new == 0


@pytest.mark.parametrize("arrived", [6, 40])
def test_next_page_shows_the_number_of_new_stories_that_was_offered(
    make: Make, backend: FakeBackend, clock: StillClock, arrived: int
) -> None:
    """Oracle: the stories that arrived, counted on the page; the reader looks, reads and likes after the offer."""
    device = make()
    device.reading.feed()
    click_on(device, backend, TOPIC, 4, clock)
    page = new_page(device)
    for visit in range(4):
        clock.go_on(600)
        new = arriving(clock, f"visit{visit}n", arrived)
        stories_arrive(device, new, clock())
        clock.go_on(60)
        offer = device.reading.offer(page).new
        assert 0 < offer <= arrived
        look_at_all(device, page)
        device.reading.open(page.items[2 + visit].card.id, page.feed_id)
        device.library.react(page.items[7].card.id, "like")
        clock.go_on(60)
        page = new_page(device)
        shown = {item.card.id for item in page.items} & {one.id for one in new}
        assert len(shown) == offer, visit
        assert device.reading.offer(page).came == shown, "and these are marked as new"


def test_only_stories_the_reader_saw_move_down_and_they_return_later(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.reading.feed()
    click_on(device, backend, TOPIC, 3, clock)
    first = new_page(device)
    again = new_page(device)
    kept = set(ids(first)) & set(ids(again))
    assert len(kept) >= 22, "nobody looked at the page: it is made of the same, but for what is drawn"
    look_at_all(device, again)
    other = new_page(device)
    assert len(set(ids(other)) & set(ids(again))) <= 10
    shares = []
    for _ in range(6):
        look_at_all(device, device.reading.feed())
        shares.append(share(new_page(device), TOPIC))
    assert min(shares) > 0, "a topic is never used up by refreshing"


def test_cards_never_in_view_stay_unseen(make: Make) -> None:
    device = make()
    page = device.reading.feed()
    seen = device.parts.stores.impressions.seen
    assert seen(LONG_AGO) == set()
    device.reading.view(page.feed_id, [])
    assert device.reading.view(page.feed_id, [*ids(page)[:2], "elsewhere"]) == 2
    assert device.reading.view(page.feed_id, ids(page)[:2]) == 0
    device.reading.open(ids(page)[9], page.feed_id)
    assert seen(LONG_AGO) == {ids(page)[0], ids(page)[1], ids(page)[9]}


def test_opened_story_and_those_above_it_count_as_seen_without_scripts(make: Make) -> None:
    device = make()
    page = device.reading.feed()
    device.reading.open(ids(page)[4], page.feed_id)
    seen = device.parts.stores.impressions.seen
    assert seen(LONG_AGO) == set(ids(page)[:5])
    beside = next(item for item in page.items if item.slot == "fresh")
    above = {
        item.card.id for item in page.items if item.slot not in ("lead", "for_you") and item.position <= beside.position
    }
    device.reading.open(beside.card.id, page.feed_id)
    assert seen(LONG_AGO) == set(ids(page)[:5]) | above


def test_training_and_counts_use_only_the_stories_seen(make: Make, clock: StillClock) -> None:
    device = make()
    page = device.reading.feed()
    clock.go_on(60)
    device.reading.view(page.feed_id, ids(page)[:6])
    device.reading.open(ids(page)[5], page.feed_id)
    stores = device.parts.stores
    (sample,) = stores.impressions.for_training(10)
    assert (sample.shown, sample.clicked) == (tuple(ids(page)[:6]), (ids(page)[5],))
    first = stores.counted.window(clock(), timedelta(days=1))
    assert (first.displayed, first.clicked) == (frozenset(ids(page)[:6]), frozenset([ids(page)[5]]))


def test_several_previous_pages_can_be_restored_and_an_erase_removes_them(make: Make, clock: StillClock) -> None:
    device = make()
    pages = []
    for _ in range(4):
        pages.append(device.reading.feed(refresh=True))
        clock.go_on(60)
    device = make()
    at: str | None = device.reading.feed().feed_id
    found = []
    while at is not None:
        feed = device.reading.page(at)
        assert feed is not None
        found.append(feed)
        at = device.reading.offer(feed).before
    assert [feed.items for feed in found] == [feed.items for feed in reversed(pages)]
    assert [device.reading.page_path(feed.feed_id) for feed in pages] == [
        *(f"/page/{feed.feed_id}" for feed in pages[:3]),
        "/",
    ]
    device.privacy.erase()
    assert [device.reading.page(feed.feed_id) for feed in pages] == [None] * 4
    assert make().parts.stores.database.number("SELECT count(*) FROM feed") == 0


def test_deleted_click_is_removed_from_the_reasons_of_stored_pages(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.reading.feed()
    click_on(device, backend, TOPIC, 4, clock)
    page = new_page(device)
    named = {click.id for item in page.items for click in item.reason.clicks}
    assert named
    for entry in device.library.history().entries:
        device.library.delete_click(entry.click_id)
    again = device.reading.feed()
    assert ids(again) == ids(page)
    assert not any(item.reason.clicks for item in again.items)
    kept = device.parts.stores.feeds.get(page.feed_id)
    assert kept is not None
    assert not any(f'"{news_id}"' in kept.content for news_id in named - set(ids(page)))
