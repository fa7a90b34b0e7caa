"""A malicious release changes the width of an encoder's vectors, so that stored vectors no longer fit.

Articles that a reader has clicked keep their vectors. If those no longer fit the release and a request fails because of
it, the server learns without any charge who has clicked among articles of its choice. Oracle: the requests and charges
of the same reader under a release that changes its codebook but no width.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from device_app.device import Device
from tests.doubles.backend import BASIS, FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.graphs import context_graph, cosine_score_graph, decompose_graph
from tests.doubles.journey import PAPER, Make
from tests.doubles.new_page import new_page
from tests.doubles.news import SyntheticPool, synthetic_pool
from tests.unit.device_app.journeys.conftest import clock, make

__all__ = ["clock", "make"]
WIDE, NARROW, CLICKS = 16, 8, 6


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend(pool=synthetic_pool(160, dim=WIDE), pool_codes=True)


def publish(backend: FakeBackend, width: int) -> None:
    """Publish the next release by the same encoder, with other prototypes and this width."""
    backend.pool = SyntheticPool(backend.pool.cards, np.ascontiguousarray(backend.pool.vectors[:, :width]))
    backend.values = backend.values[:, :width]
    backend.prototypes = np.ascontiguousarray(np.roll(backend.prototypes, 1, axis=0)[:, :width])
    graphs = {"context": context_graph(width), "decompose": decompose_graph(width, BASIS)}
    weights = {"basis_keys": backend.values, "basis_values": backend.values}
    beta = {"beta": np.array(8.0, np.float32)}
    backend.models = {
        "recall": backend._model("basis", "recall", graphs, weights),
        "ranker.cosine": backend._model("cosine", "ranker", {"score": cosine_score_graph(width)}, beta),
    }
    backend.publish()


def lived(
    make: Make, backend: FakeBackend, clock: StillClock, mode: str, widths: tuple[int, ...]
) -> tuple[list[str], float]:
    """Return the requests and charges of a reader with clicks and a saved search under releases of these widths."""
    device = make(mode=mode)
    device.sync()
    feed = new_page(device)
    for item in feed.items[:CLICKS]:
        clock.go_on(30)
        device.reading.open(item.card.id, feed.feed_id)
    device.library.react(feed.items[0].card.id, "like")
    device.library.save_search(feed.items[1].card.title)
    new_page(device)
    fetch(device)
    spent = device.parts.ledger.total("reports")
    backend.requests.clear()
    for width in widths:
        clock.go_on(25 * 3_600.0)  # the report in use is out of date
        device.parts.serving.feed_context.recall._answers.forget()
        publish(backend, width)
        for ask in (device.sync, lambda: new_page(device), lambda: fetch(device), device.train_step):
            with suppress(Exception):  # what the reader sees is not the question here
                ask()
            clock.go_on(60)  # the reader is idle
    return [path for path in backend.paths() if "/blobs/" not in path], device.parts.ledger.total("reports") - spent


@pytest.mark.parametrize("mode", ["code", "broadcast"])
def test_release_with_narrower_vectors_does_not_change_a_devices_requests(
    make: Make, backend: FakeBackend, clock: StillClock, mode: str
) -> None:
    widths = (NARROW, NARROW)
    asked, charged = lived(make, backend, clock, mode, widths)
    assert asked.count("/v1/rounds/current") == len(widths)
    if mode == "code":
        assert (asked.count("/v1/recall"), charged) == (len(widths), 4.0 * len(widths)), "two new codebooks"
    else:
        assert sum(path.endswith("/codes") for path in asked) == len(widths)
        assert device_has_pool(make), "the pool is dropped if it does not fit, and pulled again"


def test_vectors_of_equal_width_give_the_same_requests(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    """The comparison that the numbers above rely on."""
    asked, charged = lived(make, backend, clock, "code", (WIDE, WIDE))
    assert (asked.count("/v1/recall"), asked.count("/v1/rounds/current"), charged) == (2, 2, 8.0)


def device_has_pool(make: Make) -> bool:
    return make(mode="broadcast").parts.stores.pool.current() is not None


def fetch(device: Device) -> None:
    while device.prefetch_step():
        pass


@pytest.mark.parametrize("mode", ["code", "basis_laplace"])
def test_report_is_independent_of_whether_clicks_have_vectors(
    make: Make, backend: FakeBackend, clock: StillClock, mode: str
) -> None:
    """The server chooses which articles have vectors, and must not learn from reports who clicked them."""
    privacy: dict[str, object] = PAPER | {"mode": mode}
    device = make(**privacy)
    device.sync()
    feed = new_page(device)
    for item in feed.items[:CLICKS]:
        clock.go_on(30)
        device.reading.open(item.card.id, feed.feed_id)
    with device.parts.stores.database.transaction():
        device.parts.stores.database.write("DELETE FROM vector WHERE news_id IN (SELECT news_id FROM click)")
    again = make(**privacy)
    spent = again.parts.ledger.total("reports")
    backend.requests.clear()
    new_page(again)
    assert backend.paths().count("/v1/recall") == 1
    assert again.parts.ledger.total("reports") > spent
