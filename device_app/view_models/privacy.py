"""View model of the privacy page: what was sent, what it could reveal, what can be switched.

It covers budgets and ledger, the report in use, private counts, the log of requests, and the reader's two views (clicks
and searches). Costs of noisy sums are shown in two ways: if the other devices are real and if they are all fake, each
for a single click and for all of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from device_app.privacy.accounting.composition import Composed, composed
from device_app.privacy.accounting.cost_of_sums import EPSILON_ALONE, ONE_CLICK, ONE_CLICK_ALONE
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.accounting.limits import CHANNELS
from device_app.privacy.local_aggregate import composed_epsilon
from device_app.privacy.sealed_reports import is_blank, mode_of
from device_app.reports.choice import clicks_until_due
from device_app.reports.modes import MODES
from device_app.reports.policy import ReportPolicy
from device_app.settings import PrivacySettings
from device_app.store.ledger_entries import DaySum, LedgerEntry
from device_app.store.releases import TrustedKey
from device_app.store.report_memo import Memo
from device_app.stores import DeviceStores
from device_app.training.multiview.worker import version
from device_app.view_models.explore import use_of
from device_app.view_models.modes import MechanismFacts, ModeFacts, PoolFacts, mechanism_facts, mode_facts
from device_app.view_models.traffic import ShownTraffic, TodayView, TrafficLog, today_view, traffic_log
from protocol.chain import fingerprint, readable
from protocol.recall import RecallRequest
from protocol.releases import ReleaseManifest
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("device_app.view_models", "words.toml")

DELTA = 1e-3
"""Delta of the paper, for the privacy account of a view."""


@dataclass(frozen=True)
class SourceFacts:
    """One of the reader's views.

    holds describes what it stores. weighs says whether the next report uses it, and where else it is used. rounds is
    the number of rounds it took part in; epsilon at DELTA is the cost of its noisy gradients towards the other view.
    """

    title: str
    holds: str
    weighs: str
    rounds: int
    epsilon: float


@dataclass(frozen=True)
class SourcesView:
    """Both views. apart: whether this system can isolate their computations."""

    sources: tuple[SourceFacts, ...]
    delta: float
    apart: bool


def sources_view(stores: DeviceStores, settings: PrivacySettings) -> SourcesView:
    """Return both views; reads only a few counts."""
    clicks, saved = stores.clicks.count(), len(stores.searches.saved())
    topics = len(stores.stances.followed_topics())
    reading, searches = WORDS.table("reading_weighs"), WORDS.table("searches_weigh")
    use = use_of(settings)
    if use == "mode":
        use = "reports_off" if settings.mode == "none" else "clicks_alone"
    return SourcesView(
        sources=(
            _facts(stores, "reading", _counted(clicks, "click"), reading.get(settings.mode, reading["other"])),
            _facts(
                stores,
                "searches",
                f"{_counted(saved, 'search', 'searches')}, {_counted(topics, 'topic')}",
                searches[use],
            ),
        ),
        delta=DELTA,
        apart=version() > 0,
    )


def _facts(stores: DeviceStores, view: str, holds: str, weighs: str) -> SourceFacts:
    sigmas = stores.view_log.sigmas(view)
    return SourceFacts(WORDS.table("views")[view], holds, weighs, len(sigmas), composed_epsilon(sigmas, DELTA))


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


@dataclass(frozen=True)
class SumCost:
    """Costs of one sum in epsilon at delta.

    epsilon: if the other devices are real; alone: if they are all fake. The costs of one click are None for charges
    made before they were recorded.
    """

    delta: float
    epsilon: float
    alone: float
    one_click: float | None = None
    one_click_alone: float | None = None


@dataclass(frozen=True)
class AloneView:
    """The cost of all noisy sums if no other device was real, in epsilon at delta.

    It is shown with its limits.
    """

    today: float
    per_day: float
    in_all: float
    lifetime_limit: float | None
    delta: float


def sum_cost(entry: LedgerEntry) -> SumCost:
    """Return the cost of a charge for a noisy sum."""
    known = entry.parameters
    alone = known.get(EPSILON_ALONE, math.inf)
    return SumCost(entry.delta, entry.epsilon, alone, known.get(ONE_CLICK), known.get(ONE_CLICK_ALONE))


def alone_view(ledger: Ledger) -> AloneView:
    """Return what sums would have cost if no other device were real, today and in total."""
    ceilings, alone = ledger.ceilings, ledger.alone()
    delta = ceilings.delta
    return AloneView(
        today=alone.today(delta),
        per_day=ceilings.alone_day,
        in_all=alone.in_all(delta),
        lifetime_limit=ceilings.alone_life,
        delta=delta,
    )


COUNTS_SHOWN = 10


@dataclass(frozen=True)
class BudgetView:
    """One channel of the ledger ('reports', 'training' or 'counts'), in epsilon.

    lifetime is the total spent.
    """

    channel: str
    per_day: float
    spent_today: float
    left_today: float
    lifetime: float
    lifetime_limit: float | None = None


GROUPS_SHOWN = 3


@dataclass(frozen=True)
class ReportStep:
    """A step of the explanation of a report, for one interest or for all together.

    groups: (group number, weight), the largest weight first.
    """

    title: str
    groups: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class ReportPair:
    """The report in use: what the device computed and what it sends instead, row by row.

    kind is the mode's name. Scores have shape channels x basis; topics are one row. in_a_sentence:
    clear is the one true number and noisy the numbers sent. clear is None if only the noisy report was stored. counts
    are those sent in the clear. labels names each row, for the reader only. steps: how the true number was found.
    """

    kind: str
    made_at: datetime
    expires_at: datetime
    release: str
    clear: tuple[tuple[float, ...], ...] | None
    noisy: tuple[tuple[float, ...], ...]
    counts: tuple[int, ...]
    labels: tuple[str, ...]
    steps: tuple[ReportStep, ...] = ()

    @property
    def in_a_sentence(self) -> bool:
        """Whether the report is a single number, or a set that hides one."""
        return MODES[self.kind].label.in_a_sentence

    @property
    def row_label(self) -> str | None:
        """What rows are called if they aren't channels, else None."""
        return MODES[self.kind].label.row_label


