"""How interests may be reported, mode by mode, in the words of the privacy page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from device_app.privacy.mechanisms.code import RandomisedCode
from device_app.privacy.mechanisms.subset import TopicSubset
from device_app.privacy.reporters import Mechanism, Spaces, affordable, reporter_of
from device_app.settings import Mode, PrivacySettings
from device_app.wire.releases import RecallProtocol

STRICTER_UP_TO = 50_000
"""`broadcast` is recommended as the stricter choice for pools of at most so many news (RECALL 7)."""
MAIN: tuple[Mode, ...] = ("code", "broadcast", "none")
COMPARED: tuple[Mode, ...] = ("topics", "subset", "direction", "basis_l1", "basis_laplace")
TITLES: dict[Mode, str] = {
    "code": "One number, sometimes false",
    "broadcast": "Search the pool here",
    "none": "Off entirely",
    "topics": "Blurred topic shares",
    "subset": "A set of topics",
    "direction": "A random direction",
    "basis_l1": "Noisy scores, mended",
    "basis_laplace": "Noisy scores, as the paper has them",
}


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


@dataclass(frozen=True)
class ModeFacts:
    """One choice: cost is what it takes, in epsilon or in bytes; unusable says why the release can't serve it."""

    name: Mode
    title: str
    paragraph: str
    cost: str
    recommended: bool
    unusable: str | None


@dataclass(frozen=True)
class PoolFacts:
    """The copy of the pool on this device."""

    news: int
    pulled_bytes: int


WHEN = "When your reports change, and the address they come from, show all the same."
UNCOVERED: dict[Mode, str] = {
    "basis_laplace": "How many channels you have and how many clicks each holds carries no noise at all. " + WHEN,
}


def mechanism_facts(settings: PrivacySettings, protocol: RecallProtocol | None) -> MechanismFacts | None:
    """The mechanism of the reader's mode under a release; None where nothing is reported."""
    mechanism = None if protocol is None else _law(settings, protocol)
    if mechanism is None or protocol is None:
        return None
    return MechanismFacts(
        name=settings.mode,
        sentence=mechanism.words(),
        costs=_costs(mechanism, protocol),
        epsilon_per_report=mechanism.epsilon_per_report,
        truth=mechanism.truth if isinstance(mechanism, RandomisedCode | TopicSubset) else None,
        uncovered=UNCOVERED.get(settings.mode, WHEN),
    )


def mode_facts(
    settings: PrivacySettings, protocol: RecallProtocol | None, pool: PoolFacts | None
) -> tuple[ModeFacts, ...]:
    """Every mode, those for readers first."""
    stricter = pool is not None and pool.news <= STRICTER_UP_TO
    return tuple(
        ModeFacts(
            name=mode,
            title=TITLES[mode],
            paragraph=_paragraph(mode, settings, protocol),
            cost=_cost(mode, settings, protocol, pool),
            recommended=mode == "broadcast" and stricter,
            unusable=None if protocol is None else _unusable(mode, settings, protocol),
        )
        for mode in (*MAIN, *COMPARED)
    )


def _law(settings: PrivacySettings, protocol: RecallProtocol) -> Mechanism | None:
    """The law alone: prototypes are not needed to say what a report costs."""
    blank = np.empty((8, 0), dtype=np.float32)
    spaces = Spaces({book.size: blank for book in protocol.codebooks}, blank)
    reporter = reporter_of(settings, protocol, spaces)
    return reporter.mechanism if reporter else None


def _costs(mechanism: Mechanism, protocol: RecallProtocol) -> tuple[tuple[str, float], ...]:
    whole = ("Cost of a whole report", mechanism.epsilon_per_report)
    parts = []
    for name, words in (
        ("epsilon_per_score", "Cost of one score"),
        ("epsilon_per_channel", f"Cost of one channel ({protocol.basis_size} scores)"),
    ):
        if (value := getattr(mechanism, name, None)) is not None:
            parts.append((words, float(value)))
    return (*parts, whole)


def _unusable(mode: Mode, settings: PrivacySettings, protocol: RecallProtocol) -> str | None:
    if mode == "none":
        return None
    if mode == "broadcast":
        return None if protocol.pool_codes else "This release has no codes of the pool."
    if _law(settings.model_copy(update={"mode": mode}), protocol) is not None:
        return None
    return f"This release has nothing to report with within {settings.epsilon_per_report:g} epsilon."


def _cost(mode: Mode, settings: PrivacySettings, protocol: RecallProtocol | None, pool: PoolFacts | None) -> str:
    if mode == "none":
        return "0 epsilon, no bytes"
    if mode == "broadcast":
        size = f", {pool.pulled_bytes / 1e6:.1f} MB pulled for {pool.news:,} news" if pool else ""
        return f"0 epsilon{size}"
    mechanism = None if protocol is None else _law(settings.model_copy(update={"mode": mode}), protocol)
    return "" if mechanism is None else f"{mechanism.epsilon_per_report:.3g} epsilon a fresh report"


def _paragraph(mode: Mode, settings: PrivacySettings, protocol: RecallProtocol | None) -> str:
    book = None if protocol is None else affordable(protocol, settings.epsilon_per_report)
    size = book.size if book else 16
    truth = RandomisedCode(book.size, book.epsilon).truth if book else RandomisedCode(16, 4.0).truth
    return {
        "code": f"Of {size} typical readers that come with the release, this device finds the one you are nearest "
        f"to and sends that number: the true one with probability {truth:.2f}, else any other. The "
        "newsroom answers with a list that leans towards it. A number that was sent once is sent again "
        "for nothing. Where we measured it, this gave about a third of what your whole profile could add "
        "to a list of popular news.",
        "broadcast": "This device keeps a compressed copy of the whole pool, the same for everybody, and looks for "
        "your news in it. Nothing about you is reported, and more is found than by a number. It costs "
        "disk and downloads: each day that is new or changed. The text of a story found so is fetched "
        "when you open it, among a hundred neighbours: the newsroom learns that one of them was opened, "
        "not which.",
        "none": "Nothing about you is sent. The feed is ranked here from the list every device gets: popular and "
        "recent news, in your order.",
        "topics": "The shares of your clicks over broad topics, each with noise. At an honest cost the noise covers "
        "them: where we measured it, it took 32 epsilon to match what the one number gives at 4.",
        "subset": "The topic you read most, hidden in a random set of topics. With 16 topics and 4 epsilon the set "
        "has one member, and this is the same as the one number, by topic.",
        "direction": "Your interests squeezed into 8 numbers, of which only a random direction is sent. Nearly as good "
        "as the one number; it is drawn with rounded numbers, so its proof is weaker.",
        "basis_l1": "The paper's scores with its claim made true: a whole channel costs what the paper says of one "
        "score, and no click is counted. So much noise leaves nothing to find news by.",
        "basis_laplace": "Uni-FedRec's report, for reproduction: 30 scores a channel with Laplace noise. The paper "
        "counts one score; the whole report costs 150 times as much, needs a budget of 50 a day, and gained "
        "nothing over popular news where we measured it.",
    }[mode]
