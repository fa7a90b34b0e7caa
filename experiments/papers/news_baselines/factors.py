"""Baselines by factors: FM (Rendle 2010), DFM (Lian et al. 2018) and FCF (Ammad-ud-din et al. 2019)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor, nn

from backend.federation.optimizers import Adam, StatefulOptimizer
from experiments.datasets.mind import Impressions
from experiments.papers.fl_mv_dssm.baselines import Factorising, Shared, device_gradients, user_factors
from experiments.papers.news_baselines.articles import WORD_DIM, ArticleColumns
from experiments.papers.news_baselines.training import MadeArticles, NewsRanker
from models.one_vector import mean_click

FACTORS = 16
CHANNELS, CHANNEL_DIM, DEPTH = 4, 32, 3
Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]


class FactorisationMachine(NewsRanker):
    """y = w0 + sum_i w_i x_i + sum_{i < j} <v_i, v_j> x_i x_j.

    x is the reader as one of `readers` + 1 (0, unknown, has no weight), the mean of the clicks' TF-IDF columns, and the
    candidate's columns.
    """

    def __init__(self, columns: ArticleColumns, readers: int, factors: int = FACTORS) -> None:
        super().__init__(columns)
        width = columns.bag.shape[1]
        self.reader = nn.Embedding(readers + 1, factors + 1, padding_idx=0)
        self.read = nn.Parameter(torch.randn(width, factors + 1) * 0.05)
        self.shown = nn.Parameter(torch.randn(width, factors + 1) * 0.05)
        self.constant = nn.Parameter(torch.zeros(()))
        with torch.no_grad():
            self.reader.weight.mul_(0.05)

    def articles(self, rows: Rows) -> Tensor:
        """Rows [m] -> TF-IDF columns [m, F]."""
        return torch.from_numpy(self.columns.bag[rows].toarray())

    def forward(self, clicks: Rows, candidates: Rows, readers: Rows, made: MadeArticles | None = None) -> Tensor:
        """As NewsRanker's, but for means of sparse columns, which are cheaper than each click's."""
        row, place = np.nonzero(clicks != self.columns.padding)
        share = 1 / np.maximum(np.bincount(row, minlength=len(clicks)), 1)
        means = csr_array((share[row], (row, clicks[row, place])), shape=(len(clicks), self.columns.padding + 1))
        read = torch.from_numpy((means @ self.columns.bag).toarray().astype(np.float32))
        shown = self.articles(candidates.ravel()).view(*candidates.shape, -1)
        return self.scores(read[:, None], torch.ones(len(read), 1), shown, torch.from_numpy(readers))

    def scores(self, clicks: Tensor, mask: Tensor, candidates: Tensor, readers: Tensor) -> Tensor:
        """Scores; the sum over pairs is (sum^2 - sum of squares) / 2, and the last column of each table is w."""
        read = mean_click(clicks, mask)
        own = self.reader(readers)
        of_reader = own + read @ self.read  # [b, k + 1]
        of_shown = candidates @ self.shown  # [b, R, k + 1]
        squares = (own**2 + read**2 @ self.read**2)[:, None] + candidates**2 @ self.shown**2
        both = of_reader[:, None] + of_shown
        pairs = (both**2 - squares)[..., :-1].sum(dim=-1) / 2
        found: Tensor = self.constant + both[..., -1] + pairs
        return found


class Inception(nn.Module):
    """Dense networks of 1, 2 and 3 layers in parallel, and a layer that joins their outputs."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.paths = nn.ModuleList(
            nn.Sequential(
                *(part for layer in range(depth) for part in (nn.Linear(hidden if layer else dim, hidden), nn.ReLU()))
            )
            for depth in range(1, DEPTH + 1)
        )
        self.joined = nn.Linear(DEPTH * hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] -> [..., hidden]."""
        return torch.relu(self.joined(torch.cat([path(x) for path in self.paths], dim=-1)))


class DeepFusion(NewsRanker):
    """DFM: an inception module for each channel, merged by attention, and a linear score.

    The channels are the title's words, the section, the topic, and the entities: means of the clicks' vectors beside
    the candidate's. Uncertain: we don't have the paper's text, so sizes and the form of attention are ours.
    """

    def __init__(self, columns: ArticleColumns, hidden: int = CHANNEL_DIM) -> None:
        super().__init__(columns)
        self.channels = nn.ModuleList(Inception(2 * WORD_DIM, hidden) for _ in range(CHANNELS))
        self.hidden = nn.Linear(hidden, hidden)
        self.query = nn.Linear(hidden, 1, bias=False)
        self.last = nn.Linear(hidden, 1)

    def articles(self, rows: Rows) -> Tensor:
        """Rows [m] -> mean vectors of the channels [m, 4, E]."""
        known, profile = self.columns, self.columns.profile[rows]
        found = [_means(known.vectors, known.titles[rows])]
        found += [_means(known.entity_vectors, profile[:, part]) for part in (slice(0, 1), slice(1, 2), slice(2, None))]
        return torch.from_numpy(np.stack(found, axis=1))

    def scores(self, clicks: Tensor, mask: Tensor, candidates: Tensor, readers: Tensor) -> Tensor:
        """Channels clicks [b, H, 4, E], candidates [b, R, 4, E] -> scores [b, R]."""
        read = mean_click(clicks.flatten(2), mask).view(-1, 1, *clicks.shape[2:]).expand_as(candidates)
        both = self.thinned(torch.cat([read, candidates], dim=-1))
        merged = torch.stack([channel(both[:, :, at]) for at, channel in enumerate(self.channels)], dim=2)
        weights = torch.softmax(self.query(torch.tanh(self.hidden(merged))), dim=2)  # [b, R, 4, 1]
        found: Tensor = self.last((weights * merged).sum(dim=2)).squeeze(-1)
        return found


def _means(vectors: NDArray[np.float32], ids: Rows) -> NDArray[np.float32]:
    found: NDArray[np.float32] = vectors[ids].sum(axis=1) / np.maximum((ids > 0).sum(axis=1), 1)[:, None]
    return found.astype(np.float32)


def factorise(seen: csr_array, how: Factorising, seed: int) -> Matrix:
    """Return the articles' factors Q [n, k] after FCF's rounds. seen: ones for each reader's articles [readers, n].

    Each device solves for its own p and sends its gradient of Q; the server takes an Adam step on the mean.
    """
    rng = np.random.default_rng(seed)
    nothing = np.zeros((1, how.factors))
    shared = Shared(rng.normal(scale=0.1, size=(seen.shape[1], how.factors)), nothing, nothing)
    optimizer = StatefulOptimizer(Adam(how.rate))
    for _ in range(how.rounds):
        cohort = rng.choice(seen.shape[0], size=min(how.cohort, seen.shape[0]), replace=False)
        own, features = seen[cohort], np.zeros((len(cohort), 1))
        slopes, _ = device_gradients(shared, user_factors(shared, own, features, how), own, features, how)
        slopes = slopes / len(cohort) + 2 * how.ridge * shared.Q / seen.shape[0]
        stepped = optimizer.step({"Q": shared.Q.astype(np.float32)}, {"Q": slopes})
        shared = Shared(stepped["Q"].astype(np.float64), nothing, nothing)
    return shared.Q


def factor_scores(Q: Matrix, impressions: Impressions, how: Factorising) -> Matrix:
    """Scores <p, q> of all candidates, flat; p is solved from the history of the impression."""
    histories, nothing = impressions.histories, np.zeros((1, how.factors))
    rows = csr_array(
        (np.ones(len(histories.values)), histories.values, histories.offsets), shape=(len(histories), len(Q))
    )
    rows.sum_duplicates()
    rows.data[:] = 1
    p = user_factors(Shared(Q, nothing, nothing), rows, np.zeros((len(histories), 1)), how)
    candidates = impressions.candidates
    found: Matrix = (p[candidates.owners] * Q[candidates.values]).sum(axis=1)
    return found
