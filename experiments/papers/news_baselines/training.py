"""What the baselines share: a ranker of articles by their rows, one trainer, and scores of impressions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import dropout

from experiments.datasets.mind import Impressions
from experiments.datasets.samples import TrainingSamples
from experiments.papers.news_baselines.articles import ArticleColumns
from models.layers.attention import masked_softmax
from models.scoring import info_nce
from models.shapes import CLICKS, NEGATIVES

CHUNK, AT_ONCE = 16, 2_048
"""Impressions ranked, and articles made, at once."""
DROPOUT = 0.2
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class MadeArticles:
    """Articles' vectors [m, ...] of rising rows [m]."""

    rows: Rows
    vectors: Tensor

    def of(self, rows: Rows) -> Tensor:
        """Rows [...] -> vectors [..., ...]."""
        return self.vectors[torch.from_numpy(np.searchsorted(self.rows, rows))]


class NewsRanker(nn.Module, ABC):
    """A model that makes each article's vector once a batch, and scores candidates by the vectors of the clicks."""

    def __init__(self, columns: ArticleColumns) -> None:
        super().__init__()
        self.columns = columns

    @abstractmethod
    def articles(self, rows: Rows) -> Tensor:
        """Articles by row [m] -> vectors [m, ...]."""

    @abstractmethod
    def scores(self, clicks: Tensor, mask: Tensor, candidates: Tensor, readers: Tensor) -> Tensor:
        """Vectors clicks [b, H, ...], mask [b, H], candidates [b, R, ...], readers int64 [b] -> scores [b, R]."""

    def prepare(self, samples: TrainingSamples, seed: int) -> None:
        """Train what the paper trains before."""

    def made(self, *rows: Rows) -> MadeArticles:
        """The vectors of all articles among `rows`."""
        distinct = np.unique(np.concatenate([each.ravel() for each in rows]))
        parts = [self.articles(distinct[start : start + AT_ONCE]) for start in range(0, len(distinct), AT_ONCE)]
        return MadeArticles(distinct, torch.cat(parts))

    def forward(self, clicks: Rows, candidates: Rows, readers: Rows, made: MadeArticles | None = None) -> Tensor:
        """Rows clicks [b, H], candidates [b, R]; readers [b], 0 for unknown -> scores [b, R]. made: the
        articles' vectors, if already computed.
        """
        known = made or self.made(clicks, candidates)
        mask = torch.from_numpy((clicks != self.columns.padding).astype(np.float32))
        return self.scores(known.of(clicks), mask, known.of(candidates), torch.from_numpy(readers))

    def thinned(self, vectors: Tensor) -> Tensor:
        """Drop a fifth of the numbers while training, as the papers do."""
        return dropout(vectors, DROPOUT, self.training)


class PairAttention(nn.Module):
    """Attention of a candidate to the clicks by a dense network of two layers over their concatenation (DKN, DAN).

    Its first layer W [click; candidate] + b is computed as W1 click + (W2 candidate + b).
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.of_click = nn.Linear(dim, hidden, bias=False)
        self.of_candidate = nn.Linear(dim, hidden)
        self.last = nn.Linear(hidden, 1)

    def forward(self, clicks: Tensor, mask: Tensor, candidates: Tensor) -> Tensor:
        """clicks [b, H, D], mask [b, H], candidates [b, R, D] -> pooled clicks [b, R, D]; no clicks -> zeros."""
        hidden = torch.relu(self.of_click(clicks)[:, None] + self.of_candidate(candidates)[:, :, None])
        return masked_softmax(self.last(hidden).squeeze(-1), mask[:, None]) @ clicks


def central_batches(samples: TrainingSamples, steps: int, batch: int, seed: int) -> Iterator[Rows]:
    """Yield shuffled samples, epoch after epoch."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(samples))
    for _ in range(steps):
        if len(order) < batch:
            order = rng.permutation(len(samples))
        yield order[:batch]
        order = order[batch:]


def train(model: NewsRanker, samples: TrainingSamples, batches: Iterable[Rows], rate: float, seed: int) -> None:
    """Take one Adam step on the mean loss of each batch of samples, in place; negatives are drawn at each use."""
    rng = np.random.default_rng((seed, 1))
    model.prepare(samples, seed)
    optimizer = torch.optim.Adam([each for each in model.parameters() if each.requires_grad], lr=rate)
    model.train()
    for rows in batches:
        clicks = trimmed(samples.clicks[rows], samples.news)
        found = model(clicks, samples.candidates(rows, NEGATIVES, rng), samples.reader[rows] + 1)
        optimizer.zero_grad()
        torch.autograd.backward(info_nce(found))
        optimizer.step()
    model.eval()


def trimmed(clicks: Rows, padding: int) -> Rows:
    """Return the columns from the first with a click on, and at least the last."""
    real = np.flatnonzero((clicks != padding).any(axis=0))
    return clicks[:, real[0] if len(real) else -1 :]


def ranked(model: NewsRanker, impressions: Impressions, readers: Rows) -> NDArray[np.float32]:
    """Scores of all candidates, flat. readers: the number of each impression's reader, 0 for unknown."""
    padding, candidates = model.columns.padding, impressions.candidates
    clicks = impressions.histories.last(CLICKS, padding=padding)
    with torch.inference_mode():
        articles = model.made(clicks, candidates.values, np.array([padding]))
    scores = np.zeros(len(candidates.values), dtype=np.float32)
    order = np.argsort(candidates.lengths, kind="stable")
    for start in range(0, len(order), CHUNK):
        rows = order[start : start + CHUNK]
        lengths = candidates.lengths[rows]
        shown = np.full((len(rows), int(lengths.max())), padding)
        real = np.arange(shown.shape[1]) < lengths[:, None]
        places = np.concatenate([np.arange(*candidates.offsets[row : row + 2]) for row in rows])
        shown[real] = candidates.values[places]
        with torch.inference_mode():
            scores[places] = model(trimmed(clicks[rows], padding), shown, readers[rows], articles).numpy()[real]
    return scores
