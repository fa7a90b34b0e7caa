"""Trains NRMS and the news model's head on frozen states of BERT, in Efficient-FedRec's rounds and centrally.

A round's gradient is that of the mean loss over all samples of its readers, which equals eq. 4's sample-weighted mean
of the readers' gradients. Devices compute the gradients of the user model and of news vectors, the server the head's
(eq. 6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from backend.federation.optimizers import Adam, StatefulOptimizer
from backend.federation.split.torch_tasks import vector_jacobian
from experiments.datasets.samples import TrainingSamples
from experiments.simulation.rounds import Rounds
from models.builders.user import nrms_400
from models.news.plm import PooledHead
from models.shapes import NEGATIVES, PAPER_DIM
from models.starts import fitted_head
from models.user.papers import NrmsUser

Vectors = NDArray[np.float32]
Rows = NDArray[np.int64]
Gradients = dict[str, NDArray[np.float64]]
FITTED = 1_000
"""Number of states that the head is fitted to."""


@dataclass(frozen=True)
class SplitModels:
    """The user model and the head of the news model, over states [n + 1, S] whose last row is padding."""

    user: NrmsUser
    head: PooledHead
    states: Vectors

    @classmethod
    def start(cls, states: Vectors) -> SplitModels:
        """Return the models in the state in which they rank like the mean cosine. states: [n, S]."""
        head = PooledHead.sized(states.shape[1], PAPER_DIM)
        weight, _ = fitted_head(states[:: max(1, len(states) // FITTED)][:FITTED], PAPER_DIM)
        with torch.no_grad():
            head.head.weight.copy_(torch.from_numpy(weight))
            nn.init.zeros_(head.head.bias)
        return cls(nrms_400(), head, np.concatenate([states, np.zeros_like(states[:1])]))

    @property
    def parts(self) -> dict[str, nn.Module]:
        return {"user.": self.user, "news.": self.head}

    def vectors(self, rows: Rows | slice) -> Vectors:
        """Return news vectors [b, D]."""
        with torch.no_grad():
            found: Vectors = self.head(torch.from_numpy(self.states[rows])).numpy()
        return found

    def weights(self) -> dict[str, Vectors]:
        """Return copies of both modules' parameters."""
        named = (
            (prefix + name, value) for prefix, part in self.parts.items() for name, value in part.named_parameters()
        )
        return {name: value.detach().numpy().copy() for name, value in named}

    def load(self, weights: Mapping[str, Vectors]) -> None:
        """Set both modules' parameters."""
        for prefix, part in self.parts.items():
            mine = {name.removeprefix(prefix): each for name, each in weights.items() if name.startswith(prefix)}
            part.load_state_dict({name: torch.from_numpy(each) for name, each in mine.items()})


def device_gradients(models: SplitModels, clicks: Rows, candidates: Rows) -> tuple[Gradients, Rows, Vectors]:
    """Return the user model's gradients, the rows of the articles involved, and the gradients of their vectors.

    They are those of the mean loss over samples clicks [b, 50], candidates [b, 1 + K], rows of the states.
    """
    rows, places = np.unique(np.concatenate([clicks.ravel(), candidates.ravel()]), return_inverse=True)
    table = torch.from_numpy(models.vectors(rows)).requires_grad_()
    read, shown = (
        table[torch.from_numpy(each).reshape(like.shape)]
        for each, like in zip(np.split(places, [clicks.size]), (clicks, candidates), strict=True)
    )
    mask = torch.from_numpy((clicks != len(models.states) - 1).astype(np.float32))
    named = dict(models.user.named_parameters())
    *found, of_news = torch.autograd.grad(models.user.loss(read, mask, shown), [*named.values(), table])
    of_user = {f"user.{name}": each.numpy().astype(np.float64) for name, each in zip(named, found, strict=True)}
    return of_user, rows, of_news.numpy()


def server_gradients(models: SplitModels, rows: Rows, of_news: Vectors) -> Gradients:
    """Return the head's gradients by those of news vectors."""
    batch = np.arange(len(rows)), (models.states[rows],)
    return {f"news.{name}": each for name, each in vector_jacobian(models.head, [batch], of_news).items()}


def train(
    models: SplitModels,
    samples: TrainingSamples,
    plan: Rounds,
    rate: float,
    *,
    readers: Rows,
    central: bool,
    news: bool,
    after_round: Callable[[int], None],
) -> None:
    """Train the models, in place, with Adam.

    readers: those who may be drawn, by the plan's numbers. central: whether to take central steps instead, with as many
    samples drawn from all readers. news: whether the head is trained too.
    """
    optimizer, mine = StatefulOptimizer(Adam(rate)), np.concatenate([samples.of_reader(int(each)) for each in readers])
    for number in range(plan.rounds):
        cohort = np.concatenate([samples.of_reader(int(readers[each])) for each in plan.cohort_of(number)])
        rng = np.random.default_rng((plan.seed, number, 1))
        batch = rng.choice(mine, len(cohort), replace=False) if central else cohort
        gradient, rows, of_news = device_gradients(
            models, samples.clicks[batch], samples.candidates(batch, NEGATIVES, rng)
        )
        if news:
            gradient |= server_gradients(models, rows, of_news)
        models.load(optimizer.step(models.weights(), gradient))
        after_round(number + 1)
