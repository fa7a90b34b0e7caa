"""Training samples of MIND's readers: clicks with the articles shown in the same list, and the ends of histories.

This is the design study's recipe, reconstructed from its counts: 16,537 samples of 3,805 readers on the subset.
- every click of a train impression with a history and a skipped candidate: 1,573 samples of 1,252 readers; negatives
are the candidates skipped in that impression;
- the last k clicks of a reader's history, each after the clicks before it: k = min(5, len // 3), for histories of 6 and
more: 14,964 samples of 3,547 readers; negatives are drawn by their popularity in histories, so that popularity alone
can't identify a positive.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.mind import Impressions, RaggedArray
from models.shapes import CLICKS

LEAST_HISTORY = 6
LEFT_OUT_MOST = 5
LEFT_OUT_SHARE = 3
"""One click in this many is left out."""


@dataclass(frozen=True)
class TrainingSamples:
    """n samples of `readers` readers, over a catalogue of `news` articles.

    Args:
        reader: [n], from 0, rising; samples of one reader are neighbours.
        clicks: [n, 50] rows of the catalogue, newest last; padding is `news`, one past the last row.
        positive: [n].
        shown: the candidates skipped beside the positive; empty for samples from histories.
        read: for each reader, every article known to be clicked: never a negative.
        popular: the clicks of all histories, from which popularity-matched negatives are drawn.
        names: the readers' ids in the file; empty for samples that come from elsewhere.
    """

    reader: NDArray[np.int64]
    clicks: NDArray[np.int64]
    positive: NDArray[np.int64]
    shown: RaggedArray
    read: tuple[frozenset[int], ...]
    popular: NDArray[np.int64]
    news: int
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.reader)

    @property
    def readers(self) -> int:
        return len(self.read)

    def of_reader(self, reader: int) -> NDArray[np.int64]:
        first, after = np.searchsorted(self.reader, (reader, reader + 1))
        return np.arange(first, after)

    def candidates(self, rows: NDArray[np.int64], negatives: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return rows of the catalogue, positive first: [b, 1 + K].

        Negatives are drawn with replacement; another draw gives other negatives.
        """
        drawn = np.empty((len(rows), 1 + negatives), dtype=np.int64)
        for place, row in enumerate(rows):
            drawn[place, 0] = self.positive[row]
            skipped = self.shown[int(row)]
            drawn[place, 1:] = _any_of(skipped, negatives, rng) if len(skipped) else self._popular(row, negatives, rng)
        return drawn

    def _popular(self, row: np.int64, negatives: int, rng: np.random.Generator) -> list[int]:
        read = self.read[int(self.reader[row])]
        found: list[int] = []
        while len(found) < negatives:
            drawn = self.popular[rng.integers(len(self.popular), size=2 * negatives)]
            found += [int(each) for each in drawn if int(each) not in read]
        return found[:negatives]


def training_samples(train: Impressions, news: int) -> TrainingSamples:
    """Return samples of every reader of the train split, readers in the order of the file.

    Raises ValueError if there are none, or if some reader has read every article that negatives are drawn from.
    """
    histories = train.longest_histories()
    popular = np.concatenate([*histories.values(), np.zeros(0, np.int64)])
    found: dict[str, list[tuple[NDArray[np.int64], int, NDArray[np.int64]]]] = {user: [] for user in histories}
    read: dict[str, set[int]] = {user: set(history.tolist()) for user, history in histories.items()}
    nothing = np.zeros(0, np.int64)
    for row, user in enumerate(train.users):
        history, shown = train.histories[row], train.candidates[row]
        labels = train.clicked[train.candidates.offsets[row] : train.candidates.offsets[row + 1]]
        clicked, skipped = shown[labels == 1], shown[labels == 0]
        read[user].update(clicked.tolist())
        if len(history) and len(skipped):
            found[user] += [(history, int(news_row), skipped) for news_row in clicked]
    for user, history in histories.items():
        for place in range(len(history) - left_out(len(history)), len(history)):
            found[user].append((history[:place], int(history[place]), nothing))
    kept = {user: samples for user, samples in found.items() if samples}
    if not kept:
        raise ValueError("train: no click has an earlier click as its history")
    everything = set(popular.tolist())
    for user, samples in kept.items():
        if everything <= read[user] and not all(len(skipped) for _, _, skipped in samples):
            raise ValueError(f"train: reader {user} has read every article that negatives are drawn from")
    flat = [sample for samples in kept.values() for sample in samples]
    return TrainingSamples(
        reader=np.repeat(np.arange(len(kept)), [len(samples) for samples in kept.values()]),
        clicks=RaggedArray.of([history for history, _, _ in flat]).last(CLICKS, padding=news),
        positive=np.array([positive for _, positive, _ in flat], dtype=np.int64),
        shown=RaggedArray.of([skipped for _, _, skipped in flat]),
        read=tuple(frozenset(read[user]) for user in kept),
        popular=popular,
        news=news,
        names=tuple(kept),
    )


def _any_of(rows: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rows[rng.integers(len(rows), size=count)]


def left_out(length: int) -> int:
    """Return how many clicks at the end of a history of this length become positives."""
    return min(LEFT_OUT_MOST, length // LEFT_OUT_SHARE) if length >= LEAST_HISTORY else 0
