"""What the reader sees, and how reading, reacting and following change it."""

from __future__ import annotations

from collections import Counter
from threading import Thread

import pytest

from device_app.errors import BackendUnreachable, NewsNotHere
from device_app.store.preferences import LAST_ANSWER
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import PAPER, TOPIC, Make, click_on, share
from tests.doubles.new_page import new_page


def test_first_page_is_full_without_any_clicks_and_sends_nothing_personal(make: Make, backend: FakeBackend) -> None:
    feed = make().reading.feed()
    assert feed.mode == "cold"
    assert len(feed.items) == 30
    assert {item.slot for item in feed.items} == {"lead", "for_you", "fresh", "explore", "developing"}
    assert [item.position for item in feed.items] == list(range(30))
    assert all(method == "GET" for method, _, _ in backend.requests)
    assert len({item.card.section for item in feed.in_slot("lead", "for_you")}) >= 5


def test_chosen_sections_lift_their_articles_and_are_not_sent(make: Make, backend: FakeBackend) -> None:
    device = make()
    before = Counter(item.card.section for item in new_page(device).in_slot("lead", "for_you"))["section6"]
    device.interests.choose_sections(("section6",))
    after = Counter(item.card.section for item in new_page(device).in_slot("lead", "for_you"))["section6"]
    assert after >= before + 4
    assert device.status().chosen_sections == ("section6",)
    assert b"section6" not in b"".join(body for _, _, body in backend.requests)


