"""What the reader sees, and how reading, reacting and following change it."""

from __future__ import annotations

from collections import Counter
from threading import Thread

import pytest

from device_app.errors import BackendUnreachable, NewsNotHere
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import PAPER, TOPIC, Make, click_on, share


def test_a_first_page_is_cold_full_and_sends_nothing_about_anybody(make: Make, backend: FakeBackend) -> None:
    feed = make().feed()
    assert feed.mode == "cold"
    assert len(feed.items) == 30
    assert {item.slot for item in feed.items} == {"lead", "for_you", "fresh", "explore", "developing"}
    assert [item.position for item in feed.items] == list(range(30))
    assert all(method == "GET" for method, _, _ in backend.requests)
    assert len({item.card.section for item in feed.in_slot("lead", "for_you")}) >= 5


def test_sections_chosen_at_the_first_visit_lift_their_news_and_stay_here(make: Make, backend: FakeBackend) -> None:
    device = make()
    before = Counter(item.card.section for item in device.feed(refresh=True).in_slot("lead", "for_you"))["section6"]
    device.choose_sections(("section6",))
    after = Counter(item.card.section for item in device.feed(refresh=True).in_slot("lead", "for_you"))["section6"]
    assert after >= before + 4
    assert device.status().chosen_sections == ("section6",)
    assert b"section6" not in b"".join(body for _, _, body in backend.requests)


def test_clicks_move_the_feed_towards_their_topic(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    before = share(device.feed(refresh=True), TOPIC)
    click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed(refresh=True)
    assert feed.mode == "personal"
    assert feed.recalled == 400
    assert share(feed, TOPIC) >= before + 0.2
    assert feed.lead is not None
    assert feed.lead.card.section == "section2"
    assert any(item.reason.kind == "interest" and item.reason.clicks for item in feed.items)


def test_stages_add_up_and_are_kept_for_the_latency_page(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make(**PAPER)
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    feed = device.feed(refresh=True)
    assert set(feed.device_ms) >= {"store", "cluster", "decompose", "noise", "network", "decode", "rank", "build"}
    assert set(feed.server_ms) == {"decode", "aggregate", "search", "merge", "encode"}
    view = device.latency()
    assert view.count == 2
    assert view.requests[0].total_ms == pytest.approx(feed.total_device_ms)
    assert make(**PAPER).status().feed_ms == pytest.approx(feed.total_device_ms), "after a restart, storing included"
    server = [bar for bar in view.requests[0].stages if bar.place == "server"]
    assert [bar.name for bar in server] == ["decode", "aggregate", "search", "merge", "encode"]


def test_refreshing_costs_neither_budget_nor_a_request(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    first = device.feed(refresh=True)
    sent = len(backend.requests)
    assert device.feed() is first
    second = device.feed(refresh=True)
    assert len(backend.requests) == sent
    assert second.feed_id != first.feed_id
    assert device.privacy().budgets[0].spent_today == 4


def test_blocked_and_unwanted_news_never_comes_back(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    unwanted = device.feed(refresh=True).items[1].card.id
    device.react(unwanted, "less")
    device.stance("topic", TOPIC, "block")
    device.stance("publisher", "Paper 3", "block")
    for _ in range(5):
        feed = device.feed(refresh=True)
        assert all(item.card.topic != TOPIC and item.card.publisher != "Paper 3" for item in feed.items)
        assert unwanted not in {item.card.id for item in feed.items}
    assert all(card.topic != TOPIC for listed in device.explore() for card in listed.cards)
    device.stance("topic", TOPIC, None)
    assert share(device.feed(refresh=True), TOPIC) > 0


def test_following_lists_what_is_followed(make: Make) -> None:
    device = make()
    device.feed(refresh=True)
    device.stance("section", "section4", "follow")
    items = device.following()
    assert len(items) >= 20
    assert {item.card.section for item in items} == {"section4"}
    assert {item.reason.words for item in items} == {"You follow section4."}
    assert device.stances() == {("section", "section4"): "follow"}


def test_the_same_reaction_twice_is_taken_back(make: Make) -> None:
    device = make()
    news_id = device.feed(refresh=True).items[0].card.id
    assert device.react(news_id, "like")
    assert device.reactions() == {news_id: frozenset({"like"})}
    assert not device.react(news_id, "like")
    assert device.reactions() == {}
    with pytest.raises(NewsNotHere):
        device.react("nowhere", "save")


def test_the_last_feed_serves_while_the_backend_is_down(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    last = device.feed(refresh=True)
    while device.prefetch_step():
        pass
    backend.down = True
    device.parts.serving.feed_context.recall.forget()
    offline = device.feed(refresh=True)
    assert offline.mode == "offline"
    assert device.status().online is False, "the page says so at once"
    assert offline.items == last.items
    assert offline.made_at == last.made_at
    assert "does not answer" in (offline.notice or "")
    assert "20 November" in (offline.notice or "")
    article = device.open(offline.items[5].card.id, offline.feed_id)
    assert article.paragraphs == (f"First of {article.card.id}.", f"Second of {article.card.id}.")
    with pytest.raises(BackendUnreachable):
        device.sync()
    assert device.status().online is False
    assert [trouble.loop for trouble in device.status().alerts] == ["sync"]
    backend.down = False
    device.sync()
    assert device.status().alerts == ()
    assert device.feed(refresh=True).mode == "personal"


@pytest.mark.parametrize(
    ("own_feeds", "who"), [(False, "The newsroom"), (True, "The part of Ownfeed that reads your feeds")]
)
def test_a_device_that_never_reached_the_backend_says_so_and_of_whom_it_speaks(
    make: Make, backend: FakeBackend, *, own_feeds: bool, who: str
) -> None:
    backend.down = True
    device = make(own_feeds=own_feeds)
    feed = device.feed(refresh=True)
    assert (feed.mode, feed.items) == ("offline", ())
    assert feed.notice == f"{who} does not answer. There is no page to show yet; this device tries again by itself."
    backend.down = False
    made = device.feed(refresh=True)
    assert made.mode == "cold"
    backend.down = True
    assert (device.parts.serving.offline(BackendUnreachable("http://b", "x")).notice or "").startswith(
        f"{who} does not answer. This is your last page, of "
    )


def test_readers_in_many_threads_get_whole_feeds(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    first = device.feed(refresh=True)
    failures: list[Exception] = []

    def read(n: int) -> None:
        try:
            for step in range(4):
                device.open(first.items[(4 * n + step) % 30].card.id, first.feed_id)
                assert len(device.feed(refresh=step % 2 == 0).items) == 30
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
