"""MIND's readers with shown lists as a population of the live systems; dev's readers judge, who are all cold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from torch import nn

from experiments.datasets.mind import Mind
from experiments.finding.protocol import judgeable, rows_of
from experiments.quality.replay import RANKER_MODEL, shown_only, uncounted
from experiments.ranking.evaluation import model_scores
from experiments.ranking.training import Workbench
from experiments.simulation.readers import SimulatedReader
from experiments.simulation.strategies.method import ModelChoice
from models.metrics import auc
from models.shapes import CLICKS

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]


class Replayed:
    """A `Population` of 1,252 readers, as `ownfeed bench replay` has them."""

    def __init__(self, mind: Mind, model: nn.Module) -> None:
        bench = Workbench(mind)
        self._samples, self._model = shown_only(bench.samples), model
        self._library = uncounted(bench.library(RANKER_MODEL))
        self._judged = rows_of(mind.dev, judgeable(mind.dev))
        self.news = self._library.vectors[:-1]

    @property
    def readers(self) -> int:
        """Who can train."""
        return self._samples.readers

    def source(self, reader: int) -> SimulatedReader:
        """A training reader's samples."""
        return SimulatedReader(self._samples, reader, self._library)

    def clicks(self, reader: int) -> Vectors:
        """What the reader had clicked before the last shown list."""
        return self._vectors(self._samples.clicks[self._samples.of_reader(reader)[-1]])

    @cached_property
    def judging(self) -> Sequence[Vectors]:
        """The clicks of each of dev's impressions."""
        rows = self._judged.histories.last(CLICKS, padding=self._library.padding)
        return [self._vectors(each) for each in rows]

    def aucs(self, choice: ModelChoice) -> Floats:
        """By impression."""
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
