"""View model of the status on every page: protection, budget, connection, release, alerts."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from device_app.alerts import LoopAlert, LoopAlerts
from device_app.errors import ReleaseForked, ReleaseRefused
from device_app.feed.serving import Serving
from device_app.privacy.accounting.ledger import ROUNDING, Ledger
from device_app.reports.policy import ReportPolicy
from device_app.settings import DeviceSettings
from device_app.store.preferences import CHOSEN_SECTIONS
from device_app.stores import DeviceStores
from device_app.syncing import Syncing
from device_app.view_models.modes import mechanism_facts
from protocol.formatting import plural
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("device_app.view_models", "words.toml")

ReportStatus = Literal["green", "weak", "amber", "red"]


@dataclass(frozen=True)
class StatusView:
    """The status of this device shown at the top of every page.

    shield: green with budget for another report (or with reports off), weak if a report's cost is too high to protect
    the reader, amber without budget, red if a release was refused. It covers reports only; training says whether this
    device takes part in rounds. release is the one in use. online is None until a sync has succeeded or found the
    server unreachable. own_feeds: the server is this reader's own. as_published: the paper whose system this device was
    started to run, by its name in the settings.
    """

    profile: str
    mode: str
    shield: ReportStatus
    shield_words: str
    spent_today: float
    per_day: float
    release: str | None
    feed_made_at: datetime | None
    online: bool | None
    clicks: int
    chosen_sections: tuple[str, ...] | None
    training: bool
    alerts: tuple[LoopAlert, ...]
    own_feeds: bool = False
    as_published: str | None = None


def status_view(
    settings: DeviceSettings,
    stores: DeviceStores,
    policy: ReportPolicy,
    ledger: Ledger,
    serving: Serving,
    syncing: Syncing,
    alerts: LoopAlerts,
    *,
    lost: bool,
) -> StatusView:
    """Return the status; reads a few counts, so it is cheap enough for every page.

    lost: whether the server can't be connected to.
    """
    last = serving.last()
    chosen = stores.preferences.get(CHOSEN_SECTIONS)
    shield, words = _shield(policy, ledger, serving, alerts)
    kept_default_list = stores.default_list.current()
    models = serving.loaded()
    return StatusView(
        profile=settings.profile,
        mode=policy.settings.mode,
        shield=shield,
        shield_words=words,
        spent_today=ledger.spent_today("reports"),
        per_day=ledger.per_day("reports"),
        release=models.release if models else kept_default_list.release if kept_default_list else None,
        feed_made_at=last.made_at if last else None,
        online=False if lost or syncing.online is False else serving.online() and syncing.online,
        clicks=stores.clicks.count(),
        chosen_sections=None if chosen is None else tuple(chosen),
        training=policy.own.training,
        alerts=alerts.now(),
        own_feeds=settings.own_feeds,
        as_published=settings.as_published,
    )


def _shield(policy: ReportPolicy, ledger: Ledger, serving: Serving, alerts: LoopAlerts) -> tuple[ReportStatus, str]:
    if alerts.any(ReleaseForked):
        return "red", WORDS("forked")
    if alerts.any(ReleaseRefused):
        return "red", WORDS("refused")
    settings = policy.settings
    if settings.mode == "none":
        return "green", WORDS("reports_off")
    if settings.mode == "broadcast":
        return "green", WORDS("found_here")
    left, models = ledger.left("reports"), serving.loaded()
    if models is None:
        return "green", WORDS("nothing_sent")
    facts = mechanism_facts(settings, models.manifest.recall)
    if facts is None:
        return "amber", WORDS("no_way")
    cost = facts.epsilon_per_report
    if left < cost * (1 - ROUNDING):
        whole = ledger.lifetime("reports")
        if whole is not None and ledger.total("reports") + cost > whole * (1 + ROUNDING):
            return "amber", WORDS("spent_for_good")
        return "amber", WORDS("spent_today")
    more = int(left * (1 + ROUNDING) / cost)
    if not facts.is_promise:
        return "weak", WORDS("no_promise", price=cost, reports=plural(more, "report"))
    return "green", WORDS("may_leave", reports=plural(more, "report"))
