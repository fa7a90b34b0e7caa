"""The paper's baselines (section V): DSSM trained centrally, and federated factorisation (FCF, FED-MVMF).

FCF follows Ammad-ud-din et al. 2019, FED-MVMF Flanagan et al. 2020. A device solves for its own p and keeps it; it
sends gradients of the shared factors, and the server takes an Adam step on their sum.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from backend.federation.optimizers import Adam, StatefulOptimizer
from experiments.papers.fl_mv_dssm.cohort import FIRST, ItemSpace, upper_layers, user_vectors
from experiments.papers.fl_mv_dssm.protocols import MovieLensSplit
from experiments.papers.fl_mv_dssm.rounds import Features, Towers, View, ViewSystem, first_towers
from models.scoring import unit


@dataclass(frozen=True)
class Central:
    """Central training. Adam's rate is the paper's; epochs, batch, negatives and gamma are ours."""

    rate: float = 0.001
    gamma: float = 5.0
    epochs: int = 10
    batch: int = 500
    negatives: int = 400


def train_centrally(view: View, features: Features, split: MovieLensSplit, how: Central, seed: int) -> Towers:
    """Train one view's towers on shuffled interactions.

    A batch shares its negatives; those that a user has seen are left out.
    """
    towers = first_towers(ViewSystem((view,), personal=False), features, seed)
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
    """X W' by scipy's sparse product; its gradient for W is d'X."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, films: ItemSpace) -> Tensor:
        """weight [64, F] -> [m, 64]."""
        ctx.films = films
        return films.first_layer(weight.detach())

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor, None]:
        """slopes [m, 64] -> [64, F]."""
        return torch.from_numpy(ctx.films.back(slopes.numpy())), None


Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Factorising:
    """Settings of federated factorisation.

    factors: k. confidence: a of c = 1 + a r. ridge: l. rate: Adam's. rounds, cohort: as for the towers.

    user_weight, item_weight: of the feature matrices in FED-MVMF's loss; with both 0 it is FCF.
    """

    factors: int = 25
    confidence: float = 4.0
    ridge: float = 1.0
    rate: float = 0.1
    rounds: int = 100
    cohort: int = 100
    user_weight: float = 0.0
    item_weight: float = 0.0


@dataclass(frozen=True)
class Shared:
    """The server's factors: Q [m, k] of films, U [d, k] of user features, V [F, k] of film features."""

    Q: Matrix
    U: Matrix
    V: Matrix


def user_factors(shared: Shared, seen: csr_array, features: Matrix, how: Factorising) -> Matrix:
    """Solve for each device's own p [b, k].

    p = (Q'CQ + w U'U + l I)^-1 (Q'C r + w U'x), with C = diag(1 + a r).
    """
    Q, U = shared.Q, shared.U
    base = Q.T @ Q + how.user_weight * U.T @ U + how.ridge * np.eye(how.factors)
    p = np.empty((seen.shape[0], how.factors))
    for row in range(len(p)):
        own = Q[seen.indices[seen.indptr[row] : seen.indptr[row + 1]]]
        target = (1 + how.confidence) * own.sum(axis=0) + how.user_weight * (U.T @ features[row])
        p[row] = np.linalg.solve(base + how.confidence * own.T @ own, target)
    return p


def device_gradients(
    shared: Shared, p: Matrix, seen: csr_array, features: Matrix, how: Factorising
) -> tuple[Matrix, Matrix]:
    """Sum the devices' gradients dQ [m, k], row i -2 c_i (r_i - p.q_i) p, and dU [d, k], -2 w (x - U p) p'."""
    r = seen.toarray().astype(np.float64)
    error = (1 + how.confidence * r) * (r - p @ shared.Q.T)
    return -2 * error.T @ p, -2 * how.user_weight * (features - p @ shared.U.T).T @ p


def factorise(
    split: MovieLensSplit, users: NDArray[np.float32], films: csr_array, how: Factorising, seed: int
) -> Matrix:
    """Train on a split and return the scores p.q [n, m].

    users: View-1 [n, d], never sent. films: features [m, F], which the server has.
    """
    rng = np.random.default_rng(seed)
    features = users.astype(np.float64)
    count, k = split.train.shape[1], how.factors
    shared = Shared(*(rng.normal(scale=0.1, size=(rows, k)) for rows in (count, users.shape[1], films.shape[1])))
    optimizer = StatefulOptimizer(Adam(how.rate))
    for _ in range(how.rounds):
        cohort = rng.choice(split.trained, size=how.cohort, replace=False)
        seen, own = split.train[cohort], features[cohort]
        p = user_factors(shared, seen, own, how)
        dQ, dU = device_gradients(shared, p, seen, own, how)
        dQ = dQ / how.cohort + 2 * how.ridge * shared.Q / len(split.trained)
        if how.item_weight:
            gram = shared.Q.T @ shared.Q + how.ridge * np.eye(k)
            shared = Shared(shared.Q, shared.U, (films.T @ shared.Q) @ np.linalg.inv(gram))
            pull = films @ shared.V - shared.Q @ (shared.V.T @ shared.V)
            dQ -= 2 * how.item_weight * pull / len(split.trained)
        weights = {"Q": shared.Q.astype(np.float32), "U": shared.U.astype(np.float32)}
        stepped = optimizer.step(weights, {"Q": dQ, "U": dU / how.cohort})
        shared = Shared(stepped["Q"].astype(np.float64), stepped["U"].astype(np.float64), shared.V)
    found: Matrix = user_factors(shared, split.train, features, how) @ shared.Q.T
    return found
