"""Journeys of one reader against a backend in memory, on a real database."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
from pydantic import ValidationError

from device_app.composition import build_device
from device_app.device import Device
from device_app.errors import BackendUnreachable, UnknownNews
from device_app.feed.item import Feed
from device_app.privacy.noise import SeededNoise
from device_app.settings import DeviceSettings, PerformanceSettings, PrivacySettings
from device_app.wire.news import BodiesRequest
from device_app.wire.problems import Problem
from device_app.wire.recall import CodeReport, RecallRequest
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW

TOPIC = "section2 topic1"
Make = Callable[..., Device]
PAPER = {
    "mode": "basis_laplace",
    "epsilon_per_day_reports": 150,
    "epsilon_lifetime_reports": None,
    "clicks_before_report": 1,
    "clicks_per_report": 5,
}
"""Uni-FedRec's own report, for which a day needs a budget of its own."""


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def clock() -> StillClock:
    return StillClock(NOW)


@pytest.fixture
def make(tmp_path: Path, backend: FakeBackend, clock: StillClock) -> Iterator[Make]:
    made: list[Device] = []

    def build(*, front_limit: int = 600, **privacy: object) -> Device:
        device = build_device(
            DeviceSettings(
                data_dir=tmp_path,
                privacy=PrivacySettings.model_validate(privacy),
                performance=PerformanceSettings(bodies_wait_sec=0.2, front_limit=front_limit),
            ),
            transport=backend.transport(),
            noise=SeededNoise(bytes(32)),
            chance=random.Random(5),
            clock=clock,
        )
        made.append(device)
        return device

    yield build
    for device in made:
        device.close()


def _share(feed: Feed, topic: str) -> float:
    personal = feed.in_slot("lead", "for_you")
    return sum(item.card.topic == topic for item in personal) / len(personal)


def _click_on(device: Device, backend: FakeBackend, topic: str, clicks: int, clock: StillClock) -> None:
    """Open news of a topic from the common list, as a reader of Explore would."""
    front = {card.id for shelf in device.explore() for card in shelf.cards}
    wanted = [row for row in backend.pool.of_topic(topic) if backend.pool.cards[row].id in front]
    assert len(wanted) >= clicks
    for row in wanted[:clicks]:
        clock.go_on(30)
        device.open(backend.pool.cards[row].id)


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
    before = Counter(item.card.section for item in device.feed().in_slot("lead", "for_you"))["section6"]
    device.choose_sections(("section6",))
    after = Counter(item.card.section for item in device.feed().in_slot("lead", "for_you"))["section6"]
    assert after >= before + 4
    assert device.status().chosen_sections == ("section6",)
    assert b"section6" not in b"".join(body for _, _, body in backend.requests)


