"""The warm protocol for recall: readers with 6 clicks or more, whose last clicks are held out.

A fifth of the readers is tested (seed 7). All choices are made on a validation split, a fifth of the training readers;
then all training readers are used.

Measured is Recall@K of the readers' lists, in expectation over their randomised reports, with bootstrap intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.measurements.frontier import PairedGain

Rows = NDArray[np.int64]

LEAST_CLICKS = 6
CLICKS_MOST = 50
HELD_OUT_MOST = 3
KEPT_LEAST = 5
RECENT_CLICKS = 3
TEST_SHARE = 0.2
VALIDATION_SHARE = 0.2
SEED = 7
VALIDATION_SEED = 8


@dataclass(frozen=True)
class HeldOut:
    """Readers to recall for: up to 50 clicks each, oldest first, and the distinct later clicks not among them."""

    histories: tuple[Rows, ...]
    targets: tuple[Rows, ...]

    def __len__(self) -> int:
        return len(self.histories)


@dataclass(frozen=True)
class WarmSplit:
    """The training readers' complete clicks, and the readers held out for measuring."""

    train: tuple[Rows, ...]
    measured: HeldOut
    news: int

    def recent_clicks(self) -> NDArray[np.int64]:
        """Return each article's clicks among the training readers' last 3, [n]: the popularity to beat."""
        return np.bincount(np.concatenate([clicks[-RECENT_CLICKS:] for clicks in self.train]), minlength=self.news)

    def all_clicks(self) -> NDArray[np.int64]:
        """Return each article's clicks by the training readers, [n]: what an attacker knows about histories."""
        return np.bincount(np.concatenate(self.train), minlength=self.news)


def held_out(readers: Sequence[Rows]) -> HeldOut:
    """Hold out the last min(3, n - 5) clicks.

    Clicks repeated from the history are no targets; readers without targets are left out.
    """
    kept = []
    for clicks in readers:
        cut = len(clicks) - min(HELD_OUT_MOST, len(clicks) - KEPT_LEAST)
        history = clicks[:cut][-CLICKS_MOST:]
        targets = np.setdiff1d(clicks[cut:], history)
        if len(targets):
            kept.append((history, targets))
    return HeldOut(tuple(history for history, _ in kept), tuple(targets for _, targets in kept))


def splits(readers: Sequence[Rows], news: int) -> tuple[WarmSplit, WarmSplit]:
    """Return the splits for validation and for the test.

    readers: clicks of each, oldest first; readers with too few are left out.
    """
    enough = [clicks for clicks in readers if len(clicks) >= LEAST_CLICKS]
    train, tested = _cut(enough, TEST_SHARE, SEED)
    inner, validated = _cut(train, VALIDATION_SHARE, VALIDATION_SEED)
    return WarmSplit(tuple(inner), held_out(validated), news), WarmSplit(tuple(train), held_out(tested), news)


def _cut(readers: Sequence[Rows], share: float, seed: int) -> tuple[list[Rows], list[Rows]]:
    order = np.random.default_rng(seed).permutation(len(readers))
    cut = int(len(readers) * share)
    return [readers[at] for at in order[cut:]], [readers[at] for at in order[:cut]]


Floats = NDArray[np.float64]

DEPTHS = (50, 100, 200, 400)
DEPTH = max(DEPTHS)
DRAWS = 2_000
INTERVAL = (2.5, 97.5)


@dataclass(frozen=True)
class PossibleLists:
    """The lists that each of u readers may get, with probabilities.

    lists [l, depth] are rows of articles, best first; choice [u, m] refers to lists; chance [u, m] sums to 1 for each
    reader.
    """

    lists: Rows
    choice: Rows
    chance: Floats

    @classmethod
    def own(cls, lists: Rows) -> PossibleLists:
        """Give every reader their own list."""
        count = len(lists)
        return cls(lists, np.arange(count)[:, None], np.ones((count, 1)))

    @classmethod
    def common(cls, order: Rows, readers: int) -> PossibleLists:
        """Give every reader the same list."""
        return cls(order[None, :], np.zeros((readers, 1), dtype=np.int64), np.ones((readers, 1)))

    @classmethod
    def either(cls, parts: Sequence[PossibleLists]) -> PossibleLists:
        """Return one of several equally likely lists: draws of a mechanism, or seeds of a codebook."""
        starts = np.cumsum([0, *(len(part.lists) for part in parts)])
        return cls(
            np.concatenate([part.lists for part in parts]),
            np.concatenate([part.choice + start for part, start in zip(parts, starts[:-1], strict=True)], axis=1),
            np.concatenate([part.chance for part in parts], axis=1) / len(parts),
        )


def recall(answers: PossibleLists, targets: Sequence[Rows], news: int, depths: Sequence[int] = DEPTHS) -> Floats:
    """Return the expected R@K of each reader, [u, depths]."""
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
    """Return rows of the highest scores [l, n], best first; ties go to the lower row: [l, depth]."""
    lists = np.empty((len(scores), depth), dtype=np.int64)
    for row, line in enumerate(scores):
        least = np.partition(line, -depth)[-depth]
        pick = np.flatnonzero(line >= least)  # ascending; more than `depth` where scores tie
        lists[row] = pick[np.argsort(-line[pick], kind="stable")][:depth]
    return lists


def paired(found: Floats, reference: Floats) -> list[PairedGain]:
    """Return 100 (found - reference) by column, both [u, c], with percentile intervals of a bootstrap over readers."""
    gains = 100 * (found - reference)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(len(gains), np.full(len(gains), 1 / len(gains)), size=DRAWS)  # [draws, u]
    means = counts @ gains / len(gains)
    low, high = np.percentile(means, INTERVAL, axis=0)
    return [PairedGain(*map(float, each)) for each in zip(gains.mean(axis=0), low, high, strict=True)]


def final_page(answers: PossibleLists, ranking: NDArray[np.floating], size: int) -> PossibleLists:
    """Return the lists after each reader's device ranked them by its own scores, `ranking` [u, n]."""
    lists = []
    for reader, names in enumerate(answers.choice):
        mine = answers.lists[names]  # [m, depth]
        order = np.argsort(-ranking[reader][mine], axis=1, kind="stable")[:, :size]
        lists.append(np.take_along_axis(mine, order, axis=1))
    m = answers.choice.shape[1]
    return PossibleLists(np.concatenate(lists), np.arange(len(lists) * m).reshape(len(lists), m), answers.chance)


def changed(pages: PossibleLists, reference: PossibleLists) -> float:
    """Return the expected share of a reader's page that isn't on the page of `reference`.

    `reference` has one list for each reader.
    """
    shares = []
    for reader, names in enumerate(pages.choice):
        known = reference.lists[reference.choice[reader, 0]]
        shares.append(pages.chance[reader] @ (~np.isin(pages.lists[names], known)).mean(axis=1))
    return float(np.mean(shares))
