"""The privacy page's values: what left, what it could reveal, what can be switched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from device_app.privacy.budget import CHANNELS, Ledger
from device_app.privacy.mechanisms.basis_laplace import NAME, BasisLaplace
from device_app.settings import PrivacySettings
from device_app.shelves import Shelves
from device_app.store import byte_log
from device_app.store.report_memo import Memo
from device_app.wire.recall import BasisLaplaceReport, RecallRequest
from device_app.wire.releases import RecallProtocol


@dataclass(frozen=True)
class MechanismFacts:
    """The mechanism of the current release and what it costs, counted honestly (ALGORITHMS 2.6)."""

    name: str
    sentence: str
    clip: float
    scale: float
    basis_size: int
    channels_limit: int
    epsilon_per_score: float
    epsilon_per_channel: float
    epsilon_per_report: float


@dataclass(frozen=True)
class BudgetView:
    """One channel of the ledger ('reports' or 'training'), in pure epsilon."""

    channel: str
    per_day: float
    spent_today: float
    left_today: float
    lifetime: float


@dataclass(frozen=True)
class LedgerDay:
    """What one channel cost on one day (UTC)."""

    day: date
    channel: str
    epsilon: float
    charges: int


@dataclass(frozen=True)
class ReportPair:
    """The report in use: what the device computed and what it sends instead. Both are channels x basis.

    clear is None where only the noisy report was kept. labels names each channel for the reader alone.
    """

    made_at: datetime
    expires_at: datetime
    release: str
    clear: tuple[tuple[float, ...], ...] | None
    noisy: tuple[tuple[float, ...], ...]
    counts: tuple[int, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class TrafficEntry:
    """One request that left this device: a line of the table, without the bytes."""

    entry_id: int
    at: datetime
    words: str
    method: str
    url: str
    sent_bytes: int
    received_bytes: int
    status: int | None
    ms: float
    epsilon: float


@dataclass(frozen=True)
class Traffic:
    """One request with the very bytes that left, and those that came back if they were kept."""

    entry: TrafficEntry
    request_head: str
    request_body: bytes
    response_head: str


@dataclass(frozen=True)
class PrivacyView:
    """The whole privacy page."""

    settings: PrivacySettings
    mechanism: MechanismFacts | None
    budgets: tuple[BudgetView, ...]
    days: tuple[LedgerDay, ...]
    entries: tuple[TrafficEntry, ...]
    entries_total: int
    report: ReportPair | None
    new_clicks: int
    clicks_until_report: int


def privacy_view(
    shelves: Shelves, ledger: Ledger, protocol: RecallProtocol | None, names: Sequence[str], page: int
) -> PrivacyView:
    """The privacy page; names are today's interests, largest first, and page counts requests from 1."""
    settings = ledger.settings
    memo = shelves.report_memo.latest()
    new_clicks = shelves.clicks.latest_id() - (memo.clicks if memo else 0)
    entries = shelves.byte_log.entries(page)
    return PrivacyView(
        settings=settings,
        mechanism=None if protocol is None or settings.mode != NAME else mechanism_facts(protocol),
        budgets=tuple(
            BudgetView(
                channel=channel,
                per_day=ledger.per_day(channel),
                spent_today=ledger.spent_today(channel),
                left_today=ledger.left(channel),
                lifetime=ledger.total(channel),
            )
            for channel in CHANNELS
        ),
        days=tuple(
            LedgerDay(sum_.day, sum_.channel, sum_.epsilon, sum_.charges) for sum_ in shelves.ledger_book.days()
        ),
        entries=tuple(_line(entry) for entry in entries.rows),
        entries_total=entries.total,
        report=None if memo is None else _pair(memo, settings, names if new_clicks == 0 else ()),
        new_clicks=new_clicks,
        clicks_until_report=max(0, settings.clicks_per_report - new_clicks) if memo else 0,
    )


def mechanism_facts(protocol: RecallProtocol) -> MechanismFacts:
    """The mechanism that a release asks for, with its costs."""
    mechanism = BasisLaplace.under(protocol)
    return MechanismFacts(
        name=NAME,
        sentence=mechanism.words(),
        clip=mechanism.clip,
        scale=mechanism.scale,
        basis_size=mechanism.basis_size,
        channels_limit=mechanism.channels_limit,
        epsilon_per_score=mechanism.epsilon_per_score,
        epsilon_per_channel=mechanism.epsilon_per_channel,
        epsilon_per_report=mechanism.epsilon_per_report,
    )


def traffic_view(entry: byte_log.Traffic) -> Traffic:
    """One kept request, to the byte."""
    return Traffic(
        entry=_line(entry),
        request_head=entry.head.decode("latin-1"),
        request_body=entry.body,
        response_head=(entry.response_head or b"").decode("latin-1"),
    )


def _line(entry: byte_log.Traffic) -> TrafficEntry:
    return TrafficEntry(
        entry_id=entry.id,
        at=entry.at,
        words=entry.words,
        method=entry.method,
        url=entry.url,
        sent_bytes=entry.sent_bytes,
        received_bytes=len(entry.response_head or b"") + (entry.response_bytes or 0),
        status=entry.status,
        ms=entry.ms or 0.0,
        epsilon=entry.epsilon,
    )


def _pair(memo: Memo, settings: PrivacySettings, names: Sequence[str]) -> ReportPair | None:
    report = RecallRequest.model_validate_json(memo.payload).report
    if not isinstance(report, BasisLaplaceReport):
        return None
    return ReportPair(
        made_at=memo.made_at,
        expires_at=memo.made_at + timedelta(hours=settings.report_window_hours),
        release=memo.release,
        clear=memo.clear,
        noisy=report.scores,
        counts=report.counts,
        labels=tuple(names) if len(names) == len(report.counts) else (),
    )
