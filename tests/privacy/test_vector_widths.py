"""A release that gives an encoder's vectors another width than the ones that some news came with.

The news that a reader has clicked keep their vectors. Where those no longer fit the release and that stops a request,
the server learns without any charge who has clicked among the news of its choice. Oracle: the requests and the charges
of the same reader under a release that changes its codebook and no width.
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
from tests.doubles.news import SyntheticPool, synthetic_pool
from tests.unit.device_app.journeys.conftest import clock, make

__all__ = ["clock", "make"]
WIDE, NARROW, CLICKS = 16, 8, 6


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend(pool=synthetic_pool(160, dim=WIDE), pool_codes=True)


def publish(backend: FakeBackend, width: int) -> None:
    """The next release, by the same encoder: other prototypes, and so many dimensions."""
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
    """What is asked for, and charged, once a reader with clicks and a saved search meets releases of these widths."""
    device = make(mode=mode)
    device.sync()
    feed = device.feed(refresh=True)
    for item in feed.items[:CLICKS]:
        clock.go_on(30)
        device.open(item.card.id, feed.feed_id)
    device.react(feed.items[0].card.id, "like")
    device.save_search(feed.items[1].card.title)
    device.feed(refresh=True)
    fetch(device)
    spent = device.parts.ledger.total("reports")
    backend.requests.clear()
    for width in widths:
        clock.go_on(25 * 3_600.0)  # the report in use is out of date
        device._serving.feed_context.recall._answers.forget()
        publish(backend, width)
        for ask in (device.sync, lambda: device.feed(refresh=True), lambda: fetch(device), device.train_step):
            with suppress(Exception):  # what the reader sees is not the question here
                ask()
            clock.go_on(60)  # the reader is idle
    return [path for path in backend.paths() if "/blobs/" not in path], device.parts.ledger.total("reports") - spent


@pytest.mark.parametrize("mode", ["code", "broadcast"])
def test_a_narrower_release_by_the_same_encoder_stops_no_request(
    make: Make, backend: FakeBackend, clock: StillClock, mode: str
) -> None:
    widths = (NARROW, NARROW)
    asked, charged = lived(make, backend, clock, mode, widths)
    assert asked.count("/v1/rounds/current") == len(widths)
    if mode == "code":
        assert (asked.count("/v1/recall"), charged) == (len(widths), 4.0 * len(widths)), "two new codebooks"
    else:
        assert sum(path.endswith("/codes") for path in asked) == len(widths)
        assert device_has_pool(make), "the pool is let go of where it doesn't fit, and pulled again"


def test_an_honest_release_is_asked_under_in_the_same_way(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    """The comparison that the numbers above are held against."""
    asked, charged = lived(make, backend, clock, "code", (WIDE, WIDE))
    assert (asked.count("/v1/recall"), asked.count("/v1/rounds/current"), charged) == (2, 2, 8.0)


def device_has_pool(make: Make) -> bool:
    return make(mode="broadcast").parts.stores.pool.current() is not None


def fetch(device: Device) -> None:
    while device.prefetch_step():
        pass


@pytest.mark.parametrize("mode", ["code", "basis_laplace"])
def test_a_report_is_sent_and_paid_for_whether_or_not_what_was_clicked_has_vectors(
    make: Make, backend: FakeBackend, clock: StillClock, mode: str
) -> None:
    """Which news have vectors is the server's choice, and may not show by who reports."""
    privacy: dict[str, object] = PAPER | {"mode": mode}
    device = make(**privacy)
    device.sync()
    feed = device.feed(refresh=True)
    for item in feed.items[:CLICKS]:
        clock.go_on(30)
        device.open(item.card.id, feed.feed_id)
    with device.parts.stores.database.transaction():
        device.parts.stores.database.write("DELETE FROM vector WHERE news_id IN (SELECT news_id FROM click)")
    again = make(**privacy)
    spent = again.parts.ledger.total("reports")
    backend.requests.clear()
    again.feed(refresh=True)
    assert backend.paths().count("/v1/recall") == 1
    assert again.parts.ledger.total("reports") > spent
