"""The privacy page's values: what left, what it could reveal, what can be switched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from device_app.privacy.ledger import CHANNELS, Ledger
from device_app.privacy.modes import MODES
from device_app.privacy.privacy_loss import Composed, composed
from device_app.privacy.reports import clicks_until_due, mode_of
from device_app.settings import PrivacySettings
from device_app.store.releases import TrustedKey
from device_app.store.report_memo import Memo
from device_app.stores import DeviceStores
from device_app.view_models.modes import MechanismFacts, ModeFacts, PoolFacts, mechanism_facts, mode_facts
from device_app.view_models.reader_views import SourcesView, sources_view
from device_app.view_models.sums import AloneView, SumCost, alone_view, sum_cost
from device_app.view_models.today import TodayView, today_view
from device_app.view_models.traffic import ShownTraffic, TrafficLog, traffic_log
from device_app.wire.chain import readable
from device_app.wire.recall import RecallRequest
from device_app.wire.releases import ReleaseManifest
from device_app.wire.rotations import fingerprint

COUNTS_SHOWN = 10


@dataclass(frozen=True)
class BudgetView:
    """One channel of the ledger ('reports', 'training' or 'counts'), in epsilon; lifetime is what was spent in all."""

    channel: str
    per_day: float
    spent_today: float
    left_today: float
    lifetime: float
    lifetime_limit: float | None = None


@dataclass(frozen=True)
class LedgerDay:
    """What one channel cost on one day (UTC)."""

    day: date
    channel: str
    epsilon: float
    charges: int


@dataclass(frozen=True)
class ReportPair:
    """The report in use: what the device computed and what it sends instead, row by row.

    kind is the mode's name. Scores are channels x basis, topics and a direction one row; in_a_sentence: clear is the
    one true number and noisy the numbers sent. clear is None where only the noisy report was kept. counts are those
    that were told in clear. labels names each row for the reader alone.
    """

    kind: str
    made_at: datetime
    expires_at: datetime
    release: str
    clear: tuple[tuple[float, ...], ...] | None
    noisy: tuple[tuple[float, ...], ...]
    counts: tuple[int, ...]
    labels: tuple[str, ...]

    @property
    def in_a_sentence(self) -> bool:
        """Whether one number was told, or a set that hides one."""
        return MODES[self.kind].in_a_sentence

    @property
    def row_label(self) -> str | None:
        """What rows are called that are no channels; None: they are channels."""
        return MODES[self.kind].row_label


@dataclass(frozen=True)
class CountFacts:
    """One private count: what of this reader went into it, and what that cost. Displays and clicks are news.

    cost: None of a count without noise.
    """

    round: str
    since: datetime
    until: datetime
    displayed: int
    clicked: int
    cost: SumCost | None


@dataclass(frozen=True)
class ChainHead:
    """The newest release of the chain that this device has used, and the chain's head in a form to read aloud.

    key: fingerprint of the key that must have signed releases and offers, as `ownfeed keys show` prints it. rotated:
    whether this device came to it from an earlier one.
    """

    release: str
    head: str
    key: str
    rotated: bool


@dataclass(frozen=True)
class PrivacyView:
    """The whole privacy page.

    settings: as they hold; own: as the reader set them, whose mode may stand for another.
    given: the switches that stand as this device was started with them, not as the reader set them or as they come.
    composed: all charges, of reports, training and counts together. counts: newest first. reported: whether a report is
    in use; new_clicks came after it and are kept still, or are all where there is none.
    today: for the first sentence.
    """

    settings: PrivacySettings
    own: PrivacySettings
    given: frozenset[str]
    modes: tuple[ModeFacts, ...]
    mechanism: MechanismFacts | None
    composed: Composed
    pool: PoolFacts | None
    budgets: tuple[BudgetView, ...]
    days: tuple[LedgerDay, ...]
    log: TrafficLog
    report: ReportPair | None
    new_clicks: int
    clicks_until_report: int
    sources: SourcesView
    alone: AloneView
    today: TodayView
    counts: tuple[CountFacts, ...] = ()
    chain: ChainHead | None = None
    reported: bool = True


def privacy_view(
    stores: DeviceStores,
    ledger: Ledger,
    manifest: ReleaseManifest | None,
    names: Sequence[str],
    set_by_reader: frozenset[str],
    page: int,
    shown: ShownTraffic | None,
    trusted: TrustedKey | None,
) -> PrivacyView:
    """The privacy page; names are today's interests, largest first, and page counts lines of the log from 1.

    trusted: the key by which releases are checked now.
    """
    settings, own, protocol = ledger.settings, ledger.own, None if manifest is None else manifest.recall
    memo = stores.report_memo.latest()
    kept = stores.pool.current()
    pool = None if kept is None else PoolFacts(kept.listing.count, kept.pulled_bytes)
    # When a report is due goes by the clicks that were made, also by those deleted since: a page counts what is kept.
    made_since = stores.clicks.latest_id() - memo.clicks if memo else 0
    new_clicks = stores.clicks.count() - (stores.clicks.count_up_to(memo.clicks) if memo else 0)
    return PrivacyView(
        settings=settings,
        own=own,
        given=_as_started(own) - set_by_reader,
        modes=mode_facts(own, protocol, pool, None if manifest is None else manifest.news),
        mechanism=mechanism_facts(settings, protocol),
        composed=composed(stores.ledger_entries.grouped()),
        pool=pool,
        budgets=tuple(
            BudgetView(
                channel=channel,
                per_day=ledger.per_day(channel),
                spent_today=ledger.spent_today(channel),
                left_today=ledger.left(channel),
                lifetime=ledger.total(channel),
                lifetime_limit=ledger.lifetime(channel),
            )
            for channel in CHANNELS
        ),
        days=tuple(
            LedgerDay(sum_.day, sum_.channel, sum_.epsilon, sum_.charges) for sum_ in stores.ledger_entries.days()
        ),
        log=traffic_log(stores, page, shown),
        report=None if memo is None else _pair(memo, settings, names if new_clicks == 0 else ()),
        new_clicks=new_clicks,
        clicks_until_report=max(0, clicks_until_due(memo, settings) - made_since) if memo else 0,
        alone=alone_view(ledger),
        today=today_view(stores, ledger),
        reported=memo is not None,
        counts=_counts(stores),
        chain=_chain(stores, trusted),
        sources=sources_view(stores, settings),
    )


def _chain(stores: DeviceStores, trusted: TrustedKey | None) -> ChainHead | None:
    link = stores.releases.chained()
    if link is None or trusted is None:
        return None
    return ChainHead(f"r{link.number}", readable(link.head), fingerprint(trusted.public_key), trusted.rotation > 0)


def _counts(stores: DeviceStores) -> tuple[CountFacts, ...]:
    charges = {subject: sum_cost(entry) for subject, entry in stores.ledger_entries.of_sums().items()}
    return tuple(
        CountFacts(taken.round, taken.since, taken.until, taken.displayed, taken.clicked, charges.get(taken.round))
        for taken in stores.counted.list(COUNTS_SHOWN)
    )


def _as_started(settings: PrivacySettings) -> frozenset[str]:
    usual = PrivacySettings()
    return frozenset(name for name in PrivacySettings.model_fields if getattr(settings, name) != getattr(usual, name))


def _pair(memo: Memo, settings: PrivacySettings, names: Sequence[str]) -> ReportPair | None:
    request, mode = RecallRequest.model_validate_json(memo.payload), MODES[settings.mode]
    if mode.report is None or mode_of(memo, request) != mode.name:
        return None
    counts = mode.counts(request.report)
    return ReportPair(
        kind=mode.name,
        made_at=memo.made_at,
        expires_at=memo.made_at + timedelta(hours=settings.report_window_hours),
        release=memo.release,
        clear=memo.clear,
        noisy=mode.rows(request.report),
        counts=counts,
        labels=tuple(names) if len(names) == len(counts) else (),
    )
