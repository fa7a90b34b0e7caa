"""The report is clipped, noised, charged, stored and sent again."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from device_app.errors import BudgetSpent, ModeChanged
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.mechanisms.basis_laplace import BasisLaplace
from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.reporter import ReportInput
from device_app.privacy.sealed import Sealed
from device_app.privacy.sealed_reports import last_report, seal_report
from device_app.reports.choice import memoised
from device_app.reports.reporters import GRID, BasisLaplaceReporter
from device_app.settings import PrivacySettings
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerRepository
from device_app.store.report_memo import DrawnReports, ReportMemo
from protocol.recall import BasisLaplaceReport, RecallRequest
from protocol.releases import RecallProtocol
from tests.doubles.sealing import allowing, seal_nothing, sealed_by
from tests.unit.device_app.privacy.conftest import TurnedClock

PAPER = PrivacySettings(
    mode="basis_laplace", epsilon_per_day_reports=150, epsilon_lifetime_reports=None, clicks_per_report=5
)
SCORES = np.linspace(-3, 3, 60).reshape(2, 30)


def seal(
    ledger: Ledger,
    memo: ReportMemo,
    protocol: RecallProtocol,
    *,
    scores: np.ndarray = SCORES,
    clicks: int = 10,
    settings: PrivacySettings = PAPER,
) -> Sealed[RecallRequest]:
    reader = ReportInput(np.ones((1, 4), dtype=np.float32), scores, (6, 4))
    return sealed_by(
        BasisLaplaceReporter(mechanism=BasisLaplace.under(protocol)),
        reader,
        ledger,
        memo,
        clicks=clicks,
        settings=settings,
    )


def test_report_is_charged_for_all_its_scores_together(ledger: Ledger, memo: ReportMemo, paper: RecallProtocol) -> None:
    sealed = seal(ledger, memo, paper)
    assert sealed.charge.epsilon == pytest.approx(50)
    (entry,) = ledger.repository.entries().rows
    assert entry.epsilon == pytest.approx(50)
    assert entry.payload_sha256 == sealed.sha256
    assert entry.parameters == {"clip": 0.2, "scale": 1.2, "basis_size": 30, "channels_limit": 5}


def test_sent_report_is_the_clipped_score_plus_noise_on_a_grid(
    ledger: Ledger, memo: ReportMemo, paper: RecallProtocol
) -> None:
    from device_app.privacy.noise_sources import laplace

    sealed = seal_report(
        BasisLaplaceReporter(mechanism=BasisLaplace.under(paper)),
        ReportInput(np.ones((1, 4), dtype=np.float32), SCORES, (6, 4)),
        settings=lambda: PAPER,
        release="r1",
        limit=400,
        ledger=ledger,
        noise=SeededNoise(3),
        memo=memo,
        drawn=DrawnReports(memo._database),
        clicks=1,
        sent="",
    )
    report = sealed.message.report
    assert isinstance(report, BasisLaplaceReport)
    noise = laplace(SeededNoise(3), 1.2, (2, 30))
    np.testing.assert_allclose(report.scores, np.clip(SCORES, -0.2, 0.2) + noise, atol=GRID / 2)
    assert (np.array(report.scores) / GRID % 1 == 0).all()
    assert report.counts == (6, 4)
    assert RecallRequest.model_validate_json(sealed.payload) == sealed.message
    kept = memo.current("r1")
    assert kept is not None
    np.testing.assert_array_equal(kept.clear, np.clip(SCORES, -0.2, 0.2))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_scores_release_nothing(ledger: Ledger, memo: ReportMemo, paper: RecallProtocol, bad: float) -> None:
    scores = SCORES.copy()
    scores[1, 7] = bad
    with pytest.raises(ValueError, match="not finite"):
        seal(ledger, memo, paper, scores=scores)
    assert ledger.repository.entries().total == 0
    assert memo.latest() is None


@pytest.mark.parametrize("shape", [(2, 29), (6, 30), (0, 30), (60,)])
def test_scores_of_another_shape_are_refused(
    ledger: Ledger, memo: ReportMemo, paper: RecallProtocol, shape: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="expected 1 to 5 channels of 30"):
        seal(ledger, memo, paper, scores=np.zeros(shape))
    assert ledger.repository.entries().total == 0


def test_report_with_mismatched_counts_is_refused_without_a_charge(
    ledger: Ledger, memo: ReportMemo, paper: RecallProtocol
) -> None:
    with pytest.raises(ValueError, match="counts has 2 entries for 1 channels"):
        seal(ledger, memo, paper, scores=SCORES[:1])
    assert ledger.repository.entries().total == 0


def test_new_report_is_refused_when_the_budget_is_spent_and_the_old_one_stays(
    ledger: Ledger, memo: ReportMemo, paper: RecallProtocol
) -> None:
    for _ in range(3):
        last = seal(ledger, memo, paper)
    with pytest.raises(BudgetSpent):
        seal(ledger, memo, paper, clicks=99)
    again = last_report(memo, release="r1", limit=400, settings=PAPER)
    assert again is not None
    assert again.payload == last.payload
    assert again.charge.epsilon == 0
    assert last_report(memo, release="r2", limit=400, settings=PAPER) is None


def test_mode_none_makes_no_report(ledger: Ledger, memo: ReportMemo, paper: RecallProtocol, clock: TurnedClock) -> None:
    seal(ledger, memo, paper)
    silent = PrivacySettings(mode="none")
    with pytest.raises(ModeChanged, match="mode has been changed to 'none'"):
        seal(ledger, memo, paper, settings=silent)
    assert memoised(memo, release="r1", limit=400, clicks=10, settings=silent, now=clock()) is None
    assert last_report(memo, release="r1", limit=400, settings=silent) is None
    assert seal_nothing(release="r1", limit=400).message.report.kind == "none"


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(waits=st.lists(st.tuples(st.floats(0, 0.79), st.integers(0, 4)), min_size=30, max_size=30))
def test_report_is_identical_over_thirty_sessions_and_paid_once(
    database: Database,
    clock: TurnedClock,
    memo: ReportMemo,
    paper: RecallProtocol,
    waits: list[tuple[float, int]],
) -> None:
    # Up to 4 new clicks and 30 x 0.79 h < 24 h: no fresh report is due, however the sessions fall.
    with database.transaction():
        database.write("DELETE FROM charge")
    ledger = Ledger(LedgerRepository(database), allowing(PAPER), clock)
    first = seal(ledger, memo, paper, clicks=10)
    for hours, new_clicks in waits:
        clock.turn(hours=hours)
        again = memoised(memo, release="r1", limit=400, clicks=10 + new_clicks, settings=PAPER, now=clock())
        assert again is not None
        assert again.payload == first.payload
        assert again.charge.epsilon == 0
    assert ledger.repository.entries().total == 1


def test_new_report_is_due_after_enough_clicks_after_a_window_or_after_a_release(
    ledger: Ledger,
    memo: ReportMemo,
    paper: RecallProtocol,
    clock: TurnedClock,
) -> None:
    def reused(release: str = "r1", clicks: int = 14, hours: float = 23.99) -> bool:
        at = clock() + timedelta(hours=hours)
        found = memoised(memo, release=release, limit=400, clicks=clicks, settings=PAPER, now=at)
        return found is not None

    assert not reused()
    seal(ledger, memo, paper, clicks=10)
    assert reused()
    assert not reused(clicks=15)
    assert not reused(hours=24)
    assert not reused(release="r2")
    memo.clear()
    assert not reused()


def test_requesting_another_list_length_changes_only_that_field_of_the_report(
    ledger: Ledger,
    memo: ReportMemo,
    paper: RecallProtocol,
    clock: TurnedClock,
) -> None:
    first = seal(ledger, memo, paper)
    again = memoised(memo, release="r1", limit=200, clicks=10, settings=PAPER, now=clock())
    assert again is not None
    assert again.payload == first.payload.replace(b'"limit":400', b'"limit":200')
    assert again.message.report == first.message.report


def test_each_fresh_report_draws_new_noise(ledger: Ledger, memo: ReportMemo, paper: RecallProtocol) -> None:
    assert seal(ledger, memo, paper).message.report != seal(ledger, memo, paper).message.report
