"""How interests may be reported, mode by mode, in the words of the privacy page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from device_app.privacy.modes import MODES
from device_app.privacy.modes.by_codebook import affordable
from device_app.privacy.modes.mode import Mechanism, PublicVectors, ReportMode
from device_app.privacy.reports import reporter_of
from device_app.prose import Prose
from device_app.recall_frontier import SLACK, USUAL_PLACES, packaged_frontier
from device_app.settings import PrivacySettings
from device_app.wire.releases import RecallProtocol

WORDS = Prose("device_app.view_models", "words.toml")
PROMISE_UP_TO = 10.0
"""An epsilon beyond which a report's bound is called no promise."""


@dataclass(frozen=True)
class MechanismFacts:
    """The mechanism in use under the current release.

    costs are (what, epsilon), from a part to the whole report; epsilon_per_report is the last. truth is the chance that
    what is sent is true, where that makes sense; uncovered names what no figure covers.
    """

    name: str
    sentence: str
    costs: tuple[tuple[str, float], ...]
    epsilon_per_report: float
    truth: float | None
    uncovered: str

    @property
    def is_promise(self) -> bool:
        """Whether the bound of a report is worth the name."""
        return self.epsilon_per_report <= PROMISE_UP_TO


@dataclass(frozen=True)
class ModeFacts:
    """One choice: cost is what it takes, in epsilon or in bytes, and worth what it brings in a pool of this size, where
    that was measured; unusable says why the release can't serve it."""

    name: str
    title: str
    paragraph: str
    cost: str
    recommended: bool
    unusable: str | None
    for_comparison: bool = False
    worth: str = ""


@dataclass(frozen=True)
class PoolFacts:
    """The copy of the pool on this device."""

    news: int
    pulled_bytes: int


def mechanism_facts(settings: PrivacySettings, protocol: RecallProtocol | None) -> MechanismFacts | None:
    """The mechanism of the reader's mode under a release; None where nothing is reported."""
    mechanism = None if protocol is None else _mechanism(settings, protocol)
    if mechanism is None or protocol is None:
        return None
    return MechanismFacts(
        name=settings.mode,
        sentence=mechanism.words(),
        costs=_costs(mechanism, protocol),
        epsilon_per_report=mechanism.epsilon_per_report,
        truth=getattr(mechanism, "truth", None),
        uncovered=MODES[settings.mode].uncovered,
    )


def mode_facts(
    settings: PrivacySettings, protocol: RecallProtocol | None, pool: PoolFacts | None, news: int | None = None
) -> tuple[ModeFacts, ...]:
    """Every mode, those for readers first. news: of the pool, as the release says."""
    book = None if protocol is None else affordable(protocol, settings.epsilon_per_report)
    return tuple(
        ModeFacts(
            name=mode.name,
            title=mode.title,
            paragraph=mode.paragraph(book),
            cost=_cost(mode, settings, protocol, pool, news),
            worth=_worth(mode, settings, protocol, news),
            recommended=mode.stricter_up_to is not None and pool is not None and pool.news <= mode.stricter_up_to,
            unusable=None if protocol is None else _unusable(mode, settings, protocol),
            for_comparison=mode.for_comparison,
        )
        for mode in sorted(MODES.values(), key=lambda mode: mode.for_comparison)
    )


def _mechanism(settings: PrivacySettings, protocol: RecallProtocol) -> Mechanism | None:
    """The mechanism alone: prototypes are not needed to say what a report costs."""
    blank = np.empty((8, 0), dtype=np.float32)
    spaces = PublicVectors({book.size: blank for book in protocol.codebooks}, blank)
    reporter = reporter_of(settings, protocol, spaces)
    return reporter.mechanism if reporter else None


def _costs(mechanism: Mechanism, protocol: RecallProtocol) -> tuple[tuple[str, float], ...]:
    whole = (WORDS("whole_report"), mechanism.epsilon_per_report)
    parts = []
    for name, words in (
        ("epsilon_per_score", WORDS("one_score")),
        ("epsilon_per_channel", WORDS("one_channel", scores=protocol.basis_size)),
    ):
        if (value := getattr(mechanism, name, None)) is not None:
            parts.append((words, float(value)))
    return (*parts, whole)


def _unusable(mode: ReportMode, settings: PrivacySettings, protocol: RecallProtocol) -> str | None:
    if mode.finds == "nobody":
        return None
    if mode.finds == "here":
        return None if protocol.pool_codes else WORDS("no_pool_codes")
    if _mechanism(settings.model_copy(update={"mode": mode.name}), protocol) is not None:
        return None
    return WORDS("nothing_within", limit=settings.epsilon_per_report)


def _cost(
    mode: ReportMode,
    settings: PrivacySettings,
    protocol: RecallProtocol | None,
    pool: PoolFacts | None,
    news: int | None,
) -> str:
    if mode.chooses is not None:
        choice = None if protocol is None else settings.model_copy(update={"mode": mode.name}).choice(news, protocol)
        if choice is None:
            return WORDS("chooses_nothing_yet")
        told = {"places": choice.places, "megabytes": choice.weight / 1e6, "epsilon": choice.epsilon}
        return WORDS("chooses", news=choice.news, what=WORDS.table("chosen")[choice.mode].format(**told))
    if mode.finds == "nobody":
        return WORDS("costs_nothing")
    if mode.finds == "here":
        if pool is None:
            return WORDS("costs_no_pool")
        return WORDS("costs_pool", pulled_mb=pool.pulled_bytes / 1e6, news=pool.news)
    mechanism = None if protocol is None else _mechanism(settings.model_copy(update={"mode": mode.name}), protocol)
    return "" if mechanism is None else WORDS("costs_report", epsilon=mechanism.epsilon_per_report)


def _worth(mode: ReportMode, settings: PrivacySettings, protocol: RecallProtocol | None, news: int | None) -> str:
    """What the mode was measured to bring in a pool of this size; nothing where the size isn't told."""
    if protocol is None or news is None:
        return ""
    if mode.chooses is not None:
        choice = settings.model_copy(update={"mode": mode.name}).choice(news, protocol)
        return "" if choice is None else WORDS("choice_worth", found=choice.found, silent=choice.silent)
    book = affordable(protocol, settings.epsilon_per_report)
    return "" if book is None else report_worth(mode.name, book.size, book.epsilon, news)


def report_worth(mode: str, codebook: int, epsilon: float, news: int) -> str:
    """What was measured of reports by one of K codes in a pool of so many news; nothing where it wasn't."""
    frontier = packaged_frontier()
    gains = frontier.gain(mode, codebook, epsilon, news)
    if gains is None or news == 0:
        return ""
    if news <= USUAL_PLACES:
        return WORDS("report_unneeded", places=USUAL_PLACES, news=news)
    gain, places, longer = gains
    low, high = frontier.around(news)
    if low < high:
        where = WORDS("report_between", low=low, high=high, news=news)
    elif low == news:
        where = WORDS("report_measured", measured=low)
    else:
        where = WORDS("report_measured_elsewhere", measured=low, news=news)
    if gain < SLACK:
        return WORDS("report_adds_nothing", where=where, places=places, longer=longer)
    return WORDS("report_worth", where=where, gain=gain, places=places, longer=longer)
