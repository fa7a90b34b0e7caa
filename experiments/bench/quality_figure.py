"""Differences between releases evaluated by the same readers, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend.measurements.curves import Curve, Point
from experiments.bench.heldout_readers import Floats, Marks

DRAWS = 2_000
INTERVAL = (2.5, 97.5)


@dataclass(frozen=True)
class MeasuredRelease:
    """A release, and the number of rounds before it."""

    rounds: int
    release: str
    marks: Marks


MEASURES = {
    "auc": "AUC of the small ranker",
    "ranked": "R@100 of the answer, ranked on the device",
    "answered": "R@100 in the server's order",
}


def curves(measured: Sequence[MeasuredRelease]) -> tuple[Curve, ...]:
    """One curve for each measure: each release against the first, paired by reader."""
    found = []
    for name, words in MEASURES.items():
        first: Floats = getattr(measured[0].marks, name)
        points = []
        for each in measured:
            mine: Floats = getattr(each.marks, name)
            low, high = gain_interval(mine - first)
            points.append(
                Point(
                    rounds=each.rounds,
                    release=each.release,
                    value=float(mine.mean()),
                    gain=float((mine - first).mean()),
                    low=low,
                    high=high,
                )
            )
        found.append(Curve(name=words, points=tuple(points)))
    return tuple(found)


def gain_interval(gains: Floats) -> tuple[float, float]:
    """The 95 % percentile interval of the mean gain, from a bootstrap over readers."""
    dice = np.random.default_rng(0)
    counts = dice.multinomial(len(gains), np.full(len(gains), 1 / len(gains)), size=DRAWS)
    low, high = np.percentile(counts @ gains / len(gains), INTERVAL)
    return float(low), float(high)
