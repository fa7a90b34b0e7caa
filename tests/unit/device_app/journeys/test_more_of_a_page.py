"""More at the end of a page, what came since the last one, and pages by name. Oracles: the backend double's own news
and its list of requests."""

from __future__ import annotations

import pytest

from device_app.feed.more import ADDED
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import TOPIC, Make


def test_a_page_grows_at_its_end_stays_grown_and_asks_nobody(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    first = device.feed(refresh=True)
    backend.requests.clear()
    longer = device.more(first.feed_id)
    assert longer is not None
    assert longer.items[: len(first.items)] == first.items, "what stood there stands there"
    added = longer.items[len(first.items) :]
    assert len(added) == ADDED
    assert {item.slot for item in added} == {"more"}
    assert [item.position for item in longer.items] == list(range(len(longer.items)))
    assert len({item.card.id for item in longer.items}) == len(longer.items), "nothing twice"
    assert backend.requests == []
    device.open(added[0].card.id, first.feed_id)
    assert device.feed() == device.page(first.feed_id) == longer, "a click changes nothing of it"
    assert device.parts.serving.feed_context.kept.feed(first.feed_id) == longer, "it is stored so"
    assert device.view(first.feed_id, [added[1].card.id]) == 1, "and what was added can be looked at"
    clock.go_on(1)
    assert not {item.slot for item in device.feed(refresh=True).items} & {"more"}, "another page begins anew"


def test_a_page_ends_where_nothing_is_left(make: Make, backend: FakeBackend) -> None:
    device = make(default_list_limit=50)
    feed = device.feed(refresh=True)
    for _ in range(5):
        assert device.more(feed.feed_id) is not None
    longer = device.page(feed.feed_id)
    assert longer is not None
    assert longer.complete
    assert device.more(feed.feed_id) == longer
    assert device.more("never-made") is None


def test_what_came_since_the_page_before_is_marked_and_stays_so(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    first = device.feed(refresh=True)
    assert device.offer(first).came == frozenset(), "a first page has no page before it"
    clock.go_on(60)
    second = device.feed(refresh=True)
    came = device.parts.stores.news.arrived_since(first.made_at, [item.card.id for item in second.items])
    assert device.offer(second).came <= came
    known = second.items[0].card
    newer = known.model_copy(update={"id": "just-in", "published_at": clock()})
    clock.go_on(60)
    device.parts.stores.news.put_cards([newer], clock())
    assert device.offer(second).came <= came, "what comes later marks nothing on a page that stands"


@pytest.mark.parametrize("with_pool", [True, False])
def test_a_topics_page_lists_the_whole_pool_where_its_copy_is_here_and_asks_nobody(
    make: Make, backend: FakeBackend, clock: StillClock, *, with_pool: bool
) -> None:
    backend.pool_codes = with_pool
    backend.publish()
    device = make(default_list_limit=50)
    device.sync()
    device.feed(refresh=True)
    backend.requests.clear()
    topic = device.explore()[0].cards[0].topic
    listed = device.whole_pool.named("topic", topic)
    everywhere = {card.id for card in backend.pool.cards if card.topic == topic}
    found = {card.id for card in listed}
    assert found <= everywhere
    assert [card.published_at for card in listed] == sorted((card.published_at for card in listed), reverse=True)
    if with_pool:
        assert device.whole_pool.size() == len(backend.pool.cards)
        assert len(found) == min(300, len(everywhere))
    else:
        assert device.whole_pool.size() is None
        assert len(found) < len(everywhere)
    device.whole_pool.show(listed)
    assert device.open(listed[-1].id).card.topic == topic
    assert backend.requests == [], "neither the page nor the story tells anybody"


def test_a_story_opened_from_the_pools_copy_counts_as_read(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    backend.pool_codes = True
    backend.publish()
    device = make(default_list_limit=50)
    device.sync()
    device.feed(refresh=True)
    here = set(device.parts.stores.news.missing([card.id for card in backend.pool.cards]))
    only_in_pool = [card for card in device.whole_pool.named("topic", TOPIC) if card.id in here][:4]
    assert len(only_in_pool) == 4
    device.whole_pool.show(only_in_pool)
    for card in only_in_pool:
        device.open(card.id)
        clock.go_on(60)
    assert device.interests(), "they have vectors, as coded"


def test_what_is_hidden_is_left_out_of_other_names_pages(make: Make, backend: FakeBackend) -> None:
    device = make()
    device.sync()
    device.feed(refresh=True)
    publisher = device.whole_pool.named("topic", TOPIC)[0].publisher
    device.stance("publisher", publisher, "block")
    assert publisher not in {card.publisher for card in device.whole_pool.named("topic", TOPIC)}
    assert device.whole_pool.named("publisher", publisher), "its own page still shows what is hidden"


def test_an_empty_page_tells_news_that_were_all_opened_from_news_that_never_came(make: Make, clock: StillClock) -> None:
    device = make(mode="none", default_list_limit=50)
    opened: set[str] = set()
    while (feed := device.feed(refresh=True)).items:
        for item in feed.items:
            clock.go_on(1)
            device.open(item.card.id, feed.feed_id)
            opened.add(item.card.id)
    listed = {card.id for section in device.explore() for card in section.cards}
    assert opened <= listed
    assert feed.left_out == len(listed) == 50, "the oracle: what the default list brought"
    assert "no news" not in (feed.notice or "")
