"""Codes by randomised response are drawn once, charged once, and survive a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from device_app.errors import BudgetSpent, CodebooksSpent
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.reporter import GRAM_TOLERANCE, ReportInput, ReportMeaning
from device_app.privacy.sealed import Sealed
from device_app.privacy.sealed_reports import last_report
from device_app.reports.choice import memoised
from device_app.reports.reporters import ReportRelease
from device_app.settings import PrivacySettings
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerRepository
from device_app.store.report_memo import DrawnReports, ReportMemo
from protocol.recall import CodeReport, RecallRequest
from protocol.releases import BlobRef, Codebook
from tests.doubles.sealing import allowing, code_reporter, sealed_by
from tests.unit.device_app.privacy.conftest import TurnedClock

CODE = PrivacySettings(mode="code", epsilon_per_day_reports=12, epsilon_lifetime_reports=40, clicks_per_report=20)
BOOK = Codebook(size=16, epsilon=4, prototypes=BlobRef(sha256="ab" * 32, size_bytes=1))
AXES = np.eye(16, dtype=np.float32)


def test_device_killed_between_charging_and_sending_keeps_charge_and_report(tmp_path: Path) -> None:
    # The child is killed once seal_report has returned: nothing was sent, the charge stays and the report is reused.
    path = tmp_path / "device.sqlite"
    child = killed_after_seal(path, "")
    database = Database(path)
    memo = ReportMemo(database)
    kept = memo.current("r1")
    assert kept is not None
    again = memoised(memo, release="r1", limit=400, clicks=3, settings=CODE, now=kept.made_at)
    assert again is not None
    assert again.sha256 == child
    paid = LedgerRepository(database).charged(child)
    assert paid is not None
    assert paid.epsilon == 4
    assert DrawnReports(database).distinct("code") == 1
    database.close()


def test_device_killed_before_the_charge_is_committed_has_no_report(tmp_path: Path) -> None:
    path = tmp_path / "device.sqlite"
    killed_after_seal(path, "import os, signal; ReportMemo.keep = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n")
    database = Database(path)
    assert ReportMemo(database).latest() is None
    assert LedgerRepository(database).entries().total == 0
    assert DrawnReports(database).distinct("code") == 0
    database.close()


def killed_after_seal(path: Path, sabotage: str) -> str:
    """Seal a code in a process that is killed right afterwards, or by its sabotage; return the payload's hash."""
    program = (
        "import sys; from pathlib import Path; from datetime import datetime, UTC; import numpy as np\n"
        "from device_app.store.database import Database; from device_app.store.ledger_entries import LedgerRepository\n"
        "from device_app.store.report_memo import DrawnReports\n"
        "from device_app.store.report_memo import ReportMemo; from device_app.privacy.accounting.ledger import Ledger\n"
        "from device_app.privacy.noise_sources import SystemNoise\n"
        "from device_app.privacy.sealed_reports import seal_report\n"
        "from device_app.privacy.reporter import ReportInput\n"
        "from tests.doubles.sealing import allowing, code_reporter\n"
        "from device_app.settings import PrivacySettings; from protocol.releases import BlobRef, Codebook\n"
        f"{sabotage}"
        "database = Database(Path(sys.argv[1])); settings = PrivacySettings(mode='code')\n"
        "ledger = Ledger(LedgerRepository(database), allowing(settings), lambda: datetime(2026, 11, 20, tzinfo=UTC))\n"
        "book = Codebook(size=16, epsilon=4, prototypes=BlobRef(sha256='ab' * 32, size_bytes=1))\n"
        "sealed = seal_report(code_reporter(book, np.eye(16, dtype=np.float32)), ReportInput(np.eye(16, "
        "dtype=np.float32)),\n"
        "    settings=lambda: settings, release='r1', limit=400, ledger=ledger, noise=SystemNoise(),\n"
        "    memo=ReportMemo(database), drawn=DrawnReports(database), clicks=3, sent='')\n"
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


def seal_code(
    ledger: Ledger,
    memo: ReportMemo,
    axis: int,
    *,
    book: Codebook = BOOK,
    clicks: int = 3,
    settings: PrivacySettings = CODE,
) -> Sealed[RecallRequest]:
    reporter, reader = code_reporter(book, AXES), ReportInput(AXES[[axis]])
    return sealed_by(reporter, reader, ledger, memo, clicks=clicks, settings=settings)


def test_code_is_drawn_and_charged_once_and_reused_when_interests_return(
    database: Database, memo: ReportMemo, clock: TurnedClock
) -> None:
    # Thirty sessions over a month between three codes: three charges, and each code always the same bytes.
    ledger = Ledger(LedgerRepository(database), allowing(CODE), clock)
    sent: dict[int, set[bytes]] = {}
    for session in range(30):
        clock.turn(days=1)
        axis = (5, 5, 9, 5, 2)[session % 5]
        sent.setdefault(axis, set()).add(seal_code(ledger, memo, axis, clicks=3 + 20 * session).payload)
    assert {axis: len(payloads) for axis, payloads in sent.items()} == {5: 1, 9: 1, 2: 1}
    assert ledger.total("reports") == 12
    assert ledger.repository.entries().total == 3
    assert DrawnReports(database).distinct("code") == 3
    assert seal_code(ledger, memo, 5).charge.epsilon == 0


def test_code_is_drawn_and_charged_again_for_a_changed_codebook(
    database: Database, memo: ReportMemo, clock: TurnedClock
) -> None:
    ledger = Ledger(LedgerRepository(database), allowing(CODE), clock)
    settings = CODE.model_copy(update={"codebooks_per_day": 3})
    for other in ({}, {"prototypes": BlobRef(sha256="cd" * 32, size_bytes=1)}, {"epsilon": 2.0}):
        seal_code(ledger, memo, 5, book=BOOK.model_copy(update=other), settings=settings)
    assert ledger.total("reports") == 10


def test_codebook_identity_depends_on_content_not_name(
    database: Database, memo: ReportMemo, clock: TurnedClock
) -> None:
    ledger = Ledger(LedgerRepository(database), allowing(CODE), clock)
    settings = CODE.model_copy(update={"codebooks_per_day": 5})
    seal_code(ledger, memo, 5, settings=settings)
    moved = {"prototypes": BlobRef(sha256="cd" * 32, size_bytes=1), "lineage": BOOK.origin}
    seal_code(ledger, memo, 5, book=BOOK.model_copy(update=moved), settings=settings)
    assert ledger.total("reports") == 8, "its lineage is what the server says of it"
    for under in (ReportRelease("r2", "enc-2", "enc-2/1"), ReportRelease("r3", "enc-2", "enc-2/2")):
        clock.turn(days=1)
        reporter = code_reporter(BOOK, AXES, under)
        sealed_by(reporter, ReportInput(AXES[[5]]), ledger, memo, clicks=3, settings=settings)
    assert ledger.total("reports") == 16
    assert DrawnReports(database).distinct("code") == 4, "other vectors, or the same encoder's received again"


def test_third_new_codebook_in_a_day_is_not_used_until_the_next_day(
    database: Database, memo: ReportMemo, clock: TurnedClock
) -> None:
    ledger = Ledger(LedgerRepository(database), allowing(CODE), clock)
    books = [BOOK.model_copy(update={"epsilon": epsilon}) for epsilon in (0.5, 1.0, 1.5)]
    for book in books[:2]:
        seal_code(ledger, memo, 5, book=book)
    kept = memo.latest()
    with pytest.raises(CodebooksSpent, match="for 2 versions of them today"):
        seal_code(ledger, memo, 5, book=books[2])
    assert memo.latest() == kept
    seal_code(ledger, memo, 6, book=books[0])
    assert ledger.total("reports") == 2.0, "another number by a known codebook is drawn and paid for as before"
    clock.turn(days=1)
    seal_code(ledger, memo, 5, book=books[2])


def test_codebook_counts_as_the_same_only_after_a_rotation_of_all_vectors() -> None:
    rng = np.random.default_rng(4)
    turn = np.linalg.qr(rng.normal(size=(16, 16)))[0]
    rows = rng.normal(size=(16, 16))
    first = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    kept = meaning(first, "enc-1")
    turned = (first.astype(np.float64) @ turn).astype(np.float32)
    assert kept.carried_to(meaning(turned, "enc-2"))
    assert kept.carried_to(meaning(first, "enc-1", generation="enc-1/7")), "the very same, though it was away"
    assert not kept.carried_to(meaning(turned, "enc-1")), "the space has not changed, so nothing had to turn"
    assert not kept.carried_to(meaning(turned[::-1], "enc-2")), "in another order every number says something else"
    nudged = turned.copy()
    nudged[3] = -nudged[3]
    assert not kept.carried_to(meaning(nudged, "enc-2"))
    assert not kept.carried_to(meaning(turned[:8], "enc-2", size=8))
    assert not kept.carried_to(meaning(turned, "enc-2", epsilon=3.9))
    drift = first
    for _ in range(1_000):
        drift = (drift.astype(np.float64) @ turn).astype(np.float32)
    moved = float(np.abs(meaning(drift, "enc-2").gram - kept.gram).max())
    assert moved < GRAM_TOLERANCE / 10, f"a thousand turns moved inner products by {moved:.1e}"


def meaning(
    prototypes: np.ndarray, encoder: str, *, size: int = 16, epsilon: float = 4.0, generation: str = ""
) -> ReportMeaning:
    blob = BlobRef(sha256=sha256(prototypes.tobytes()).hexdigest(), size_bytes=1)
    book = Codebook(size=size, epsilon=epsilon, prototypes=blob)
    return code_reporter(book, prototypes, ReportRelease("r1", encoder, generation or f"{encoder}/0")).meaning


def test_unchanged_report_is_resent_under_a_new_release_for_free(
    database: Database, memo: ReportMemo, clock: TurnedClock
) -> None:
    ledger = Ledger(LedgerRepository(database), allowing(CODE), clock)
    first = seal_code(ledger, memo, 5, clicks=3)
    again = memoised(memo, release="r1", limit=400, clicks=4, settings=CODE, now=clock(), under="r2")
    assert again is not None
    assert again.message == first.message.model_copy(update={"release": 2}), "the noise is the same to the bit"
    assert (again.charge.epsilon, again.charge.subject) == (0, "r2")
    left = last_report(memo, release="r1", limit=400, settings=CODE, under="r2")
    assert left is not None
    assert left.payload == again.payload
    assert ledger.total("reports") == 4


def test_ledger_holds_mechanism_parameters_hash_and_time_of_a_code(
    database: Database, memo: ReportMemo, clock: TurnedClock
) -> None:
    ledger = Ledger(LedgerRepository(database), allowing(CODE), clock)
    sealed = seal_code(ledger, memo, 5)
    (entry,) = ledger.repository.entries().rows
    assert (entry.mechanism, entry.parameters) == ("code", {"size": 16, "epsilon": 4})
    assert (entry.epsilon, entry.delta, entry.payload_sha256, entry.at) == (4, 0, sealed.sha256, clock())
    report = sealed.message.report
    assert isinstance(report, CodeReport)
    assert report.codebook == 16
    kept = memo.current("r1")
    assert kept is not None
    assert kept.clear == ((5.0,),), "the true code, for the reader alone"


def test_spent_lifetime_budget_refuses_a_new_code_but_sends_old_ones_again_for_free(
    database: Database, memo: ReportMemo, clock: TurnedClock
) -> None:
    limits = CODE.model_copy(update={"epsilon_lifetime_reports": 8.0})
    ledger = Ledger(LedgerRepository(database), allowing(limits), clock)
    first = seal_code(ledger, memo, 5)
    seal_code(ledger, memo, 6)
    with pytest.raises(BudgetSpent) as refused:
        seal_code(ledger, memo, 7)
    assert refused.value.lifetime
    assert DrawnReports(database).distinct("code") == 2
    assert seal_code(ledger, memo, 5).payload == first.payload


def test_report_is_renewed_when_clicks_double_and_later_after_twenty_more(
    database: Database, memo: ReportMemo, clock: TurnedClock
) -> None:
    ledger = Ledger(LedgerRepository(database), allowing(CODE), clock)
    due = []
    for clicks in range(3, 100):
        if memoised(memo, release="r1", limit=400, clicks=clicks, settings=CODE, now=clock()) is None:
            seal_code(ledger, memo, 5, clicks=clicks)
            due.append(clicks)
    assert due == [3, 6, 12, 24, 44, 64, 84]
