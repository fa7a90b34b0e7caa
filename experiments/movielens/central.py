"""DSSM trained with all users' data in one place: what the paper compares federated towers with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from experiments.movielens.cohort import FIRST, ItemSpace, upper_layers, user_vectors
from experiments.movielens.protocols import MovieLensSplit
from experiments.movielens.rounds import Features, Towers, first_towers
from experiments.movielens.systems import System, View
from models.scoring import unit


@dataclass(frozen=True)
class Central:
    """Adam's rate is the paper's; epochs, batch, negatives of a batch, gamma are ours."""

    rate: float = 0.001
    gamma: float = 5.0
    epochs: int = 10
    batch: int = 500
    negatives: int = 400


def train_centrally(view: View, features: Features, split: MovieLensSplit, how: Central, seed: int) -> Towers:
    """One view's towers, on shuffled interactions; a batch shares its negatives, less those that a user has seen."""
    towers = first_towers(System((view,), personal=False), features, seed)
    item, user = ({name: value.requires_grad_(True) for name, value in one.items()}
                  for one in (towers.item, towers.users[view]))  # fmt: skip
    optimizer = torch.optim.Adam([*item.values(), *user.values()], lr=how.rate)
    generator = torch.Generator().manual_seed(seed)
    given, catalogue = torch.from_numpy(features.users[view]), torch.from_numpy(split.catalogue)
    seen = torch.from_numpy(split.train.toarray() > 0)
    pairs = torch.from_numpy(np.stack(split.train.nonzero()).astype(np.int64))
    for _ in range(how.epochs):
        order = torch.randperm(pairs.shape[1], generator=generator)
        for start in range(0, len(order), how.batch):
            rows, films = pairs[:, order[start : start + how.batch]]
            others = catalogue[torch.randperm(len(catalogue), generator=generator)[: how.negatives]]
            users, place = rows.unique(return_inverse=True)
            first = FirstLayer.apply(item[FIRST], features.films)  # type: ignore[no-untyped-call]
            vectors = user_vectors(user, given[users])
            y = unit(upper_layers(item, first + item["layers.0.bias"]))  # [m, 16]
            against = how.gamma * (vectors @ y[others].T)
            held = against.masked_fill(seen[users][:, others], -torch.inf).logsumexp(dim=-1)[place]
            scores = how.gamma * (vectors[place] * y[films]).sum(dim=-1)
            optimizer.zero_grad()
            torch.autograd.backward((torch.logaddexp(scores, held) - scores).mean())
            optimizer.step()
    still = [{name: value.detach() for name, value in one.items()} for one in (item, user)]
    return Towers(still[0], {view: still[1]}, personal=False)


class FirstLayer(torch.autograd.Function):
    """X W' through scipy's sparse product; its slope at W is d'X."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, films: ItemSpace) -> Tensor:
        """weight [64, F] -> [m, 64]."""
        ctx.films = films
        return films.first_layer(weight.detach())

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor, None]:
        """slopes [m, 64] -> [64, F]."""
        return torch.from_numpy(ctx.films.back(slopes.numpy())), None
