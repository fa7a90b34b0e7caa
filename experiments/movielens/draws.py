"""What a device trains on in a pass: batches of its own films, and films it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

BATCH = 20


@dataclass(frozen=True)
class Pass:
    """The batches of one device and view, s of them.

    positives [s, 20]: the device's own films, -1 where the last batch of a pass over them is short. negatives [N]:
    unseen films that all positives are held against, and weights [N], how many unseen films each of them stands for.
    """

    positives: NDArray[np.int64]
    negatives: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def steps(self) -> int:
        """s."""
        return len(self.positives)


@dataclass(frozen=True)
class Films:
    """Films that devices may train on, and who has seen which.

    chances [m]: how likely a film is as a negative, beside others; the same for every device.
    """

    seen: csr_array
    catalogue: NDArray[np.int64]
    chances: NDArray[np.float64]

    @classmethod
    def of(cls, seen: csr_array, catalogue: NDArray[np.int64]) -> Films:
        """With chances that grow with the root of a film's interactions: counts that the server releases."""
        return cls(seen, catalogue, np.sqrt(np.asarray(seen.sum(axis=0), dtype=np.float64).ravel() + 1))

    def own(self, user: int) -> NDArray[np.int64]:
        """The user's own films."""
        return self.seen.indices[self.seen.indptr[user] : self.seen.indptr[user + 1]].astype(np.int64)

    def unseen(self, user: int) -> NDArray[np.int64]:
        """Films of the catalogue that the user has not seen."""
        return np.setdiff1d(self.catalogue, self.own(user), assume_unique=True)


Draw = Callable[[int, np.random.Generator], Pass]
"""(user, generator) -> the pass of one view."""


def passes(films: Films, negatives: int, batches: int) -> Draw:
    """The user's films in a new order, in batches of 20, `batches` at most; N unseen films for the whole pass.

    Negatives are drawn by their chances, with replacement, and weighted by 1 / (N chance): the sum over them is an
    unbiased estimate of the sum over all unseen films, eq. 5 with D the whole catalogue, of less variance than a
    uniform draw has, as popular films make up most of the sum. Deviation from DSSM (eq. 6), which draws N for
    each positive, uniformly: on a device all positives have the same user and can share one draw.
    """
    pools: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}

    def draw(user: int, rng: np.random.Generator) -> Pass:
        own = films.own(user)
        if user not in pools:
            unseen = films.unseen(user)
            pools[user] = unseen, films.chances[unseen] / films.chances[unseen].sum()
        unseen, chances = pools[user]
        positives = np.full(-(-len(own) // BATCH) * BATCH, -1)
        positives[: len(own)] = rng.permutation(own)
        drawn = rng.choice(len(unseen), negatives, p=chances)
        return Pass(positives.reshape(-1, BATCH)[:batches], unseen[drawn], 1 / (negatives * chances[drawn]))

    return draw
