"""FCF and FED-MVMF: federated factorisation, what the paper compares itself with (section V).

The formulas are those of Ammad-ud-din et al. 2019 (FCF) and Flanagan et al. 2020 (FED-MVMF). A device solves for its
own p and keeps it; it sends gradients of what is shared, and the server makes an Adam step of their sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from backend.federation.optimizers import Adam, Carried
from experiments.movielens.protocols import MovieLensSplit

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Factorising:
    """factors: k. confidence: a of c = 1 + a r. ridge: l. rate: Adam's. rounds, cohort: as the towers have.

    user_weight, item_weight: of the feature matrices in FED-MVMF's loss; both 0 is FCF.
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
    """What the server holds: Q [m, k] of films, U [d, k] of user features, V [F, k] of film features."""

    Q: Matrix
    U: Matrix
    V: Matrix


def user_factors(shared: Shared, seen: csr_array, features: Matrix, how: Factorising) -> Matrix:
    """Each device's own p [b, k], solved at home.

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
    """The sum over devices of dQ [m, k], row i -2 c_i (r_i - p.q_i) p, and of dU [d, k], -2 w (x - U p) p'."""
    r = seen.toarray().astype(np.float64)
    error = (1 + how.confidence * r) * (r - p @ shared.Q.T)
    return -2 * error.T @ p, -2 * how.user_weight * (features - p @ shared.U.T).T @ p


def factorise(
    split: MovieLensSplit, users: NDArray[np.float32], films: csr_array, how: Factorising, seed: int
) -> Matrix:
    """Train on a split; scores p.q [n, m].

    users: View-1 [n, d], never sent. films: features [m, F], which the server has.
    """
    rng = np.random.default_rng(seed)
    features = users.astype(np.float64)
    count, k = split.train.shape[1], how.factors
    shared = Shared(*(rng.normal(scale=0.1, size=(rows, k)) for rows in (count, users.shape[1], films.shape[1])))
    optimizer = Carried(Adam(how.rate))
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
