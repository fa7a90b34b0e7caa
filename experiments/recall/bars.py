"""The bars that the frontier must clear, each with what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backend.measurements.frontier import Frontier, FrontierRow, PairedGain
from experiments.recall.frontier import BASIS
from experiments.recall.measure import DEPTHS
from experiments.recall.sweeps import sweeps

AT_100, AT_400 = DEPTHS.index(100), DEPTHS.index(400)
SLACK = 0.5
"""Points by which a mode may fall below popularity, or below itself at a smaller epsilon."""


@dataclass(frozen=True)
class Bar:
    """What was asked, what was wanted, what came out."""

    what: str
    wanted: str
    measured: str
    met: bool


def bars(frontier: Frontier) -> list[Bar]:
    """All of them, in the issue's order."""
    return [*_gains(frontier), *_floors(frontier), *_attacks(frontier)]


def _gains(frontier: Frontier) -> Iterator[Bar]:
    exact = frontier.row("exact vector", math.inf)
    default, high = frontier.row("code K=16", 4.0), frontier.row("code K=64", 8.0)
    yield _at_least("exact vector, R@400 over popularity", exact.gain[AT_400], 4.0)
    yield _at_least("code K=16 epsilon 4, R@400 over popularity", default.gain[AT_400], 1.0)
    share = 100 * default.found[AT_400] / exact.found[AT_400]
    yield Bar("code K=16 epsilon 4, R@400 of exact's", ">= 94 %", f"{share:.1f} %", share >= 94)
    yield _at_least("code K=16 epsilon 4, R@100 over popularity", default.gain[AT_100], 0.0)
    yield _at_least("code K=64 epsilon 8, R@400 over popularity", high.gain[AT_400], 2.4)
    yield _at_least("broadcast 16 B, R@400 over popularity", frontier.row("broadcast 16 B", 0.0).gain[AT_400], 3.5)
    yield _at_least("broadcast 32 B, R@400 over popularity", frontier.row("broadcast 32 B", 0.0).gain[AT_400], 4.5)
    basis = frontier.row(f"channels by {BASIS} topics", math.inf).found[AT_400]
    lost = frontier.row("channels, undecomposed", math.inf).found[AT_400] - basis
    yield Bar("topic-centroid basis, R@400 below undecomposed", "<= 1.5", f"{lost:.1f}", lost <= 1.5)


def _floors(frontier: Frontier) -> Iterator[Bar]:
    shipped = [row for sweep in sweeps() for row in _rows(frontier, sweep.name, sweep.epsilons)]
    lowest = min(shipped, key=lambda row: row.gain[AT_400].mean)
    mean = lowest.gain[AT_400].mean
    named = f"{mean:+.1f} ({lowest.mode}, epsilon {lowest.epsilon:g})"
    yield Bar(
        "the lowest of every mode that reports, as served, R@400", f">= -{SLACK} to popularity", named, mean >= -SLACK
    )
    drops = []
    for sweep in sweeps():
        rows = _rows(frontier, sweep.name, sweep.epsilons)
        drops += [
            (earlier.found[AT_400] - later.found[AT_400], sweep.name)
            for place, earlier in enumerate(rows)
            for later in rows[place + 1 :]
        ]
    drop, mode = max(drops)
    yield Bar(
        "the largest fall as epsilon grows, R@400", f"<= {SLACK}", f"{max(drop, 0.0):.1f} ({mode})", drop <= SLACK
    )


def _attacks(frontier: Frontier) -> Iterator[Bar]:
    known = _attack(frontier.row("popularity (none)", 0.0))
    told = _attack(frontier.row("code K=16", 4.0)) - known
    seen = _attack(frontier.row("exact vector", math.inf)) - known
    yield Bar(
        "attack on code K=16 epsilon 4, history R@400 over knowing what is popular", "<= 6", f"{told:+.1f}", told <= 6
    )
    yield Bar("attack on the exact vector (else the attack is blind)", ">= 15", f"{seen:+.1f}", seen >= 15)


def _attack(row: FrontierRow) -> float:
    if row.attack is None:
        raise ValueError(f"{row.mode}: was not attacked")
    return row.attack[1]


def _rows(frontier: Frontier, mode: str, epsilons: Sequence[float]) -> list[FrontierRow]:
    return [frontier.row(mode, epsilon) for epsilon in epsilons]


def _at_least(what: str, gain: PairedGain, wanted: float) -> Bar:
    measured = f"{gain.mean:+.2f} ({gain.low:+.1f} .. {gain.high:+.1f})"
    return Bar(what, f">= {wanted:+.1f}", measured, gain.mean >= wanted)
