"""A malicious release whose graphs fail only on some readers' clicks.

A free bit each round if failures are visible. The attacker signs releases. It chooses a vector and makes a graph fail
wherever a reader has clicked near it, in a way that no prior check can detect. Oracle: the requests, their lengths and
the charges of a reader on whom nothing fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from device_app.device import Device
from device_app.training.gradients import OnnxGradients
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.failing_graphs import FAILURES, failing
from tests.doubles.flaky_network import EPSILON, FlakyNetwork, open_round, training_reader
from tests.doubles.journey import Make
from tests.doubles.new_page import new_page
from tests.doubles.news import synthetic_pool
from tests.doubles.round_rig import DIM, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader
from tests.unit.device_app.journeys.conftest import clock, make

__all__ = ["clock", "make"]
POOL = synthetic_pool(240, dim=DIM)
READER = simulated_reader(POOL, np.random.default_rng(1))
ROWS = {card.id: row for row, card in enumerate(POOL.cards)}
CLICKED: NDArray[np.float32] = POOL.vectors[[ROWS[click.news_id] for click in READER.clicks]]
OUTPUTS = {"context": "contexts", "score": "scores"}
EVERYWHERE = -2.0
"""Below every inner product of unit vectors."""


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend(pool=synthetic_pool(160))


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[tuple[BackendRig, DeviceRig, FlakyNetwork]]:
    """A backend, a device that trains, and the network between them."""
    with training_reader(tmp_path, READER, POOL) as made:
        yield made


def test_update_whose_gradient_failed_is_charged_and_sent_like_any_other(
    reader: tuple[BackendRig, DeviceRig, FlakyNetwork], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, device, network = reader
    gradients = device.trainer._computations.gradients
    reported: dict[str | None, object] = {}
    for failure in (None, *FAILURES):

        def made(graph: bytes, failure: str | None = failure, **given: Any) -> OnnxGradients:
            bad = graph if failure is None else failing(graph, "g.basis_values", CLICKED[0], EVERYWHERE, failure)
            return gradients(bad, **given)

        monkeypatch.setattr(device.trainer._computations, "gradients", made)
        device.sync()
        open_round(backend)
        network.uploads.clear()
        spent = device.ledger.spent_today("training")
        outcome = device.trainer.step()
        charge = device.ledger.spent_today("training") - spent
        reported[failure] = outcome.state, outcome.why, [len(body) for body in network.uploads], charge
        backend.coordinator.step()
    assert reported == dict.fromkeys(reported, reported[None])
    assert reported[None] == ("uploaded", None, [len(network.uploads[0])], EPSILON)


@pytest.mark.parametrize("graph", [("recall", "context"), ("ranker.cosine", "score")], ids=lambda graph: graph[1])
def test_failed_feed_graph_does_not_change_the_requests(
    make: Make, backend: FakeBackend, clock: StillClock, graph: tuple[str, str]
) -> None:
    device = make()
    first = device.reading.feed()
    read = [item.card.id for item in first.items[:6]]
    for news_id in read:
        clock.go_on(30)
        device.reading.open(news_id, first.feed_id)
    new_page(device)
    _fetched(device)
    model, purpose = graph
    entry = backend.models[model]
    blob = backend.blobs[entry.graphs[purpose].sha256]
    rows = {card.id: row for row, card in enumerate(backend.pool.cards)}
    asked: dict[str | None, object] = {}
    for failure in (None, "nan", "gather"):
        if failure is not None:
            trap = failing(blob, OUTPUTS[purpose], backend.pool.vectors[rows[read[2]]], 0.95, failure)
            graphs = {**entry.graphs, purpose: backend._blob(trap)}
            backend.models = {**backend.models, model: entry.model_copy(update={"graphs": graphs})}
            backend.publish()
        device.sync()
        _fetched(device)
        _forgotten(device)
        spent, start = device.parts.ledger.total("reports"), len(backend.requests)
        with suppress(Exception):  # what the reader sees is not the question here
            new_page(device)
        _fetched(device)
        asked[failure] = (
            device.parts.ledger.total("reports") - spent,
            [(path, len(body)) for _, path, body in backend.requests[start:]],
        )
    assert asked == dict.fromkeys(asked, asked[None])
    assert "/v1/recall" in str(asked[None])
    assert "/v1/news/bodies" in str(asked[None])


def _forgotten(device: Device) -> None:
    """Make the stored answer more than five minutes old, and its texts more than an hour."""
    device.parts.serving.feed_context.recall._answers.forget()
    device.parts.bodies._fetched.clear()


def _fetched(device: Device) -> None:
    while device.prefetch_step():
        pass
