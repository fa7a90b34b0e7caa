"""A ledger over a real store, with a clock that the test sets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from device_app.privacy.accounting.ledger import Ledger
from device_app.settings import PrivacySettings
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerRepository
from device_app.store.report_memo import ReportMemo
from protocol.releases import RecallProtocol
from tests.doubles.sealing import allowing


@dataclass
class TurnedClock:
    """A clock that changes only when the test sets it."""

    now: datetime = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def turn(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest.fixture
def memo(database: Database) -> ReportMemo:
    return ReportMemo(database)


@pytest.fixture
def paper() -> RecallProtocol:
    """Uni-FedRec's own figures."""
    return RecallProtocol(basis_size=30, channels_limit=5, cluster_distance=1.0, score_clip=0.2, score_noise=1.2)


@pytest.fixture
def ledger(database: Database, clock: TurnedClock) -> Ledger:
    settings = PrivacySettings(
        mode="basis_laplace",
        epsilon_per_day_reports=150,
        epsilon_lifetime_reports=None,
        epsilon_per_day_training=1e7,
        clicks_per_report=5,
        training=True,
    )
    return Ledger(LedgerRepository(database), allowing(settings), clock)
