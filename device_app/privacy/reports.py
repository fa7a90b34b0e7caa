"""The report of interests: clipped, noised, paid for once, then sent again bit for bit until it's out of date."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.budget import Ledger
from device_app.privacy.mechanisms import basis_laplace, none
from device_app.privacy.noise import NoiseSource
from device_app.privacy.sealed import JSON, Charge, Sealed, close, digest, json_payload
from device_app.settings import PrivacySettings
from device_app.store.report_memo import Memo, ReportMemo
from device_app.wire.ids import ReleaseId
from device_app.wire.recall import BasisLaplaceReport, NoReport, RecallRequest
from device_app.wire.releases import RecallProtocol

GRID = 2.0**-16
SENT_AGAIN = "The blurred list of your interests, the same one as before: it costs no budget."
SENT_FRESH = "A blurred list of your interests, drawn anew, and how many clicks stand behind each."
SENT_NOTHING = "A request for the list that every device gets. Nothing about you is in it."


def seal_report(
    scores: NDArray[np.floating],
    counts: Sequence[int],
    *,
    protocol: RecallProtocol,
    release: ReleaseId,
    limit: int,
    ledger: Ledger,
    noise: NoiseSource,
    memo: ReportMemo,
    clicks: int,
) -> Sealed[RecallRequest]:
    """Make a fresh report from raw scores [C, B] and counts [C], charge it, and put it in use.

    clicks is Clicks.latest_id() at the time the scores were computed. Ask `memoised` first: a fresh report costs.
    Raises BudgetSpent (nothing is drawn up to be sent, the memo stays), ValueError for scores that are not finite or of
    another shape than the protocol says, or settings that allow no report.

    Formal guarantees: those of `BasisLaplace.release` for the scores; counts and C go in clear. Charge and memo are
    kept in one transaction, before this returns: after a kill either both exist or neither.
    """
    if ledger.settings.mode != basis_laplace.NAME:
        raise ValueError(f"the reader's mode is {ledger.settings.mode!r}: no report of interests may be made")
    mechanism = basis_laplace.BasisLaplace.under(protocol)
    clear = mechanism.clipped(scores)
    noisy = np.round(mechanism.release(scores, noise) / GRID) * GRID
    report = BasisLaplaceReport(scores=tuple(map(tuple, noisy.tolist())), counts=tuple(int(count) for count in counts))
    request = RecallRequest(release=release, limit=limit, report=report)
    payload = json_payload(request)
    charge = Charge(
        channel="reports",
        mechanism=basis_laplace.NAME,
        parameters=mechanism.parameters(),
        epsilon=mechanism.epsilon_per_report,
        payload_sha256=digest(payload),
        subject=release,
    )
    with ledger.book.transaction():
        paid = ledger.spend(charge)
        memo.keep(Memo(release, payload, tuple(map(tuple, clear.tolist())), clicks, paid.at))
    return close(request, payload, JSON, charge, SENT_FRESH)


def memoised(
    memo: ReportMemo, *, release: ReleaseId, limit: int, clicks: int, settings: PrivacySettings, now: datetime
) -> Sealed[RecallRequest] | None:
    """The report in use, ready to be sent again, or None if a fresh one is due.

    Due: no report under this release, `clicks_per_report` new clicks since, the window over, or reports switched off.
    A limit other than the first time's changes that field alone, never the noise.

    Formal guarantees: sending the same noisy values again is post-processing: epsilon 0.
    """
    kept = memo.current(release)
    if kept is None or settings.mode != basis_laplace.NAME:
        return None
    new_clicks = clicks - kept.clicks
    age = now - kept.made_at
    if new_clicks >= settings.clicks_per_report or age >= timedelta(hours=settings.report_window_hours):
        return None
    return _again(kept, limit)


def last_report(
    memo: ReportMemo, *, release: ReleaseId, limit: int, settings: PrivacySettings
) -> Sealed[RecallRequest] | None:
    """The report in use however old it is: what is left to send when the budget is spent. None if there is none.

    Formal guarantees: as `memoised`, epsilon 0.
    """
    kept = memo.current(release)
    if kept is None or settings.mode != basis_laplace.NAME:
        return None
    return _again(kept, limit)


def seal_nothing(*, release: ReleaseId, limit: int) -> Sealed[RecallRequest]:
    """A recall request without a report: for readers without clicks, without budget, or who report nothing.

    Formal guarantees: the bytes are the same for every reader of one release and limit: epsilon 0.
    """
    request = RecallRequest(release=release, limit=limit, report=NoReport())
    return close(request, json_payload(request), JSON, Charge("none", none.NAME, subject=release), SENT_NOTHING)


def _again(kept: Memo, limit: int) -> Sealed[RecallRequest]:
    request = RecallRequest.model_validate_json(kept.payload)
    payload = kept.payload
    if request.limit != limit:
        request = request.model_copy(update={"limit": limit})
        payload = json_payload(request)
    charge = Charge("none", basis_laplace.NAME, subject=kept.release)
    return close(request, payload, JSON, charge, SENT_AGAIN)
