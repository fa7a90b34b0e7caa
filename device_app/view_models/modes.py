"""View models of the report modes: what each does, costs and gains."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from device_app.privacy.reporter import Mechanism
from device_app.reports.modes import MODES, ReportMode
from device_app.reports.policy import choice_of, reporter_of
from device_app.reports.reporters import PublicVectors, affordable
from device_app.settings import PrivacySettings
from protocol.recall_frontier import SLACK, USUAL_PLACES, packaged_frontier
from protocol.releases import RecallProtocol
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("device_app.view_models", "words.toml")
PROMISE_UP_TO = 10.0
"""An epsilon above this is not presented as a promise."""
GAIN_SHOWN = 0.5
"""A gain below this is shown as none."""


@dataclass(frozen=True)
class MechanismFacts:
    """The mechanism used under the current release.

    costs are (what, epsilon), from a part to the whole report; epsilon_per_report is the last. truth is the probability
    that the sent value is true, if that applies. uncovered names what epsilon does not cover.
    """

    name: str
    sentence: str
    costs: tuple[tuple[str, float], ...]
    epsilon_per_report: float
    truth: float | None
    uncovered: str

    @property
    def is_promise(self) -> bool:
        """Whether the report's epsilon is small enough to be a meaningful protection."""
        return self.epsilon_per_report <= PROMISE_UP_TO


@dataclass(frozen=True)
class ModeFacts:
    """One choice in the settings.

    cost: in epsilon or bytes. worth: its measured benefit in a pool of this size; in_short: the same in one plain
    sentence. Both are empty if it wasn't measured. unusable: why the release can't support it.
    """

    name: str
    title: str
    paragraph: str
    cost: str
    recommended: bool
    unusable: str | None
    for_comparison: bool = False
    worth: str = ""
    in_short: str = ""


@dataclass(frozen=True)
class PoolFacts:
    """The copy of the pool on this device."""

    news: int
    pulled_bytes: int


def mechanism_facts(settings: PrivacySettings, protocol: RecallProtocol | None) -> MechanismFacts | None:
    """Return the mechanism of the reader's mode under a release; None if nothing is reported."""
    mechanism = None if protocol is None else _mechanism(settings, protocol)
    if mechanism is None or protocol is None:
        return None
    label = MODES[settings.mode].label
    return MechanismFacts(
        name=settings.mode,
        sentence=label.sent(mechanism),
        costs=_costs(mechanism, protocol),
        epsilon_per_report=mechanism.epsilon_per_report,
        truth=getattr(mechanism, "truth", None),
        uncovered=label.uncovered,
    )


def mode_facts(
    settings: PrivacySettings, protocol: RecallProtocol | None, pool: PoolFacts | None, news: int | None = None
) -> tuple[ModeFacts, ...]:
    """Return every mode; those for comparison only come last.

    news: size of the pool according to the release.
    """
    return tuple(
        ModeFacts(
            name=mode.name,
            title=mode.label.title,
            paragraph=mode.label.paragraph(_mechanism_in(mode, settings, protocol)),
            cost=_cost(mode, settings, protocol, pool, news),
            worth=_worth(mode, settings, protocol, news, measured_worth),
            in_short=_worth(mode, settings, protocol, news, report_worth),
            recommended=(limit := mode.label.stricter_up_to) is not None and pool is not None and pool.news <= limit,
            unusable=None if protocol is None else _unusable(mode, settings, protocol),
            for_comparison=mode.label.for_comparison,
        )
        for mode in sorted(MODES.values(), key=lambda mode: mode.label.for_comparison)
    )


def _mechanism_in(mode: ReportMode, settings: PrivacySettings, protocol: RecallProtocol | None) -> Mechanism | None:
    return None if protocol is None else _mechanism(settings.model_copy(update={"mode": mode.name}), protocol)


def _mechanism(settings: PrivacySettings, protocol: RecallProtocol) -> Mechanism | None:
    """Return the mechanism alone: computing a report's cost needs no prototypes."""
    blank = np.empty((8, 0), dtype=np.float32)
    spaces = PublicVectors({book.size: blank for book in protocol.codebooks})
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
    if _mechanism_in(mode, settings, protocol) is not None:
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
        choice = (
            None if protocol is None else choice_of(settings.model_copy(update={"mode": mode.name}), news, protocol)
        )
        if choice is None:
            return WORDS("chooses_nothing_yet")
        figures = {"places": choice.places, "megabytes": choice.weight / 1e6, "epsilon": choice.epsilon}
        return WORDS("chooses", news=choice.news, what=WORDS.table("chosen")[choice.mode].format(**figures))
    if mode.finds == "nobody":
        return WORDS("costs_nothing")
    if mode.finds == "here":
        if pool is None:
            return WORDS("costs_no_pool")
        return WORDS("costs_pool", pulled_mb=pool.pulled_bytes / 1e6, news=pool.news)
    mechanism = _mechanism_in(mode, settings, protocol)
    return "" if mechanism is None else WORDS("costs_report", epsilon=mechanism.epsilon_per_report)


def _worth(
    mode: ReportMode,
    settings: PrivacySettings,
    protocol: RecallProtocol | None,
    news: int | None,
    describe: Callable[[str, int, float, int], str],
) -> str:
    """Return the mode's measured benefit in a pool of this size; empty if the size is unknown."""
    if protocol is None or news is None:
        return ""
    if mode.chooses is not None:
        choice = choice_of(settings.model_copy(update={"mode": mode.name}), news, protocol)
        return "" if choice is None else WORDS("choice_worth", found=choice.found, silent=choice.silent)
    book = affordable(protocol, settings.epsilon_per_report)
    return "" if book is None else describe(mode.name, book.size, book.epsilon, news)


def report_worth(mode: str, codebook: int, epsilon: float, news: int) -> str:
    """Return the benefit of a report of one of K codes in plain words; empty if unmeasured.

    news: number of articles in the pool.
    """
    gains = packaged_frontier().gain(mode, codebook, epsilon, news)
    if gains is None or news == 0:
        return ""
    if news <= USUAL_PLACES:
        return WORDS("report_unneeded", places=USUAL_PLACES, news=news)
    return WORDS("worth", gain=gains[0]) if gains[0] >= GAIN_SHOWN else WORDS("worth_none")


def measured_worth(mode: str, codebook: int, epsilon: float, news: int) -> str:
    """Return the same with the measured figures and the sizes of the measured pools."""
    frontier = packaged_frontier()
    gains = frontier.gain(mode, codebook, epsilon, news)
    if gains is None or news <= USUAL_PLACES:
        return report_worth(mode, codebook, epsilon, news)
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
