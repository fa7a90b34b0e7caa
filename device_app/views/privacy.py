"""The privacy page's values: what left, what it could reveal, what can be switched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from device_app.privacy.budget import CHANNELS, Ledger
from device_app.privacy.mechanisms.basis_laplace import NAME, BasisLaplace
from device_app.settings import PrivacySettings
from device_app.shelves import Shelves
from device_app.store.report_memo import Memo
from device_app.views.traffic import Shown, TrafficLog, traffic_log
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
class PrivacyView:
    """The whole privacy page.

    given: the switches that stand as this device was started with them, not as the reader set them or as they come.
    """

    settings: PrivacySettings
    given: frozenset[str]
    mechanism: MechanismFacts | None
    budgets: tuple[BudgetView, ...]
    days: tuple[LedgerDay, ...]
    log: TrafficLog
    report: ReportPair | None
    new_clicks: int
    clicks_until_report: int


def privacy_view(
    shelves: Shelves,
    ledger: Ledger,
    protocol: RecallProtocol | None,
    names: Sequence[str],
    set_by_reader: frozenset[str],
    page: int,
    shown: Shown | None,
) -> PrivacyView:
    """The privacy page; names are today's interests, largest first, and page counts lines of the log from 1."""
    settings = ledger.settings
    memo = shelves.report_memo.latest()
    new_clicks = shelves.clicks.latest_id() - (memo.clicks if memo else 0)
    return PrivacyView(
        settings=settings,
        given=_as_started(settings) - set_by_reader,
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
        log=traffic_log(shelves, page, shown),
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


def _as_started(settings: PrivacySettings) -> frozenset[str]:
    usual = PrivacySettings()
    return frozenset(name for name in PrivacySettings.model_fields if getattr(settings, name) != getattr(usual, name))


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
