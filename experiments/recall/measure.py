"""Recall@K of the lists that readers get, in expectation over their randomised reports, and bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.measurements.frontier import PairedGain
from experiments.recall.warm import Rows

Floats = NDArray[np.float64]

DEPTHS = (50, 100, 200, 400)
DEPTH = max(DEPTHS)
DRAWS = 2_000
INTERVAL = (2.5, 97.5)


@dataclass(frozen=True)
class PossibleLists:
    """Which list each of u readers gets, and how likely.

    lists [l, depth] are rows of news, best first; choice [u, m] names lists, chance [u, m] adds up to 1 a reader.
    """

    lists: Rows
    choice: Rows
    chance: Floats

    @classmethod
    def own(cls, lists: Rows) -> PossibleLists:
        """Every reader has a list."""
        count = len(lists)
        return cls(lists, np.arange(count)[:, None], np.ones((count, 1)))

    @classmethod
    def common(cls, order: Rows, readers: int) -> PossibleLists:
        """The same list for every reader."""
        return cls(order[None, :], np.zeros((readers, 1), dtype=np.int64), np.ones((readers, 1)))

    @classmethod
    def either(cls, parts: Sequence[PossibleLists]) -> PossibleLists:
        """One of several, each as likely: draws of a mechanism, or seeds of a codebook."""
        starts = np.cumsum([0, *(len(part.lists) for part in parts)])
        return cls(
            np.concatenate([part.lists for part in parts]),
            np.concatenate([part.choice + start for part, start in zip(parts, starts[:-1], strict=True)], axis=1),
            np.concatenate([part.chance for part in parts], axis=1) / len(parts),
        )


def recall(answers: PossibleLists, targets: Sequence[Rows], news: int, depths: Sequence[int] = DEPTHS) -> Floats:
    """Expected R@K of each reader, [u, depths]."""
    found = np.empty((len(targets), len(depths)))
    wanted = np.zeros(news, dtype=bool)
    for reader, rows in enumerate(targets):
        wanted[rows] = True
        hits = wanted[answers.lists[answers.choice[reader]]]  # [m, depth]
        wanted[rows] = False
        shares = np.stack([hits[:, :each].sum(axis=1) / len(rows) for each in depths], axis=1)  # [m, depths]
        found[reader] = answers.chance[reader] @ shares
    return found


def best(scores: NDArray[np.floating], depth: int = DEPTH) -> Rows:
    """The rows of the highest scores [l, n], best first, ties to the lower row: [l, depth]."""
    lists = np.empty((len(scores), depth), dtype=np.int64)
    for row, line in enumerate(scores):
        least = np.partition(line, -depth)[-depth]
        pick = np.flatnonzero(line >= least)  # ascending; more than `depth` where scores tie
        lists[row] = pick[np.argsort(-line[pick], kind="stable")][:depth]
    return lists


def paired(found: Floats, reference: Floats) -> list[PairedGain]:
    """100 (found - reference) a column, both [u, c], with percentile intervals of a bootstrap over readers."""
    gains = 100 * (found - reference)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(len(gains), np.full(len(gains), 1 / len(gains)), size=DRAWS)  # [draws, u]
    means = counts @ gains / len(gains)
    low, high = np.percentile(means, INTERVAL, axis=0)
    return [PairedGain(*map(float, each)) for each in zip(gains.mean(axis=0), low, high, strict=True)]


def final_page(answers: PossibleLists, ranking: NDArray[np.floating], size: int) -> PossibleLists:
    """What is left of the lists after each reader's device ranked them: `ranking` [u, n] are its own scores."""
    lists = []
    for reader, names in enumerate(answers.choice):
        mine = answers.lists[names]  # [m, depth]
        order = np.argsort(-ranking[reader][mine], axis=1, kind="stable")[:, :size]
        lists.append(np.take_along_axis(mine, order, axis=1))
    m = answers.choice.shape[1]
    return PossibleLists(np.concatenate(lists), np.arange(len(lists) * m).reshape(len(lists), m), answers.chance)


def changed(pages: PossibleLists, reference: PossibleLists) -> float:
    """The expected share of a reader's page that isn't on the page of `reference`, which has one list a reader."""
    shares = []
    for reader, names in enumerate(pages.choice):
        known = reference.lists[reference.choice[reader, 0]]
        shares.append(pages.chance[reader] @ (~np.isin(pages.lists[names], known)).mean(axis=1))
    return float(np.mean(shares))
