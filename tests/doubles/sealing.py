"""A report sealed with the system's own noise, for a release and a limit that no test cares about."""

from __future__ import annotations

from device_app.privacy.budget import Ledger
from device_app.privacy.modes.mode import Reporter, ReportInput
from device_app.privacy.noise import SystemNoise
from device_app.privacy.reports import seal_report
from device_app.privacy.sealed import Sealed
from device_app.store.drawn_reports import DrawnReports
from device_app.store.report_memo import ReportMemo
from device_app.wire.recall import RecallRequest


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
