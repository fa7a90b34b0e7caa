"""Recall on the device: by choice, and when the budget is spent."""

from __future__ import annotations

import numpy as np

from protocol.news import BodiesRequest
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import TOPIC, Make, click_on, share
from tests.doubles.new_page import new_page


def test_broadcast_device_ranks_locally_reports_nothing_and_requests_texts_by_block(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    backend.pool_codes = True
    backend.publish()
    device = make(mode="broadcast", default_list_limit=200)
    device.sync()
    device.reading.feed(refresh=True)
    before = set(backend.paths())
    click_on(device, backend, TOPIC, 4, clock)
    feed = new_page(device)
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
    assert device.privacy.overview().budgets[0].lifetime == 0

    kept = device.parts.stores.default_list.current()
    assert kept is not None
    default_list = set(kept.news_ids)
    while device.prefetch_step():
        pass
    backend.requests.clear()
    opened = next(item.card.id for item in feed.items if item.card.id not in default_list)
    assert device.reading.open(opened, feed.feed_id).paragraphs == ()
    assert device.prefetch_step()
    ((_, path, body),) = backend.requests
    block = BodiesRequest.model_validate_json(body).ids
    assert path == "/v1/news/bodies"
    assert len(block) == 100
    assert opened in block
    ids = sorted(card.id for card in backend.pool.cards)
    row = ids.index(opened)
    assert block == tuple(ids[row // 100 * 100 : row // 100 * 100 + 100])
    assert device.reading.open(opened, feed.feed_id).paragraphs == (f"First of {opened}.", f"Second of {opened}.")


def test_broadcast_without_a_pool_ranks_the_default_list_with_a_notice(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make(mode="broadcast")
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    feed = new_page(device)
    assert feed.mode == "front"
    assert "offers no catalogue" in (feed.notice or "")
    assert "/v1/recall" not in backend.paths()


def test_device_with_a_spent_budget_switches_to_local_recall_with_a_notice(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    backend.pool_codes = True
    backend.publish()
    device = make(epsilon_lifetime_reports=3)
    device.sync()
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    feed = new_page(device)
    assert (feed.mode, feed.recalled) == ("personal", 400)
    assert "lifetime sharing limit" in (feed.notice or "")
    assert "found on this device" in (feed.notice or "")
    assert "/v1/recall" not in backend.paths()
    assert device.status().shield == "amber"


def test_damaged_pool_is_dropped_and_fetched_again(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    backend.pool_codes = True
    backend.publish()
    device = make(mode="broadcast")
    device.sync()
    device.reading.feed(refresh=True)
    database = device.parts.stores.database
    with database.transaction():
        database.write("DELETE FROM pool_card WHERE place < 50")
    click_on(device, backend, TOPIC, 4, clock)
    assert new_page(device).mode == "front"
    device.sync()
    assert new_page(device).mode == "personal"
