"""The report: clipped, noised, charged, kept and sent again."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from device_app.errors import BudgetSpent
from device_app.privacy.budget import Ledger
from device_app.privacy.mechanisms.basis_laplace import BasisLaplace
from device_app.privacy.noise import SeededNoise, SystemNoise
from device_app.privacy.reporters import (
    GRID,
    BasisLaplaceReporter,
    CodeReporter,
    Reader,
    Spaces,
    affordable,
    reporter_of,
    user_vector,
)
from device_app.privacy.reports import last_report, memoised, seal_nothing, seal_report
from device_app.privacy.sealed import Sealed
from device_app.settings import Mode, PrivacySettings
from device_app.store.database import Database
from device_app.store.drawn_reports import DrawnReports
from device_app.store.ledger_book import LedgerBook
from device_app.store.report_memo import ReportMemo
from device_app.wire.recall import BasisLaplaceReport, CodeReport, RecallRequest
from device_app.wire.releases import BlobRef, Codebook, Projection, RecallProtocol

PAPER = PrivacySettings(
    mode="basis_laplace", epsilon_per_day_reports=150, epsilon_lifetime_reports=None, clicks_per_report=5
)
SCORES = np.linspace(-3, 3, 60).reshape(2, 30)


@pytest.fixture
def memo(database: Database) -> ReportMemo:
    return ReportMemo(database)


def seal(
    ledger: Ledger, memo: ReportMemo, protocol: RecallProtocol, *, scores: np.ndarray = SCORES, clicks: int = 10
) -> Sealed[RecallRequest]:
    return seal_report(
        BasisLaplaceReporter(BasisLaplace.under(protocol)),
        Reader(np.ones((1, 4), dtype=np.float32), scores, (6, 4)),
        release="r1",
        limit=400,
        ledger=ledger,
        noise=SystemNoise(),
        memo=memo,
        drawn=DrawnReports(memo._database),
        clicks=clicks,
    )


def test_a_report_is_charged_as_a_whole_session_at_the_papers_figures(
    ledger: Ledger, memo: ReportMemo, paper: RecallProtocol
) -> None:
    sealed = seal(ledger, memo, paper)
    assert sealed.charge.epsilon == pytest.approx(50)
    (entry,) = ledger.book.entries().rows
    assert entry.epsilon == pytest.approx(50)
    assert entry.payload_sha256 == sealed.sha256
    assert entry.parameters == {"clip": 0.2, "scale": 1.2, "basis_size": 30, "channels_limit": 5}


def test_what_is_sent_is_the_clipped_score_plus_the_drawn_noise_on_a_grid(
    ledger: Ledger, memo: ReportMemo, paper: RecallProtocol
) -> None:
    from device_app.privacy.noise import laplace

    sealed = seal_report(
        BasisLaplaceReporter(BasisLaplace.under(paper)),
        Reader(np.ones((1, 4), dtype=np.float32), SCORES, (6, 4)),
        release="r1",
        limit=400,
        ledger=ledger,
        noise=SeededNoise(3),
        memo=memo,
        drawn=DrawnReports(memo._database),
        clicks=1,
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
def test_scores_that_are_not_finite_release_nothing(
    ledger: Ledger, memo: ReportMemo, paper: RecallProtocol, bad: float
) -> None:
    scores = SCORES.copy()
    scores[1, 7] = bad
    with pytest.raises(ValueError, match="not finite"):
        seal(ledger, memo, paper, scores=scores)
    assert ledger.book.entries().total == 0
    assert memo.latest() is None


@pytest.mark.parametrize("shape", [(2, 29), (6, 30), (0, 30), (60,)])
def test_scores_of_another_shape_are_refused(
    ledger: Ledger, memo: ReportMemo, paper: RecallProtocol, shape: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="expected 1 to 5 channels of 30"):
        seal(ledger, memo, paper, scores=np.zeros(shape))
    assert ledger.book.entries().total == 0


def test_counts_that_do_not_fit_the_channels_cost_nothing(
    ledger: Ledger, memo: ReportMemo, paper: RecallProtocol
) -> None:
    with pytest.raises(ValueError, match="counts has 2 entries for 1 channels"):
        seal(ledger, memo, paper, scores=SCORES[:1])
    assert ledger.book.entries().total == 0


def test_a_spent_budget_refuses_and_the_old_report_stays(
    ledger: Ledger, memo: ReportMemo, paper: RecallProtocol
) -> None:
    for _ in range(3):
        last = seal(ledger, memo, paper)
    with pytest.raises(BudgetSpent):
        seal(ledger, memo, paper, clicks=99)
    again = last_report(memo, release="r1", limit=400, settings=ledger.settings)
    assert again is not None
    assert again.payload == last.payload
    assert again.charge.epsilon == 0
    assert last_report(memo, release="r2", limit=400, settings=ledger.settings) is None


def test_who_reports_nothing_can_make_no_report(
    database: Database, memo: ReportMemo, paper: RecallProtocol, clock
) -> None:  # type: ignore[no-untyped-def]
    book = LedgerBook(database)
    seal(Ledger(book, PAPER, clock), memo, paper)
    silent = PrivacySettings(mode="none")
    with pytest.raises(ValueError, match="mode is 'none'"):
        seal(Ledger(book, silent, clock), memo, paper)
    assert memoised(memo, release="r1", limit=400, clicks=10, settings=silent, now=clock()) is None
    assert last_report(memo, release="r1", limit=400, settings=silent) is None
    assert seal_nothing(release="r1", limit=400).message.report.kind == "none"


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(waits=st.lists(st.tuples(st.floats(0, 0.79), st.integers(0, 4)), min_size=30, max_size=30))
def test_over_thirty_sessions_the_bytes_are_identical_and_paid_once(
    database: Database,
    clock,  # type: ignore[no-untyped-def]
    memo: ReportMemo,
    paper: RecallProtocol,
    waits: list[tuple[float, int]],
) -> None:
    # Up to 4 new clicks and 30 x 0.79 h < 24 h: no fresh report is due, however the sessions fall.
    with database.transaction():
        database.write("DELETE FROM charge")
    ledger = Ledger(LedgerBook(database), PAPER, clock)
    first = seal(ledger, memo, paper, clicks=10)
    for hours, new_clicks in waits:
        clock.turn(hours=hours)
        again = memoised(memo, release="r1", limit=400, clicks=10 + new_clicks, settings=ledger.settings, now=clock())
        assert again is not None
        assert again.payload == first.payload
        assert again.charge.epsilon == 0
    assert ledger.book.entries().total == 1


def test_a_fresh_report_is_due_after_new_clicks_or_the_window_or_another_release(
    ledger: Ledger,
    memo: ReportMemo,
    paper: RecallProtocol,
    clock,  # type: ignore[no-untyped-def]
) -> None:
    def reused(release: str = "r1", clicks: int = 14, hours: float = 23.99) -> bool:
        at = clock() + timedelta(hours=hours)
        found = memoised(memo, release=release, limit=400, clicks=clicks, settings=ledger.settings, now=at)
        return found is not None

    assert not reused()
    seal(ledger, memo, paper, clicks=10)
    assert reused()
    assert not reused(clicks=15)
    assert not reused(hours=24)
    assert not reused(release="r2")
    memo.clear()
    assert not reused()


def test_another_limit_changes_that_field_alone_and_no_noise(
    ledger: Ledger,
    memo: ReportMemo,
    paper: RecallProtocol,
    clock,  # type: ignore[no-untyped-def]
) -> None:
    first = seal(ledger, memo, paper)
    again = memoised(memo, release="r1", limit=200, clicks=10, settings=ledger.settings, now=clock())
    assert again is not None
    assert again.payload == first.payload.replace(b'"limit":400', b'"limit":200')
    assert again.message.report == first.message.report


def test_noise_is_drawn_anew_for_each_fresh_report(ledger: Ledger, memo: ReportMemo, paper: RecallProtocol) -> None:
    assert seal(ledger, memo, paper).message.report != seal(ledger, memo, paper).message.report


def test_a_kill_between_charge_and_send_keeps_both_charge_and_report(tmp_path: Path) -> None:
    # The child is killed once seal_report has returned: nothing was sent, the charge stays and the report is reused.
    path = tmp_path / "device.sqlite"
    child = killed(path, "")
    database = Database(path)
    memo = ReportMemo(database)
    kept = memo.current("r1")
    assert kept is not None
    again = memoised(memo, release="r1", limit=400, clicks=3, settings=CODE, now=kept.made_at)
    assert again is not None
    assert again.sha256 == child
    paid = LedgerBook(database).charged(child)
    assert paid is not None
    assert paid.epsilon == 4
    assert DrawnReports(database).distinct("code") == 1
    database.close()


def test_a_kill_before_the_charge_is_committed_leaves_no_report_either(tmp_path: Path) -> None:
    path = tmp_path / "device.sqlite"
    killed(path, "import os, signal; ReportMemo.keep = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n")
    database = Database(path)
    assert ReportMemo(database).latest() is None
    assert LedgerBook(database).entries().total == 0
    assert DrawnReports(database).distinct("code") == 0
    database.close()


def killed(path: Path, sabotage: str) -> str:
    """Seal a code in a process that is killed right afterwards (or by its sabotage); returns the payload's hash."""
    program = (
        "import sys; from pathlib import Path; from datetime import datetime, UTC; import numpy as np\n"
        "from device_app.store.database import Database; from device_app.store.ledger_book import LedgerBook\n"
        "from device_app.store.drawn_reports import DrawnReports\n"
        "from device_app.store.report_memo import ReportMemo; from device_app.privacy.budget import Ledger\n"
        "from device_app.privacy.noise import SystemNoise; from device_app.privacy.reports import seal_report\n"
        "from device_app.privacy.reporters import CodeReporter, Reader\n"
        "from device_app.settings import PrivacySettings; from device_app.wire.releases import BlobRef, Codebook\n"
        f"{sabotage}"
        "database = Database(Path(sys.argv[1])); settings = PrivacySettings(mode='code')\n"
        "ledger = Ledger(LedgerBook(database), settings, lambda: datetime(2026, 11, 20, tzinfo=UTC))\n"
        "book = Codebook(size=16, epsilon=4, prototypes=BlobRef(sha256='ab' * 32, size_bytes=1))\n"
        "sealed = seal_report(CodeReporter(book, np.eye(16, dtype=np.float32)), Reader(np.eye(16, dtype=np.float32)),\n"
        "    release='r1', limit=400, ledger=ledger, noise=SystemNoise(), memo=ReportMemo(database),\n"
        "    drawn=DrawnReports(database), clicks=3)\n"
        "print(sealed.sha256, flush=True); sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        digest = child.stdout.readline().strip()
        child.send_signal(signal.SIGKILL)
    return digest


CODE = PrivacySettings(mode="code", epsilon_per_day_reports=12, epsilon_lifetime_reports=40, clicks_per_report=20)
BOOK = Codebook(size=16, epsilon=4, prototypes=BlobRef(sha256="ab" * 32, size_bytes=1))
AXES = np.eye(16, dtype=np.float32)


def seal_code(
    ledger: Ledger, memo: ReportMemo, axis: int, *, book: Codebook = BOOK, clicks: int = 3
) -> Sealed[RecallRequest]:
    return seal_report(
        CodeReporter(book, AXES),
        Reader(AXES[[axis]]),
        release="r1",
        limit=400,
        ledger=ledger,
        noise=SystemNoise(),
        memo=memo,
        drawn=DrawnReports(memo._database),
        clicks=clicks,
    )


def test_a_code_is_paid_for_once_and_drawn_once_however_often_the_reader_comes_back_to_it(
    database: Database, memo: ReportMemo, clock
) -> None:  # type: ignore[no-untyped-def]
    # Thirty sessions over a month between three codes: three charges, and each code always the same bytes.
    ledger = Ledger(LedgerBook(database), CODE, clock)
    sent: dict[int, set[bytes]] = {}
    for session in range(30):
        clock.turn(days=1)
        axis = (5, 5, 9, 5, 2)[session % 5]
        sent.setdefault(axis, set()).add(seal_code(ledger, memo, axis, clicks=3 + 20 * session).payload)
    assert {axis: len(payloads) for axis, payloads in sent.items()} == {5: 1, 9: 1, 2: 1}
    assert ledger.total("reports") == 12
    assert ledger.book.entries().total == 3
    assert DrawnReports(database).distinct("code") == 3
    assert seal_code(ledger, memo, 5).charge.epsilon == 0


def test_a_codebook_with_other_prototypes_or_noise_is_drawn_from_and_paid_for_anew(
    database: Database, memo: ReportMemo, clock
) -> None:  # type: ignore[no-untyped-def]
    ledger = Ledger(LedgerBook(database), CODE, clock)
    seal_code(ledger, memo, 5)
    seal_code(ledger, memo, 5, book=BOOK.model_copy(update={"prototypes": BlobRef(sha256="cd" * 32, size_bytes=1)}))
    seal_code(ledger, memo, 5, book=BOOK.model_copy(update={"epsilon": 2.0}))
    assert ledger.total("reports") == 10


def test_the_ledger_holds_mechanism_figures_hash_and_time_of_a_code(
    database: Database, memo: ReportMemo, clock
) -> None:  # type: ignore[no-untyped-def]
    ledger = Ledger(LedgerBook(database), CODE, clock)
    sealed = seal_code(ledger, memo, 5)
    (entry,) = ledger.book.entries().rows
    assert (entry.mechanism, entry.parameters) == ("code", {"size": 16, "epsilon": 4})
    assert (entry.epsilon, entry.delta, entry.payload_sha256, entry.at) == (4, 0, sealed.sha256, clock())
    report = sealed.message.report
    assert isinstance(report, CodeReport)
    assert report.codebook == 16
    kept = memo.current("r1")
    assert kept is not None
    assert kept.clear == ((5.0,),), "the true code, for the reader alone"


def test_a_spent_lifetime_refuses_a_new_code_and_keeps_the_old_ones_free(
    database: Database, memo: ReportMemo, clock
) -> None:  # type: ignore[no-untyped-def]
    limits = CODE.model_copy(update={"epsilon_lifetime_reports": 8.0})
    ledger = Ledger(LedgerBook(database), limits, clock)
    first = seal_code(ledger, memo, 5)
    seal_code(ledger, memo, 6)
    with pytest.raises(BudgetSpent) as refused:
        seal_code(ledger, memo, 7)
    assert refused.value.lifetime
    assert DrawnReports(database).distinct("code") == 2
    assert seal_code(ledger, memo, 5).payload == first.payload


def test_a_report_of_few_clicks_is_due_after_as_many_again_and_later_after_twenty(
    database: Database, memo: ReportMemo, clock
) -> None:  # type: ignore[no-untyped-def]
    ledger = Ledger(LedgerBook(database), CODE, clock)
    due = []
    for clicks in range(3, 100):
        if memoised(memo, release="r1", limit=400, clicks=clicks, settings=CODE, now=clock()) is None:
            seal_code(ledger, memo, 5, clicks=clicks)
            due.append(clicks)
    assert due == [3, 6, 12, 24, 44, 64, 84]


PROTOCOL = RecallProtocol(
    basis_size=30,
    channels_limit=5,
    cluster_distance=1,
    score_clip=0.2,
    score_noise=1.2,
    codebooks=(BOOK, Codebook(size=64, epsilon=8, prototypes=BlobRef(sha256="ef" * 32, size_bytes=1))),
    projection=Projection(epsilon=4, matrix=BlobRef(sha256="01" * 32, size_bytes=1)),
)
SPACES = Spaces({16: AXES, 64: np.eye(64, 16, dtype=np.float32)}, np.eye(8, 16, dtype=np.float32))
READER = Reader(AXES[[1, 1, 3]], SCORES, (6, 4))


@pytest.mark.parametrize("mode", ["code", "topics", "subset", "direction", "basis_l1", "basis_laplace"])
def test_every_mode_makes_a_report_of_its_kind_at_the_cost_it_names(
    mode: Mode, database: Database, memo: ReportMemo, clock
) -> None:  # type: ignore[no-untyped-def]
    settings = PrivacySettings(mode=mode, epsilon_per_day_reports=60, epsilon_lifetime_reports=None)
    ledger = Ledger(LedgerBook(database), settings, clock)
    reporter = reporter_of(settings, PROTOCOL, SPACES)
    assert reporter is not None
    sealed = seal_report(
        reporter, READER, release="r1", limit=400, ledger=ledger, noise=SystemNoise(), memo=memo,
        drawn=DrawnReports(database), clicks=3,
    )  # fmt: skip
    assert sealed.message.report.kind == mode
    assert RecallRequest.model_validate_json(sealed.payload) == sealed.message
    assert ledger.total("reports") == pytest.approx(reporter.law.epsilon_per_report)
    expected = {"basis_l1": 5 / 3, "basis_laplace": 50}
    assert reporter.law.epsilon_per_report == pytest.approx(expected.get(mode, 4))
    again = memoised(memo, release="r1", limit=400, clicks=3, settings=settings, now=clock())
    assert again is not None
    assert again.payload == sealed.payload
    other = settings.model_copy(update={"mode": "none"})
    assert memoised(memo, release="r1", limit=400, clicks=3, settings=other, now=clock()) is None


def test_the_finest_codebook_within_the_readers_limit_is_used_and_none_beyond_it() -> None:
    def size(limit: float) -> int | None:
        found = affordable(PROTOCOL, limit)
        return found.size if found else None

    assert [size(limit) for limit in (3.9, 4.0, 7.9, 8.0, 60.0)] == [None, 16, 16, 64, 64]
    strict = PrivacySettings(mode="code", epsilon_per_report=3.9)
    assert reporter_of(strict, PROTOCOL, SPACES) is None
    assert reporter_of(strict.model_copy(update={"mode": "direction"}), PROTOCOL, SPACES) is None
    for mode in ("none", "broadcast"):
        assert reporter_of(PrivacySettings(mode=mode), PROTOCOL, SPACES) is None
    bare = PROTOCOL.model_copy(update={"codebooks": (), "projection": None})
    for mode in ("code", "topics", "subset", "direction"):
        assert reporter_of(PrivacySettings(mode=mode), bare, Spaces()) is None


def test_a_users_vector_is_the_unit_mean_of_the_clicks_and_zero_where_they_cancel() -> None:
    np.testing.assert_allclose(user_vector(np.array([[3, 0], [1, 4]], np.float32)), np.array([1, 1]) / 2**0.5)
    assert user_vector(np.array([[1, 0], [-1, 0]], np.float32)).tolist() == [0, 0]
    reporter = reporter_of(PrivacySettings(mode="direction"), PROTOCOL, SPACES)
    assert reporter is not None
    report, clear = reporter.make(Reader(np.zeros((1, 16), np.float32)), SystemNoise())
    assert report.kind == "direction"
    assert clear[0][0] == 1
