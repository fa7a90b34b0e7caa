"""The report of every mode, within the reader's limit."""

from __future__ import annotations

import numpy as np
import pytest

from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.noise_sources import SystemNoise
from device_app.privacy.reporter import ReportInput, user_vector
from device_app.privacy.sealed_reports import seal_report
from device_app.privacy.settings import ModeName
from device_app.reports.choice import memoised
from device_app.reports.policy import reporter_of
from device_app.reports.reporters import PublicVectors, affordable
from device_app.settings import PrivacySettings
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerRepository
from device_app.store.report_memo import DrawnReports, ReportMemo
from device_app.view_models.modes import mode_facts
from protocol.recall import RecallRequest
from protocol.releases import BlobRef, Codebook, RecallProtocol
from tests.doubles.sealing import allowing
from tests.unit.device_app.privacy.conftest import TurnedClock

SCORES = np.linspace(-3, 3, 60).reshape(2, 30)
BOOK = Codebook(size=16, epsilon=4, prototypes=BlobRef(sha256="ab" * 32, size_bytes=1))
AXES = np.eye(16, dtype=np.float32)
PROTOCOL = RecallProtocol(
    basis_size=30,
    channels_limit=5,
    cluster_distance=1,
    score_clip=0.2,
    score_noise=1.2,
    codebooks=(BOOK, Codebook(size=64, epsilon=8, prototypes=BlobRef(sha256="ef" * 32, size_bytes=1))),
)
SPACES = PublicVectors({16: AXES, 64: np.eye(64, 16, dtype=np.float32)})
READER = ReportInput(AXES[[1, 1, 3]], SCORES, (6, 4))


@pytest.mark.parametrize("mode", ["code", "topics", "subset", "basis_l1", "basis_laplace"])
def test_report_of_every_mode_costs_what_the_mode_states(
    mode: ModeName, database: Database, memo: ReportMemo, clock: TurnedClock
) -> None:
    settings = PrivacySettings(mode=mode, epsilon_per_day_reports=60, epsilon_lifetime_reports=None)
    ledger = Ledger(LedgerRepository(database), allowing(settings), clock)
    reporter = reporter_of(settings, PROTOCOL, SPACES)
    assert reporter is not None
    sealed = seal_report(
        reporter, READER, settings=lambda: settings, release="r1", limit=400, ledger=ledger, noise=SystemNoise(),
        memo=memo, drawn=DrawnReports(database), clicks=3, sent="",
    )  # fmt: skip
    assert sealed.message.report.kind == mode
    assert RecallRequest.model_validate_json(sealed.payload) == sealed.message
    assert ledger.total("reports") == pytest.approx(reporter.mechanism.epsilon_per_report)
    expected = {"basis_l1": 5 / 3, "basis_laplace": 50}
    assert reporter.mechanism.epsilon_per_report == pytest.approx(expected.get(mode, 4))
    again = memoised(memo, release="r1", limit=400, clicks=3, settings=settings, now=clock())
    assert again is not None
    assert again.payload == sealed.payload
    other = settings.model_copy(update={"mode": "none"})
    assert memoised(memo, release="r1", limit=400, clicks=3, settings=other, now=clock()) is None


def test_finest_affordable_codebook_is_used() -> None:
    def size(limit: float) -> int | None:
        found = affordable(PROTOCOL, limit)
        return found.size if found else None

    assert [size(limit) for limit in (3.9, 4.0, 7.9, 8.0, 60.0)] == [None, 16, 16, 64, 64]
    strict = PrivacySettings(mode="code", epsilon_per_report=3.9)
    assert reporter_of(strict, PROTOCOL, SPACES) is None
    (code,) = [facts for facts in mode_facts(strict, PROTOCOL, None) if facts.name == "code"]
    assert code.unusable == "Not available: the publisher offers no such report within 3.9 epsilon."
    for mode in ("none", "broadcast"):
        assert reporter_of(PrivacySettings(mode=mode), PROTOCOL, SPACES) is None
    bare = PROTOCOL.model_copy(update={"codebooks": ()})
    for mode in ("code", "topics", "subset"):
        assert reporter_of(PrivacySettings(mode=mode), bare, PublicVectors()) is None


def test_user_vector_is_the_unit_mean_of_clicks_or_zero() -> None:
    np.testing.assert_allclose(user_vector(np.array([[3, 0], [1, 4]], np.float32)), np.array([1, 1]) / 2**0.5)
    assert user_vector(np.array([[1, 0], [-1, 0]], np.float32)).tolist() == [0, 0]
