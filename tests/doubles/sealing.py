"""Sealed recall requests: a report with the system's own noise, and one without a report."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.accounting.limits import Ceilings
from device_app.privacy.mechanisms.code import RandomisedCode
from device_app.privacy.noise_sources import SystemNoise
from device_app.privacy.reporter import Reporter, ReportInput
from device_app.privacy.sealed import JSON, Charge, Sealed, close, json_payload
from device_app.privacy.sealed_reports import seal_report
from device_app.reports.reporters import CodeReporter, ReportRelease
from device_app.settings import PrivacySettings
from device_app.store.report_memo import DrawnReports, ReportMemo
from protocol.ids import ReleaseId, short_release
from protocol.recall import NoReport, RecallRequest
from protocol.releases import Codebook


def allowing(settings: PrivacySettings) -> Callable[[], Ceilings]:
    """The ceilings of settings that nobody changes, as a ledger reads them."""
    return lambda: Ceilings.of(settings)


def code_reporter(book: Codebook, prototypes: NDArray[np.float32], under: ReportRelease | None = None) -> CodeReporter:
    mechanism = RandomisedCode(book.size, book.epsilon)
    return CodeReporter(mechanism=mechanism, codebook=book, prototypes=prototypes, under=under or ReportRelease())


def sealed_by(
    reporter: Reporter,
    reader: ReportInput,
    ledger: Ledger,
    memo: ReportMemo,
    *,
    clicks: int,
    settings: PrivacySettings | None = None,
) -> Sealed[RecallRequest]:
    """settings: by default the usual ones with the reporter's mode."""
    return seal_report(
        reporter,
        reader,
        settings=lambda: settings or PrivacySettings(mode=reporter.name),
        release="r1",
        limit=400,
        ledger=ledger,
        noise=SystemNoise(),
        memo=memo,
        drawn=DrawnReports(memo._database),
        clicks=clicks,
        sent="A report.",
    )


def seal_nothing(*, release: ReleaseId, limit: int) -> Sealed[RecallRequest]:
    """A recall request without a report, which the server answers with the default list.

    The feed sends none: a device without a report ranks the default list, which all devices pull, or searches its own
    copy of the pool, so that its requests don't reveal that it has nothing to report.

    Formal guarantees: the bytes are the same for every reader of one release and limit: epsilon 0. That such a request
    is made reveals that the reader has no clicks or no budget left, or reports nothing.
    """
    request = RecallRequest(release=short_release(release), limit=limit, report=NoReport())
    return close(
        request,
        json_payload(request),
        JSON,
        Charge("none", "none", subject=release),
        "A request for the list that every device gets.",
    )
