"""Sealed recall requests: a report with the system's own noise, and one without a report."""

from __future__ import annotations

from device_app.privacy.ledger import Ledger
from device_app.privacy.modes.mode import Reporter, ReportInput
from device_app.privacy.modes.none import NONE
from device_app.privacy.noise_sources import SystemNoise
from device_app.privacy.reports import seal_report
from device_app.privacy.sealed import JSON, Charge, Sealed, close, json_payload
from device_app.store.drawn_reports import DrawnReports
from device_app.store.report_memo import ReportMemo
from device_app.wire.ids import ReleaseId, short_release
from device_app.wire.recall import NoReport, RecallRequest


def sealed_by(
    reporter: Reporter, reader: ReportInput, ledger: Ledger, memo: ReportMemo, *, clicks: int
) -> Sealed[RecallRequest]:
    return seal_report(
        reporter,
        reader,
        release="r1",
        limit=400,
        ledger=ledger,
        noise=SystemNoise(),
        memo=memo,
        drawn=DrawnReports(memo._database),
        clicks=clicks,
    )


def seal_nothing(*, release: ReleaseId, limit: int) -> Sealed[RecallRequest]:
    """A recall request without a report, which is answered by the list that everybody gets.

    The feed sends none: a device without a report ranks the default list, which all devices pull, or searches its own
    copy of the pool, so that asking doesn't tell that it has nothing to report.

    Formal guarantees: the bytes are the same for every reader of one release and limit: epsilon 0. That such a request
    is made tells that the reader has no clicks or no budget left, or reports nothing.
    """
    request = RecallRequest(release=short_release(release), limit=limit, report=NoReport())
    return close(
        request,
        json_payload(request),
        JSON,
        Charge("none", NONE.name, subject=release),
        "A request for the list that every device gets.",
    )
