"""The warm protocol: readers with 6 clicks or more, their last clicks held out.

A fifth of the readers is tested (seed 7). Everything that can be chosen is chosen on a validation split, a fifth of the
training readers, apart from the tested ones; then all training readers are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    """Readers to be recalled for: up to 50 clicks each, oldest first, and the distinct later clicks not among them."""

    histories: tuple[Rows, ...]
    targets: tuple[Rows, ...]

    def __len__(self) -> int:
        return len(self.histories)


@dataclass(frozen=True)
class WarmSplit:
    """clicks of the training readers, whole, and the readers held out for measuring."""

    train: tuple[Rows, ...]
    measured: HeldOut
    news: int

    def recent_clicks(self) -> NDArray[np.int64]:
        """The popularity to beat: each news' clicks among the training readers' last 3, [n]."""
        return np.bincount(np.concatenate([clicks[-RECENT_CLICKS:] for clicks in self.train]), minlength=self.news)

    def all_clicks(self) -> NDArray[np.int64]:
        """Each news' clicks by the training readers, [n]: what an attacker knows of histories."""
        return np.bincount(np.concatenate(self.train), minlength=self.news)


def held_out(readers: Sequence[Rows]) -> HeldOut:
    """The last min(3, n - 5) clicks are held out; repeats of the history are no targets, nor readers without any."""
    kept = []
    for clicks in readers:
        cut = len(clicks) - min(HELD_OUT_MOST, len(clicks) - KEPT_LEAST)
        history = clicks[:cut][-CLICKS_MOST:]
        targets = np.setdiff1d(clicks[cut:], history)
        if len(targets):
            kept.append((history, targets))
    return HeldOut(tuple(history for history, _ in kept), tuple(targets for _, targets in kept))


def splits(readers: Sequence[Rows], news: int) -> tuple[WarmSplit, WarmSplit]:
    """For validation and for the test. readers: clicks of each, oldest first; those with too few are left out."""
    enough = [clicks for clicks in readers if len(clicks) >= LEAST_CLICKS]
    train, tested = _cut(enough, TEST_SHARE, SEED)
    inner, validated = _cut(train, VALIDATION_SHARE, VALIDATION_SEED)
    return WarmSplit(tuple(inner), held_out(validated), news), WarmSplit(tuple(train), held_out(tested), news)


def _cut(readers: Sequence[Rows], share: float, seed: int) -> tuple[list[Rows], list[Rows]]:
    order = np.random.default_rng(seed).permutation(len(readers))
    cut = int(len(readers) * share)
    return [readers[at] for at in order[cut:]], [readers[at] for at in order[:cut]]
