"""Recall on the device: by choice, and when the budget is spent."""

from __future__ import annotations

import numpy as np

from device_app.wire.news import BodiesRequest
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import TOPIC, Make, click_on, share


def test_broadcast_finds_news_here_reports_nothing_and_asks_for_texts_by_the_block(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    backend.pool_codes = True
    backend.publish()
    device = make(mode="broadcast", default_list_limit=200)
    device.sync()
    device.feed(refresh=True)
    before = set(backend.paths())
    click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed(refresh=True)
    assert (feed.mode, feed.notice, feed.recalled) == ("personal", None, 400)
    assert share(feed, TOPIC) >= 0.2
    assert "search" in feed.device_ms
    clicks = device.parts.serving.feed_context.user_preferences.reading(backend.encoder).active
    mean = np.mean([click.vector for click in clicks], axis=0)
    wanted = np.argsort(-(backend.pool.vectors @ (mean / np.linalg.norm(mean))))[:400]
    found = device.parts.serving.feed_context.recall.broadcast.find(mean / np.linalg.norm(mean), 400, backend.encoder)
    shared = {card.id for card in found.cards} & {backend.pool.cards[row].id for row in wanted}
    assert len(shared) >= 390, "256 steps a coordinate lose hardly anything"
    assert "/v1/recall" not in backend.paths()
    assert set(backend.paths()) == before
    assert device.status().shield == "green"
    assert device.privacy().budgets[0].lifetime == 0

    kept = device.parts.stores.default_list.current()
    assert kept is not None
    default_list = set(kept.news_ids)
    while device.prefetch_step():
        pass
    backend.requests.clear()
    opened = next(item.card.id for item in feed.items if item.card.id not in default_list)
    assert device.open(opened, feed.feed_id).paragraphs == ()
    assert device.prefetch_step()
    ((_, path, body),) = backend.requests
    block = BodiesRequest.model_validate_json(body).ids
    assert path == "/v1/news/bodies"
    assert len(block) == 100
    assert opened in block
    ids = sorted(card.id for card in backend.pool.cards)
    row = ids.index(opened)
    assert block == tuple(ids[row // 100 * 100 : row // 100 * 100 + 100])
    assert device.open(opened, feed.feed_id).paragraphs == (f"First of {opened}.", f"Second of {opened}.")


def test_broadcast_without_a_pool_says_so_and_ranks_the_common_list(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make(mode="broadcast")
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed(refresh=True)
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
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed(refresh=True)
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
    device.feed(refresh=True)
    database = device.parts.stores.database
    with database.transaction():
        database.write("DELETE FROM pool_card WHERE place < 50")
    click_on(device, backend, TOPIC, 4, clock)
    assert device.feed(refresh=True).mode == "front"
    device.sync()
    assert device.feed(refresh=True).mode == "personal"
