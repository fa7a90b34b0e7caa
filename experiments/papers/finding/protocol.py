"""Splits MIND's subset for personal models: who trains, and who is tested on which impressions.

No reader of dev is in train, so dev alone would test cold readers only. The split:
- training: the ends of the histories of train's readers, clicks from before the first impression;
- validation: train impressions before their last day, used only to choose hyper-parameters;
- test: train impressions of the last day, by readers who train (known) and by others (cold), and all of dev (cold).

`Replayed` is MIND's readers with shown lists as a population for the live systems; dev's readers, all cold, are its
test set.

`vectors_of` gives a reader's vector by a ranker of any architecture: its scores of the axes of the news space. For a
ranker with one user vector these scores are that vector. For candidate attention they are nearly the mean click times
the metric. A device can compute the vector with its ranker's graph alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from backend.federation.optimizers import Weights
from experiments.bench.replayed_readers import RANKER_MODEL, shown_only, uncounted
from experiments.datasets.mind import Impressions, Mind, RaggedArray
from experiments.datasets.samples import TrainingSamples, left_out, training_samples
from experiments.ranking.evaluation import model_scores
from experiments.ranking.training import Workbench
from experiments.simulation.readers import Library, SimulatedReader
from experiments.simulation.strategies.method import ModelChoice, VectorsAt
from exporters.signature import call
from models.metrics import auc
from models.shapes import CLICKS


@dataclass(frozen=True)
class TestImpressions:
    """Impressions to rank; readers [m] is the reader's number in training, or -1 for a cold reader."""

    impressions: Impressions
    readers: NDArray[np.int64]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Return whether each impression's reader trained, bool [m]."""
        return self.readers >= 0


@dataclass(frozen=True)
class Protocol:
    """The parts of the split.

    clicks [readers, 50]: each training reader's newest clicks, padding one past the catalogue.
    """

    samples: TrainingSamples
    clicks: NDArray[np.int64]
    validation: TestImpressions
    test: TestImpressions

    @property
    def both(self) -> TestImpressions:
        return _joined(self.validation, self.test)


def split(mind: Mind) -> Protocol:
    """Split a dataset. Raises ValueError if no training data is left."""
    news = len(mind.news)
    samples = training_samples(_without_candidates(mind.train), news)
    histories = mind.train.longest_histories()
    numbers = {
        user: place for place, user in enumerate(user for user, each in histories.items() if left_out(len(each)))
    }
    if len(numbers) != samples.readers:
        raise ValueError(f"train: {samples.readers} readers have samples, but {len(numbers)} have long histories")
    days = np.array([datetime.fromtimestamp(moment, UTC).toordinal() for moment in mind.train.times_sec])
    last = days == days.max()
    train = _judged(mind.train, numbers)
    test = _joined(_rows(train, last[judgeable(mind.train)]), _judged(mind.dev, numbers))
    clicks = RaggedArray.of([histories[user] for user in numbers]).last(CLICKS, padding=news)
    return Protocol(samples, clicks, _rows(train, ~last[judgeable(mind.train)]), test)


def rows_of(impressions: Impressions, rows: NDArray[np.int64]) -> Impressions:
    """Return some of the impressions, in the order of `rows`."""
    offsets = impressions.candidates.offsets
    labels = [impressions.clicked[offsets[row] : offsets[row + 1]] for row in rows]
    return Impressions(
        tuple(impressions.ids[row] for row in rows),
        tuple(impressions.users[row] for row in rows),
        impressions.times_sec[rows],
        RaggedArray.of([impressions.histories[int(row)] for row in rows]),
        RaggedArray.of([impressions.candidates[int(row)] for row in rows]),
        np.concatenate([*labels, np.zeros(0, np.int64)]),
    )


def judgeable(impressions: Impressions) -> NDArray[np.int64]:
    """Return the impressions with a click, a skipped article and a history, which every ranker can rank."""
    offsets = impressions.candidates.offsets
    clicked = np.array([impressions.clicked[start:end].sum() for start, end in pairwise(offsets)])
    fits = (clicked > 0) & (clicked < impressions.candidates.lengths) & (impressions.histories.lengths > 0)
    return np.flatnonzero(fits)