def test_clicks_move_the_feed_towards_their_topic(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    before = share(new_page(device), TOPIC)
    click_on(device, backend, TOPIC, 4, clock)
    feed = new_page(device)
    assert feed.mode == "personal"
    assert feed.recalled == 400
    assert share(feed, TOPIC) >= before + 0.2
    assert feed.lead is not None
    assert feed.lead.card.section == "section2"
    assert any(item.reason.kind == "interest" and item.reason.clicks for item in feed.items)


def test_times_of_the_stages_add_up_and_are_stored_for_the_latency_page(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make(**PAPER)
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    feed = new_page(device)
    assert set(feed.device_ms) == {"store", "cluster", "rank", "build"}, "a page asks nobody"
    view = device.latency()
    assert view.recall is not None
    stages = {bar.name for bar in view.recall.stages if bar.place != "server"}
    assert stages == {"store", "cluster", "decompose", "noise", "encode", "network", "decode"}
    assert view.count == 2
    whole = pytest.approx(sum(feed.device_ms.values()))
    assert view.requests[0].total_ms == whole
    assert make(**PAPER).latency().requests[0].total_ms == whole, "after a restart, storing included"
    server = [bar for bar in view.recall.stages if bar.place == "server"]
    assert [bar.name for bar in server] == ["decode", "aggregate", "search", "merge", "encode"]


def test_refreshing_costs_no_budget_and_no_request(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    first = new_page(device)
    sent = len(backend.requests)
    assert device.reading.feed() is first
    second = device.reading.feed(refresh=True)
    assert len(backend.requests) == sent
    assert second.feed_id != first.feed_id
    device.recall_step()
    report, again = backend.requests[-2:]
    assert report == again, "the background sends the same bytes"
    assert device.privacy.overview().budgets[0].spent_today == 4


def test_restart_continues_with_the_last_answer(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    """Regression: the first pages of each start had the default list alone, until the next request was due."""
    device = make()
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    before = new_page(device)
    while device.prefetch_step():
        pass
    sent, device = len(backend.requests), make()
    after = device.reading.feed(refresh=True)
    assert (before.mode, before.recalled) == (after.mode, after.recalled) == ("personal", 400)
    assert len(backend.requests) == sent
    device.privacy.erase()
    assert make().parts.stores.preferences.get(LAST_ANSWER) is None


def test_device_restarted_after_a_report_without_clicks_shows_the_default_list(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    new_page(device)
    while device.prefetch_step():
        pass
    click_on(device, backend, TOPIC, 3, clock)
    assert make().reading.feed(refresh=True).mode == "front"


def test_blocked_and_unwanted_articles_never_return(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    unwanted = new_page(device).items[1].card.id
    device.library.react(unwanted, "less")
    device.interests.stance("topic", TOPIC, "block")
    device.interests.stance("publisher", "Paper 3", "block")
    for _ in range(5):
        feed = new_page(device)
        assert all(item.card.topic != TOPIC and item.card.publisher != "Paper 3" for item in feed.items)
        assert unwanted not in {item.card.id for item in feed.items}
    assert all(card.topic != TOPIC for listed in device.reading.explore() for card in listed.cards)
    device.interests.stance("topic", TOPIC, None)
    assert share(new_page(device), TOPIC) > 0


def test_following_page_lists_all_followed_stories_newest_first(make: Make, backend: FakeBackend) -> None:
    backend.pool_codes = True
    backend.publish()
    device = make(default_list_limit=50)
    device.sync()
    device.interests.stance("section", "section4", "follow")
    device.interests.stance("topic", TOPIC, "block")
    listed = device.whole_pool.following()
    wanted = [card for card in backend.pool.cards if card.section == "section4" and card.topic != TOPIC]
    ordered = sorted(wanted, key=lambda one: (one.published_at, one.id), reverse=True)
    first = {one.story: one.id for one in reversed(ordered) if one.story}
    assert listed == [one.id for one in ordered if one.story is None or first[one.story] == one.id]


def test_repeated_reaction_is_undone(make: Make) -> None:
    device = make()
    news_id = new_page(device).items[0].card.id
    assert device.library.react(news_id, "like")
    assert device.library.reactions() == {news_id: frozenset({"like"})}
    assert not device.library.react(news_id, "like")
    assert device.library.reactions() == {}
    with pytest.raises(NewsNotHere):
        device.library.react("nowhere", "save")


def test_last_feed_is_shown_while_the_backend_is_down(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    last = new_page(device)
    while device.prefetch_step():
        pass
    backend.down = True
    device.parts.serving.feed_context.recall.forget()
    offline = new_page(device)
    assert offline.mode == "offline"
    assert device.status().online is False, "the page says so at once"
    assert offline.items == last.items
    assert offline.made_at == last.made_at
    assert "Can't reach the publisher." in (offline.notice or "")
    assert "20 November" in (offline.notice or "")
    article = device.reading.open(offline.items[5].card.id, offline.feed_id)
    assert article.paragraphs == (f"First of {article.card.id}.", f"Second of {article.card.id}.")
    with pytest.raises(BackendUnreachable):
        device.sync()
    assert device.status().online is False
    assert [trouble.loop for trouble in device.status().alerts] == ["sync"]
    backend.down = False
    device.sync()
    assert device.status().alerts == ()
    assert new_page(device).mode == "personal"


@pytest.mark.parametrize(
    ("own_feeds", "who"), [(False, "the publisher"), (True, "the part of Ownfeed that reads your feeds")]
)
def test_device_that_never_reached_its_server_names_it_in_the_notice(
    make: Make, backend: FakeBackend, *, own_feeds: bool, who: str
) -> None:
    backend.down = True
    device = make(own_feeds=own_feeds)
    feed = new_page(device)
    assert (feed.mode, feed.items) == ("offline", ())
    assert feed.notice == f"Can't reach {who}. There is no page to show yet. This device keeps trying."
    asked = len(backend.requests)
    assert device.reading.feed().mode == "offline"
    assert len(backend.requests) == asked, "a reader who looks again shows in no request"
    backend.down = False
    device.sync()
    assert device.reading.feed().mode == "cold"
    backend.down = True
    assert (device.parts.serving.offline(BackendUnreachable("http://b", "x")).notice or "").startswith(
        f"Can't reach {who}. Showing your page from "
    )


def test_concurrent_readers_get_complete_feeds(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    first = new_page(device)
    failures: list[Exception] = []

    def read(n: int) -> None:
        try:
            for step in range(4):
                device.reading.open(first.items[(4 * n + step) % 30].card.id, first.feed_id)
                assert len(device.reading.feed(refresh=step % 2 == 0).items) == 30
                device.status()
        except Exception as failed:
            failures.append(failed)

    threads = [Thread(target=read, args=(n,)) for n in range(5)]
    threads += [Thread(target=device.sync), Thread(target=device.prefetch_step)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert device.status().clicks == 20
    assert device.alerts.now() == ()
