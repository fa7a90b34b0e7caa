"""Who trains, who is judged, and on what: MIND's subset cut for personal models.

No reader of dev is in train, so dev alone would judge cold readers only. The cut:
- training: the ends of the histories of train's readers, clicks from before the first impression;
- validation: train impressions before their last day; hyper-parameters are chosen on these and nothing else;
- test: train impressions of the last day, by readers who train (known) and by others (cold), and all of dev (cold).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.mind import Impressions, Mind
from experiments.datasets.ragged import Ragged
from experiments.datasets.samples import TrainingSamples, left_out, training_samples
from models.shapes import CLICKS


@dataclass(frozen=True)
class Judged:
    """Impressions to rank; readers [m] is a reader's number in the training, or -1 for a cold reader."""

    impressions: Impressions
    readers: NDArray[np.int64]

    @property
    def known(self) -> NDArray[np.bool_]:
        """bool [m]: whether the impression is of a reader who trained."""
        return self.readers >= 0


@dataclass(frozen=True)
class Protocol:
    """The parts. clicks [readers, 50]: each training reader's newest clicks, padding one past the catalogue."""

    samples: TrainingSamples
    clicks: NDArray[np.int64]
    validation: Judged
    test: Judged


def split(mind: Mind) -> Protocol:
    """Cut a dataset. Raises ValueError if nothing is left to train on."""
    news = len(mind.news)
    samples = training_samples(_without_candidates(mind.train), news)
    histories = mind.train.longest_histories()
    numbers = {
        user: place for place, user in enumerate(user for user, each in histories.items() if left_out(len(each)))
    }
    if len(numbers) != samples.readers:
        raise ValueError(f"train: {samples.readers} readers have samples, and {len(numbers)} long histories")
    days = np.array([datetime.fromtimestamp(moment, UTC).toordinal() for moment in mind.train.times_sec])
    last = days == days.max()
    train = _judged(mind.train, numbers)
    test = _joined(_rows(train, last[judgeable(mind.train)]), _judged(mind.dev, numbers))
    clicks = Ragged.of([histories[user] for user in numbers]).last(CLICKS, padding=news)
    return Protocol(samples, clicks, _rows(train, ~last[judgeable(mind.train)]), test)


def rows_of(impressions: Impressions, rows: NDArray[np.int64]) -> Impressions:
    """Some of the impressions, in the order of `rows`."""
    offsets = impressions.candidates.offsets
    labels = [impressions.clicked[offsets[row] : offsets[row + 1]] for row in rows]
    return Impressions(
        tuple(impressions.ids[row] for row in rows),
        tuple(impressions.users[row] for row in rows),
        impressions.times_sec[rows],
        Ragged.of([impressions.histories[int(row)] for row in rows]),
        Ragged.of([impressions.candidates[int(row)] for row in rows]),
        np.concatenate([*labels, np.zeros(0, np.int64)]),
    )


def judgeable(impressions: Impressions) -> NDArray[np.int64]:
    """Impressions with something clicked, something skipped, and a history: without one every ranker is at a loss."""
    offsets = impressions.candidates.offsets
    clicked = np.array([impressions.clicked[start:end].sum() for start, end in pairwise(offsets)])
    fits = (clicked > 0) & (clicked < impressions.candidates.lengths) & (impressions.histories.lengths > 0)
    return np.flatnonzero(fits)


def _judged(impressions: Impressions, numbers: Mapping[str, int]) -> Judged:
    kept = rows_of(impressions, judgeable(impressions))
    return Judged(kept, np.array([numbers.get(user, -1) for user in kept.users], dtype=np.int64))


def _rows(judged: Judged, kept: NDArray[np.bool_]) -> Judged:
    rows = np.flatnonzero(kept)
    return Judged(rows_of(judged.impressions, rows), judged.readers[rows])


def _joined(first: Judged, second: Judged) -> Judged:
    one, two = first.impressions, second.impressions
    both = Impressions(
        one.ids + two.ids,
        one.users + two.users,
        np.concatenate([one.times_sec, two.times_sec]),
        Ragged.of([*one.histories, *two.histories]),
        Ragged.of([*one.candidates, *two.candidates]),
        np.concatenate([one.clicked, two.clicked]),
    )
    return Judged(both, np.concatenate([first.readers, second.readers]))


def _without_candidates(impressions: Impressions) -> Impressions:
    nothing = Ragged.of([[] for _ in range(len(impressions))])
    return Impressions(
        impressions.ids,
        impressions.users,
        impressions.times_sec,
        impressions.histories,
        nothing,
        np.zeros(0, np.int64),
    )
