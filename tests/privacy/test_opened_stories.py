"""A malicious server shapes its pool so that the request for a text reveals which story was opened.

It offers a codebook that costs more than the reader allows, so that the device searches its own copy of the pool. It
puts few articles on the default list, and makes every day of the pool as small as allowed. Oracle: the bodies of all
requests that opening a story causes.
"""

from __future__ import annotations

import httpx
import numpy as np
import pytest

from device_app.device import Device
from protocol.broadcast import CodeShard, PoolCodes, pack_cards, pack_codes, pack_priors
from protocol.news import BodiesRequest
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import Make
from tests.doubles.new_page import new_page
from tests.doubles.news import synthetic_pool
from tests.unit.device_app.journeys.conftest import clock, make

__all__ = ["clock", "make"]
NEWS, LISTED, CLICKS = 260, 20, 4


class Slicing(FakeBackend):
    """Publishes days of one story each, every other one twice, and no texts of the default list."""

    def listing(self) -> PoolCodes:
        shards: list[CodeShard] = []
        for row, card in [*enumerate(self.pool.cards), *list(enumerate(self.pool.cards))[::2]]:
            codes = np.rint((self.pool.vectors[row : row + 1] + 1) * 127.5).clip(0, 255).astype(np.uint8)
            text = card.model_dump_json() + " " * (len(shards) // NEWS)  # the same card in another blob
            shards.append(
                CodeShard(
                    name=f"2026-11-20.{len(shards)}",
                    count=1,
                    codes=self._blob(pack_codes(codes)),
                    cards=self._blob(pack_cards([text.encode()])),
                )
            )
        whole = super().listing()
        twice = np.zeros(len(shards), np.float16)
        return whole.model_copy(update={"shards": tuple(shards), "priors": self._blob(pack_priors(twice))})

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/news/front":
            content = self._answer(self.releases[-1], np.arange(LISTED)).model_dump_json()
            return httpx.Response(200, content=content)
        if request.url.path == "/v1/news/bodies":
            self.requests.append((request.method, request.url.path, request.content))
            return httpx.Response(200, content=b'{"bodies":[]}')
        return super().answer(request)


@pytest.fixture
def backend() -> Slicing:
    made = Slicing(pool=synthetic_pool(NEWS, dim=16), pool_codes=True)
    made.publish(codebooks=(made.codebook(made.prototypes, epsilon=5.0),))
    return made


def asked_on_opening(device: Device, backend: Slicing, clock: StillClock, *, listed: bool) -> list[tuple[str, ...]]:
    """Return the requests after opening a story, found here or on the default list."""
    device.sync()
    first = new_page(device)
    for item in first.items[:CLICKS]:
        clock.go_on(30)
        device.reading.open(item.card.id, first.feed_id)
    feed = new_page(device)
    _fetch(device)
    backend.requests.clear()
    common = {card.id for card in backend.pool.cards[:LISTED]}
    assert feed.mode == "personal", "it was found on this device"
    shown = [item.card.id for item in (first.items[CLICKS:] if listed else feed.items)]
    opened = next(news_id for news_id in shown if (news_id in common) == listed)
    clock.go_on(60)
    device.reading.open(opened, feed.feed_id)
    _fetch(device)
    assert all(path == "/v1/news/bodies" for path in backend.paths())
    asked = [BodiesRequest.model_validate_json(body).ids for _, _, body in backend.requests]
    assert all(opened in ids for ids in asked)
    return asked


@pytest.mark.parametrize("listed", [False, True])
def test_opening_a_story_on_a_default_device_sends_no_request(
    make: Make, backend: Slicing, clock: StillClock, listed: bool
) -> None:
    assert asked_on_opening(make(), backend, clock, listed=listed) == []


def test_device_searching_locally_requests_texts_among_a_hundred(
    make: Make, backend: Slicing, clock: StillClock
) -> None:
    (ids,) = asked_on_opening(make(mode="broadcast"), backend, clock, listed=False)
    assert len(set(ids)) == len(ids) >= 100


def test_opening_a_story_of_the_default_list_requests_no_text(make: Make, backend: Slicing, clock: StillClock) -> None:
    assert asked_on_opening(make(mode="broadcast"), backend, clock, listed=True) == []


def asked_on_a_search(device: Device, backend: Slicing) -> tuple[str, list[tuple[str, ...]]]:
    """Return the requests after opening a search result that only the pool's copy has."""
    device.sync()
    device.reading.feed(refresh=True)
    _fetch(device)
    common = {card.id for card in backend.pool.cards[:LISTED]}
    backend.requests.clear()
    found = [*device.library.search("headline").cards, *device.library.search("headline", 2).cards]
    assert device.library.search("headline").total == NEWS
    opened = next(card.id for card in found if card.id not in common)
    device.whole_pool.show(device.library.search(opened).near)
    assert backend.requests == [], "what is searched for and found tells nobody"
    device.reading.open(opened, found=True)
    _fetch(device)
    assert all(path == "/v1/news/bodies" for path in backend.paths())
    return opened, [BodiesRequest.model_validate_json(body).ids for _, _, body in backend.requests]


def test_search_on_a_default_device_sends_no_request(make: Make, backend: Slicing) -> None:
    assert asked_on_a_search(make(), backend)[1] == []


def test_device_searching_locally_requests_found_texts_among_a_hundred(make: Make, backend: Slicing) -> None:
    opened, (ids,) = asked_on_a_search(make(mode="broadcast"), backend)
    assert opened in ids
    assert len(set(ids)) == len(ids) >= 100
    assert ids == tuple(sorted(ids)), "a block of the pool, wherever in it the story stands"


def _fetch(device: Device) -> None:
    while device.prefetch_step():
        pass