def _judged(impressions: Impressions, numbers: Mapping[str, int]) -> TestImpressions:
    kept = rows_of(impressions, judgeable(impressions))
    return TestImpressions(kept, np.array([numbers.get(user, -1) for user in kept.users], dtype=np.int64))


def _rows(judged: TestImpressions, kept: NDArray[np.bool_]) -> TestImpressions:
    rows = np.flatnonzero(kept)
    return TestImpressions(rows_of(judged.impressions, rows), judged.readers[rows])


def _joined(first: TestImpressions, second: TestImpressions) -> TestImpressions:
    one, two = first.impressions, second.impressions
    both = Impressions(
        one.ids + two.ids,
        one.users + two.users,
        np.concatenate([one.times_sec, two.times_sec]),
        RaggedArray.of([*one.histories, *two.histories]),
        RaggedArray.of([*one.candidates, *two.candidates]),
        np.concatenate([one.clicked, two.clicked]),
    )
    return TestImpressions(both, np.concatenate([first.readers, second.readers]))


def _without_candidates(impressions: Impressions) -> Impressions:
    nothing = RaggedArray.of([[] for _ in range(len(impressions))])
    return Impressions(
        impressions.ids,
        impressions.users,
        impressions.times_sec,
        impressions.histories,
        nothing,
        np.zeros(0, np.int64),
    )


Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]


class Replayed:
    """A `Population` of 1,252 readers, as in `ownfeed bench replay`."""

    def __init__(self, mind: Mind, model: nn.Module) -> None:
        bench = Workbench(mind)
        self._samples, self._model = shown_only(bench.samples), model
        self._library = uncounted(bench.library(RANKER_MODEL))
        self._judged = rows_of(mind.dev, judgeable(mind.dev))
        self.news = self._library.vectors[:-1]

    @property
    def readers(self) -> int:
        return self._samples.readers

    def source(self, reader: int) -> SimulatedReader:
        return SimulatedReader(self._samples, reader, self._library)

    def clicks(self, reader: int) -> Vectors:
        """Return the reader's clicks before the last shown list."""
        return self._vectors(self._samples.clicks[self._samples.of_reader(reader)[-1]])

    @cached_property
    def judging(self) -> Sequence[Vectors]:
        """Return the clicks of each of dev's impressions."""
        rows = self._judged.histories.last(CLICKS, padding=self._library.padding)
        return [self._vectors(each) for each in rows]

    def aucs(self, choice: ModelChoice) -> Floats:
        found = np.zeros(len(choice.which))
        for used in np.unique(choice.which):
            mine = np.flatnonzero(choice.which == used)
            part = rows_of(self._judged, mine)
            scores = model_scores(part, self._model, choice.models[int(used)], self._library)
            ends = pairwise(part.candidates.offsets)
            found[mine] = [auc(part.clicked[start:end], scores[start:end]) for start, end in ends]
        return found

    def _vectors(self, rows: NDArray[np.int64]) -> Vectors:
        found: Vectors = self._library.vectors[rows[rows != self._library.padding]]
        return found


CHUNK = 64


def vectors_of(model: nn.Module, library: Library, clicks: NDArray[np.int64]) -> VectorsAt:
    """Return vectors [n, D] of readers with these clicks [n, 50], by these weights; no clicks give zeros."""

    def vectors_at(weights: Weights) -> NDArray[np.float32]:
        values = {name: torch.from_numpy(np.asarray(value, dtype=np.float32)) for name, value in weights.items()}
        axes = torch.eye(library.vectors.shape[1])[None]
        found = []
        with torch.inference_mode():
            for start in range(0, len(clicks), CHUNK):
                rows = clicks[start : start + CHUNK]
                read = torch.from_numpy(library.vectors[rows])
                mask = torch.from_numpy((rows != library.padding).astype(np.float32))
                candidates = axes.expand(len(rows), -1, -1)
                found.append(call(model, "forward", values, [read, mask, candidates]).numpy())
        return np.concatenate([*found, np.zeros((0, axes.shape[1]), np.float32)])

    return vectors_at