@dataclass(frozen=True)
class CountFacts:
    """One private count: what this reader contributed and what it cost.

    displayed and clicked count articles. cost: None for a count without noise.
    """

    round: str
    since: datetime
    until: datetime
    displayed: int
    clicked: int
    cost: SumCost | None


@dataclass(frozen=True)
class ChainHead:
    """The newest release this device has used, and its chain's head in a form to read aloud.

    key: fingerprint of the key that must have signed releases and offers, as `ownfeed keys show` prints it. rotated:
    whether this key replaced an earlier one.
    """

    release: str
    head: str
    key: str
    rotated: bool


@dataclass(frozen=True)
class PrivacyView:
    """The whole privacy page.

    settings: those in effect; own: those the reader set, whose mode may stand for another. given: switches set when
    this device was started, neither by the reader nor by default. composed: all charges of reports, training and
    counts. counts: newest first. reported: whether a report is in use; blank: whether it contains nothing about the
    reader. new_clicks: stored clicks made after it, or all clicks if there is none. today: for the first sentence.
    """

    settings: PrivacySettings
    own: PrivacySettings
    given: frozenset[str]
    modes: tuple[ModeFacts, ...]
    mechanism: MechanismFacts | None
    composed: Composed
    pool: PoolFacts | None
    budgets: tuple[BudgetView, ...]
    days: tuple[DaySum, ...]
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
    blank: bool = False


def privacy_view(
    stores: DeviceStores,
    policy: ReportPolicy,
    ledger: Ledger,
    manifest: ReleaseManifest | None,
    names: Sequence[str],
    set_by_reader: frozenset[str],
    page: int,
    shown: ShownTraffic | None,
    trusted: TrustedKey | None,
) -> PrivacyView:
    """Return the privacy page.

    names are today's interests, largest first; page counts pages of the log from 1. trusted: the key that verifies
    releases now.
    """
    settings, own, protocol = policy.settings, policy.own, None if manifest is None else manifest.recall
    memo = stores.report_memo.latest()
    kept = stores.pool.current()
    pool = None if kept is None else PoolFacts(kept.listing.count, kept.pulled_bytes)
    # A report becomes due by clicks made, including clicks deleted since; the page counts only stored ones.
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
        days=tuple(stores.ledger_entries.days()),
        log=traffic_log(stores, page, shown),
        report=None if memo is None else _pair(memo, settings, names if new_clicks == 0 else ()),
        new_clicks=new_clicks,
        clicks_until_report=_clicks_until_report(memo, settings, stores.clicks.count(), made_since),
        alone=alone_view(ledger),
        today=today_view(stores, policy, ledger),
        reported=memo is not None,
        blank=memo is not None and is_blank(memo),
        counts=_counts(stores),
        chain=_chain(stores, trusted),
        sources=sources_view(stores, settings),
    )


def _clicks_until_report(memo: Memo | None, settings: PrivacySettings, clicks: int, made_since: int) -> int:
    """Return how many clicks until another report is due; 0 if none is in use."""
    if memo is None:
        return 0
    if is_blank(memo):
        return max(0, settings.clicks_before_report - clicks)
    return max(0, clicks_until_due(memo, settings) - made_since)


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
    if mode.reporter is None or mode_of(memo, request) != mode.name:
        return None
    counts = mode.label.counts(request.report)
    return ReportPair(
        kind=mode.name,
        made_at=memo.made_at,
        expires_at=memo.made_at + timedelta(hours=settings.report_window_hours),
        release=memo.release,
        clear=memo.clear,
        noisy=mode.label.rows(request.report),
        counts=counts,
        labels=tuple(names) if len(names) == len(counts) else (),
        steps=report_steps(memo.clear, names) if mode.label.in_a_sentence else (),
    )


def report_steps(clear: Sequence[Sequence[float]], names: Sequence[str]) -> tuple[ReportStep, ...]:
    """Return the weights of each interest, then those of all together (`InterestReporter.shown`); empty for other
    reports.

    names: the names of the interests, if they are still those of the report.
    """
    if len(clear) < 2:
        return ()
    _, weights, *interests = clear
    named = names if len(names) == len(interests) else ()
    steps = [
        ReportStep(
            WORDS(
                "step_interest",
                name=named[at] if named else WORDS("step_unnamed", number=at + 1),
                clicks=_counted(int(count), "story", "stories"),
            ),
            _heaviest(row),
        )
        for at, (count, *row) in enumerate(interests)
    ]
    return (*steps, ReportStep(WORDS("step_together"), _heaviest(weights)))


def _heaviest(weights: Sequence[float]) -> tuple[tuple[int, float], ...]:
    order = sorted(range(len(weights)), key=lambda group: -weights[group])
    return tuple((group, weights[group]) for group in order[:GROUPS_SHOWN])
