"""A server whose private count is always open; all other members are invented."""

from __future__ import annotations

from protocol.popularity import CountList
from tests.doubles.attacked_device import HONEST, UNIT
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.malicious_server import MaliciousServer


def open_count(backend: FakeBackend, clock: StillClock) -> MaliciousServer:
    """Count the articles of `backend`, which answers everything else."""
    listed = CountList(
        news=tuple(sorted(card.id for card in backend.pool.cards)),
        displayed_limit=32,
        clicked_limit=5,
        displayed_unit=UNIT,
        window_hours=24,
    )
    assert backend.key is not None
    return MaliciousServer(backend.transport(), listed, HONEST, clock, key=backend.key)