def test_clicks_move_the_feed_towards_their_topic(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    before = _share(device.feed(), TOPIC)
    _click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed()
    assert feed.mode == "personal"
    assert feed.recalled == 400
    assert _share(feed, TOPIC) >= before + 0.2
    assert feed.lead is not None
    assert feed.lead.card.section == "section2"
    assert any(item.reason.kind == "interest" and item.reason.clicks for item in feed.items)


def test_a_click_reaches_the_backend_in_no_request(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make(clicks_before_report=1)
    device.feed()
    backend.requests.clear()
    news_id = device.feed().items[3].card.id
    device.open(news_id, device.feed().feed_id)
    device.feed()
    while device.prefetch_step():
        pass
    posted = [(path, body) for method, path, body in backend.requests if method == "POST"]
    assert {path for path, _ in posted} == {"/v1/recall", "/v1/news/bodies"}
    for path, body in posted:
        if path == "/v1/news/bodies":
            assert len(BodiesRequest.model_validate_json(body).ids) >= 400
        else:
            assert news_id.encode() not in body


def test_stages_add_up_and_are_kept_for_the_latency_page(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make(**PAPER)
    device.feed()
    _click_on(device, backend, TOPIC, 3, clock)
    feed = device.feed()
    assert set(feed.device_ms) >= {"store", "cluster", "decompose", "noise", "network", "decode", "rank", "build"}
    assert set(feed.server_ms) == {"decode", "aggregate", "search", "merge", "encode"}
    view = device.latency()
    assert view.count == 2
    assert view.requests[0].total_ms == pytest.approx(feed.total_device_ms)
    server = [bar for bar in view.requests[0].stages if bar.place == "server"]
    assert [bar.name for bar in server] == ["decode", "aggregate", "search", "merge", "encode"]


def test_refreshing_costs_neither_budget_nor_a_request(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.feed()
    _click_on(device, backend, TOPIC, 3, clock)
    first = device.feed()
    sent = len(backend.requests)
    assert device.feed() is first
    second = device.feed(refresh=True)
    assert len(backend.requests) == sent
    assert second.feed_id != first.feed_id
    assert device.privacy().budgets[0].spent_today == 4


def test_news_that_was_shown_is_not_shown_again(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.feed()
    _click_on(device, backend, TOPIC, 3, clock)
    shown: set[str] = set()
    for _ in range(6):
        feed = device.feed(refresh=True)
        ids = {item.card.id for item in feed.items}
        assert not shown & ids
        shown |= ids


def test_blocked_and_unwanted_news_never_comes_back(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.feed()
    _click_on(device, backend, TOPIC, 4, clock)
    unwanted = device.feed().items[1].card.id
    device.react(unwanted, "less")
    device.stance("topic", TOPIC, "block")
    device.stance("publisher", "Paper 3", "block")
    for _ in range(5):
        feed = device.feed(refresh=True)
        assert all(item.card.topic != TOPIC and item.card.publisher != "Paper 3" for item in feed.items)
        assert unwanted not in {item.card.id for item in feed.items}
    assert all(card.topic != TOPIC for shelf in device.explore() for card in shelf.cards)
    device.stance("topic", TOPIC, None)
    assert _share(device.feed(), TOPIC) > 0


def test_following_lists_what_is_followed(make: Make) -> None:
    device = make()
    device.feed()
    device.stance("section", "section4", "follow")
    items = device.following()
    assert len(items) >= 20
    assert {item.card.section for item in items} == {"section4"}
    assert {item.reason.words for item in items} == {"You follow section4."}
    assert device.stances() == {("section", "section4"): "follow"}


def test_the_same_reaction_twice_is_taken_back(make: Make) -> None:
    device = make()
    news_id = device.feed().items[0].card.id
    assert device.react(news_id, "like")
    assert device.reactions() == {news_id: frozenset({"like"})}
    assert not device.react(news_id, "like")
    assert device.reactions() == {}
    with pytest.raises(UnknownNews):
        device.react("nowhere", "save")


def test_the_last_feed_serves_while_the_backend_is_down(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.feed()
    _click_on(device, backend, TOPIC, 3, clock)
    last = device.feed()
    while device.prefetch_step():
        pass
    backend.down = True
    device.parts.serving.desk.recall.forget()
    offline = device.feed(refresh=True)
    assert offline.mode == "offline"
    assert offline.items == last.items
    assert offline.made_at == last.made_at
    assert "does not answer" in (offline.notice or "")
    assert "20 November" in (offline.notice or "")
    article = device.open(offline.items[5].card.id, offline.feed_id)
    assert article.paragraphs == (f"First of {article.card.id}.", f"Second of {article.card.id}.")
    with pytest.raises(BackendUnreachable):
        device.sync()
    assert device.status().online is False
    assert [trouble.loop for trouble in device.status().troubles] == ["sync"]
    backend.down = False
    device.sync()
    assert device.status().troubles == ()
    assert device.feed(refresh=True).mode == "personal"


def test_a_device_that_never_reached_the_backend_says_so(make: Make, backend: FakeBackend) -> None:
    backend.down = True
    device = make()
    feed = device.feed()
    assert (feed.mode, feed.items) == ("offline", ())
    assert "no feed to show yet" in (feed.notice or "")
    backend.down = False
    assert device.feed().mode == "cold"


def test_a_spent_budget_leaves_the_common_list_ranked_here(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make(epsilon_per_day_reports=3.9)
    device.feed()
    _click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed()
    assert feed.mode == "front"
    assert "budget" in (feed.notice or "")
    assert "/v1/recall" not in backend.paths()
    assert _share(feed, TOPIC) >= 0.2
    assert device.status().shield == "amber"


def test_with_a_report_already_paid_for_a_spent_budget_goes_on_with_it(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make(**PAPER | {"epsilon_per_day_reports": 50, "clicks_per_report": 1})
    device.feed()
    _click_on(device, backend, TOPIC, 2, clock)
    assert device.feed().notice is None
    _click_on(device, backend, "section5 topic0", 2, clock)
    device.parts.serving.desk.recall.forget()
    feed = device.feed()
    assert (feed.mode, "last report" in (feed.notice or "")) == ("personal", True)
    first, second = [body for _, path, body in backend.requests if path == "/v1/recall"]
    assert first == second
    clock.go_on(24 * 3600)
    device.parts.serving.changed()
    assert device.feed().notice is None


def test_a_code_is_reported_by_default_costs_four_and_is_shown_with_the_truth(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.feed()
    _click_on(device, backend, TOPIC, 2, clock)
    assert device.feed().mode == "cold", "two clicks say too little to pay for"
    assert "/v1/recall" not in backend.paths()
    _click_on(device, backend, TOPIC, 3, clock)
    assert device.feed().mode == "personal"
    (body,) = [body for _, path, body in backend.requests if path == "/v1/recall"]
    report = RecallRequest.model_validate_json(body).report
    assert isinstance(report, CodeReport)
    view = device.privacy()
    assert view.report is not None
    assert view.report.noisy == ((float(report.code),),)
    assert view.report.clear is not None
    clicks = device.parts.serving.desk.tastes.reading(backend.encoder).active
    mean = np.mean([click.vector for click in clicks], axis=0)
    assert view.report.clear == ((float(np.argmax(backend.prototypes @ mean)),),)
    assert view.mechanism is not None
    assert (view.mechanism.epsilon_per_report, view.budgets[0].lifetime, view.budgets[0].lifetime_limit) == (4, 4, 40)


def test_thirty_sessions_of_one_taste_send_one_code_and_pay_once(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.feed()
    _click_on(device, backend, TOPIC, 5, clock)
    for _ in range(30):
        clock.go_on(24 * 3600)
        device.parts.serving.desk.recall.forget()
        device.feed(refresh=True)
    bodies = {body for _, path, body in backend.requests if path == "/v1/recall"}
    assert len([path for path in backend.paths() if path == "/v1/recall"]) == 30
    assert len(bodies) == 1
    assert device.privacy().budgets[0].lifetime == 4


def test_a_lower_limit_of_a_report_takes_the_old_one_out_of_use_at_once_and_the_way_back_is_free(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.feed()
    _click_on(device, backend, TOPIC, 4, clock)
    assert device.feed().mode == "personal"
    device.set_privacy(epsilon_per_report=2)
    assert device.feed().mode == "front"
    device.set_privacy(epsilon_per_report=4)
    assert device.feed().mode == "personal"
    assert device.privacy().budgets[0].lifetime == 4


def test_a_release_without_a_codebook_within_the_limit_reports_nothing_and_says_so(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make(epsilon_per_report=2)
    device.feed()
    _click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed()
    assert feed.mode == "front"
    assert "no way to report within 2 epsilon" in (feed.notice or "")
    assert "the list that everybody gets" in (feed.notice or "")
    assert "/v1/recall" not in backend.paths()
    assert device.status().shield == "amber"


def test_broadcast_finds_news_here_reports_nothing_and_asks_for_texts_by_the_block(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    backend.pool_codes = True
    backend.publish()
    device = make(mode="broadcast", front_limit=200)
    device.sync()
    device.feed()
    before = set(backend.paths())
    _click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed()
    assert (feed.mode, feed.notice, feed.recalled) == ("personal", None, 400)
    assert _share(feed, TOPIC) >= 0.2
    assert "search" in feed.device_ms
    clicks = device.parts.serving.desk.tastes.reading(backend.encoder).active
    mean = np.mean([click.vector for click in clicks], axis=0)
    wanted = np.argsort(-(backend.pool.vectors @ (mean / np.linalg.norm(mean))))[:400]
    found = device.parts.serving.desk.recall.broadcast.find(mean / np.linalg.norm(mean), 400, backend.encoder)
    shared = {card.id for card in found.cards} & {backend.pool.cards[row].id for row in wanted}
    assert len(shared) >= 390, "256 steps a coordinate lose hardly anything"
    assert "/v1/recall" not in backend.paths()
    assert set(backend.paths()) == before
    assert device.status().shield == "green"
    assert device.privacy().budgets[0].lifetime == 0

    kept = device.parts.shelves.front_page.current()
    assert kept is not None
    front = set(kept.news_ids)
    while device.prefetch_step():
        pass
    backend.requests.clear()
    opened = next(item.card.id for item in feed.items if item.card.id not in front)
    assert device.open(opened, feed.feed_id).paragraphs == ()
    assert device.prefetch_step()
    ((_, path, body),) = backend.requests
    block = BodiesRequest.model_validate_json(body).ids
    assert path == "/v1/news/bodies"
    assert len(block) == 100
    assert opened in block
    row = next(at for at, card in enumerate(backend.pool.cards) if card.id == opened)
    assert block == tuple(card.id for card in backend.pool.cards[row // 100 * 100 : row // 100 * 100 + 100])
    assert device.open(opened, feed.feed_id).paragraphs == (f"First of {opened}.", f"Second of {opened}.")


def test_broadcast_without_a_pool_says_so_and_ranks_the_common_list(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make(mode="broadcast")
    device.feed()
    _click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed()
    assert feed.mode == "front"
    assert "no codes of the pool" in (feed.notice or "")
    assert "/v1/recall" not in backend.paths()


def test_a_spent_budget_is_followed_by_recall_on_this_device_and_says_so(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    backend.pool_codes = True
    backend.publish()
    device = make(epsilon_lifetime_reports=3)
    device.sync()
    device.feed()
    _click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed()
    assert (feed.mode, feed.recalled) == ("personal", 400)
    assert "lifetime budget" in (feed.notice or "")
    assert "found on this device" in (feed.notice or "")
    assert "/v1/recall" not in backend.paths()
    assert device.status().shield == "amber"


def test_a_damaged_pool_is_let_go_of_and_fetched_again(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    backend.pool_codes = True
    backend.publish()
    device = make(mode="broadcast")
    device.sync()
    device.feed()
    database = device.parts.shelves.database
    with database.transaction():
        database.write("DELETE FROM pool_card WHERE place < 50")
    _click_on(device, backend, TOPIC, 4, clock)
    assert device.feed().mode == "front"
    device.sync()
    assert device.feed(refresh=True).mode == "personal"


def test_reports_switched_off_send_no_report_and_stay_off(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.set_privacy(mode="none")
    device.feed()
    _click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed()
    assert (feed.mode, "switched off" in (feed.notice or "")) == ("front", True)
    assert _share(feed, TOPIC) >= 0.2
    device.erase()
    again = make()
    assert again.privacy().settings.mode == "none"
    assert "/v1/recall" not in backend.paths()


def test_a_privacy_setting_out_of_bounds_changes_nothing(make: Make) -> None:
    device = make()
    with pytest.raises(ValidationError, match="clicks_per_report"):
        device.set_privacy(clicks_per_report=0, training=True)
    assert device.privacy().settings == PrivacySettings()
    device.set_privacy(clicks_per_report=9)
    assert make().privacy().settings.clicks_per_report == 9


def test_a_refused_report_gives_the_common_list_and_the_reason(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.feed()
    backend.refuse_recall = Problem(type="urn:x", title="Too many", status=429, detail="slow down")
    _click_on(device, backend, TOPIC, 3, clock)
    feed = device.feed()
    assert feed.mode == "front"
    assert "Too many: slow down" in (feed.notice or "")
    assert len(feed.items) == 30


def test_a_new_release_does_not_cost_a_new_report(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.feed()
    _click_on(device, backend, TOPIC, 3, clock)
    device.feed()
    backend.publish()
    assert device.sync()
    device.parts.serving.desk.recall.forget()
    feed = device.feed(refresh=True)
    assert (feed.release, feed.mode) == ("r2", "personal")
    assert device.privacy().budgets[0].spent_today == 4


def test_an_unknown_story_leaves_no_click(make: Make) -> None:
    device = make()
    device.feed()
    with pytest.raises(UnknownNews):
        device.open("nowhere")
    assert device.status().clicks == 0


def test_the_same_story_opened_twice_from_one_feed_is_one_click(make: Make) -> None:
    device = make()
    feed = device.feed()
    news_id = feed.items[0].card.id
    for _ in range(3):
        article = device.open(news_id, feed.feed_id)
    assert device.status().clicks == 1
    assert article.reason == feed.items[0].reason
    assert 1 <= len(article.related) <= 4
    assert news_id not in {card.id for card in article.related}


def test_a_click_survives_a_kill_and_a_feed_is_recorded_before_it_is_seen(
    make: Make, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = make()
    feed = device.feed()

    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(device.parts.serving, "changed", kill)
    with pytest.raises(Killed):
        device.open(feed.items[2].card.id, feed.feed_id)
    again = make()
    assert [entry.news_id for entry in again.history().entries] == [feed.items[2].card.id]
    assert {item.card.id for item in feed.items} <= again.parts.shelves.impressions.seen(NOW - timedelta(days=1))

    monkeypatch.setattr(again.parts.shelves.feeds, "save", kill)
    seen_before = again.parts.shelves.impressions.seen(NOW - timedelta(days=1))
    with pytest.raises(Killed):
        again.feed(refresh=True)
    assert make().parts.shelves.impressions.seen(NOW - timedelta(days=1)) == seen_before


def test_texts_are_fetched_for_whole_lists_and_opening_waits_for_them(make: Make, backend: FakeBackend) -> None:
    device = make()
    feed = device.feed()
    assert device.open(feed.items[0].card.id, feed.feed_id).paragraphs == ()
    stop = Event()
    reader = Thread(target=device.parts.bodies.attend, args=(stop, 0.05, device.prefetch_step))
    reader.start()
    try:
        article = device.open(feed.items[1].card.id, feed.feed_id)
    finally:
        stop.set()
        reader.join()
    assert len(article.paragraphs) == 2
    asked = [body for _, path, body in backend.requests if path == "/v1/news/bodies"]
    front = device.parts.shelves.front_page.current()
    assert front is not None
    assert [set(json.loads(body)["ids"]) for body in asked] == [set(front.news_ids)]


def test_a_failed_fetch_of_texts_is_tried_again_whole(make: Make, backend: FakeBackend) -> None:
    device = make()
    device.feed()
    backend.down = True
    with pytest.raises(BackendUnreachable):
        device.prefetch_step()
    backend.down = False
    assert device.prefetch_step()
    assert not device.prefetch_step()
    asked = [body for _, path, body in backend.requests if path == "/v1/news/bodies"]
    assert len(asked) == 2
    assert asked[0] == asked[1]


def test_interests_can_be_named_muted_and_forgotten(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make(**PAPER)
    device.feed()
    _click_on(device, backend, TOPIC, 4, clock)
    _click_on(device, backend, "section5 topic0", 3, clock)
    first, second = device.interests()
    assert (first.label, first.clicks, second.label, second.clicks) == (TOPIC, 4, "section5 topic0", 3)
    device.rename(first.key, "On the river")
    assert device.interests()[0].label == "On the river"
    assert any(item.reason.interest == "On the river" for item in device.feed().items)

    device.mute(first.key, True)
    muted = device.feed()
    assert _share(muted, TOPIC) == 0
    report = device.privacy().report
    assert report is not None
    assert report.counts == (3,)
    assert [(one.label, one.muted) for one in device.interests()] == [
        ("section5 topic0", False),
        ("On the river", True),
    ]
    device.mute(first.key, False)
    assert [one.muted for one in device.interests()] == [False, False]

    device.forget(second.key)
    assert [one.label for one in device.interests()] == ["On the river"]
    assert device.history().total == 4


def test_history_is_searched_and_pruned_by_the_reader(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.feed()
    _click_on(device, backend, TOPIC, 3, clock)
    page = device.history("topic1")
    assert (page.total, page.pages, len(page.entries)) == (3, 1, 3)
    assert page.entries[0].at > page.entries[1].at
    assert device.delete_click(page.entries[0].click_id)
    assert not device.delete_click(page.entries[0].click_id)
    assert device.history().total == 2
    assert device.history("nothing like it").entries == ()


def test_the_privacy_page_shows_the_very_bytes(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make(**PAPER)
    device.feed()
    _click_on(device, backend, TOPIC, 3, clock)
    device.feed()
    view = device.privacy()
    assert view.mechanism is not None
    assert view.mechanism.epsilon_per_report == pytest.approx(50)
    assert (view.budgets[0].spent_today, view.budgets[0].left_today) == (pytest.approx(50), pytest.approx(100))
    line = next(entry for entry in view.log.lines if entry.url.endswith("/v1/recall"))
    assert line.epsilon == pytest.approx(50)
    traffic = device.traffic(line.entry_id)
    assert traffic is not None
    assert traffic.request_body == next(body for _, path, body in backend.requests if path == "/v1/recall")
    assert traffic.request_head.startswith("POST /v1/recall HTTP/1.1")
    assert view.report is not None
    assert view.report.clear is not None
    assert len(view.report.noisy) == len(view.report.clear) == len(view.report.labels) == 1
    assert max(abs(score) for score in view.report.clear[0]) <= 0.2
    assert view.clicks_until_report == 3
    assert device.traffic(10_000) is None


def test_export_holds_all_and_erase_leaves_nothing_of_the_reader(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.feed()
    _click_on(device, backend, TOPIC, 3, clock)
    device.choose_sections(("section6",))
    device.feed()
    tables = json.loads(json.dumps(device.export()))["tables"]
    assert len(tables["click"]) == 3
    assert {"impression", "charge", "traffic", "report_memo", "drawn_report", "preference"} <= tables.keys()
    device.erase()
    tables = device.export()["tables"]
    for name in (
        "click",
        "impression",
        "traffic",
        "report_memo",
        "drawn_report",
        "pool",
        "feed",
        "reaction",
        "preference",
    ):
        assert tables[name] == [], name
    assert device.privacy().budgets[0].spent_today == 4
    assert device.feed().mode == "cold"
    assert device.status().chosen_sections is None


def test_readers_in_many_threads_get_whole_feeds(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    first = device.feed()
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
    assert device.troubles.now() == ()


def test_training_is_off_unless_switched_on(make: Make, backend: FakeBackend) -> None:
    device = make()
    device.feed()
    view = device.training()
    assert (view.settings.training, view.paused, view.round) == (False, False, None)
    assert "not switched training on" in (view.why_not or "")
    assert view.updates == (), "no model of this release has a gradient"
    device.pause_training(True)
    assert device.training().paused
    assert device.train_step().state == "idle"
