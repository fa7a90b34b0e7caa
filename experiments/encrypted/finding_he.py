"""FINDING-HE: a server that holds models and gradients under encryption and never reads one (FINDING, appendix A).

Clients share one private key. The server does the linear steps of FINDING on ciphertexts: interpolation (eq. 1a),
the SGD steps of Algorithm 1, and eq. 8. Clients do the rest: they read their group's model, compute gradients, find
their nearest centroid. Adam is impossible, as it takes square roots.

What the server learns: sizes, who takes part, n_u, each client's group and the moves between groups. Not protected: one
client and the server together read everything, as every client has the key. In a secure sum no key opens anything but
a sum; that and its lower cost are why it is the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping.reader_groups import lloyd_step, nearest
from experiments.encrypted.packing import Adds, Encrypted, Opens, Packing, decrypt, encrypt, weighted_sum

COEFFICIENT_BITS = 12
"""Fraction bits of lambda and of the rate: each is rounded to a multiple of 2^-12, and takes so many bits of a slot."""
Blocks = Mapping[str, Encrypted]
"""A model: a vector a layer, by the layer's name."""


@dataclass(frozen=True)
class Sent:
    """What a client sends: its group, n_u, and n_u g under encryption."""

    group: int
    samples: int
    weighted: Blocks


class BlindServer:
    """The server of FINDING-HE: w_g and the groups' w_k under encryption; it has no private key."""

    def __init__(self, key: Adds, shared: Blocks, groups: int, *, rate: float) -> None:
        self._key, self._rate = key, rounded(rate)
        self.shared: Blocks = shared
        self.groups: list[Blocks] = [shared] * groups

    def interpolate(self, shares: Mapping[str, float]) -> None:
        """w_k <- lambda w_k + (1 - lambda) w_g, layer by layer; lambda rounded to COEFFICIENT_BITS.

        Raises CapacityExceeded.
        """
        parts = {layer: rounded(share) for layer, share in shares.items()}
        self.groups = [
            {
                layer: weighted_sum([(parts[layer], own), (1 - parts[layer], self.shared[layer])], self._key)
                for layer, own in group.items()
            }
            for group in self.groups
        ]

    def step(self, updates: Sequence[Sent]) -> None:
        """w <- w - rate sum n_u g / sum n_u, for everybody and for each group that has a client.

        Raises CapacityExceeded.
        """
        self.shared = self._stepped(self.shared, updates)
        for group, model in enumerate(self.groups):
            mine = [update for update in updates if update.group == group]
            self.groups[group] = self._stepped(model, mine) if mine else model

    def reinitialise(self, moves: NDArray[np.integer[Any]]) -> None:
        """Formula 8; a group that nobody moved to gets w_g. Raises CapacityExceeded."""
        before = self.groups
        self.groups = []
        for counts in np.asarray(moves).T:
            total = int(counts.sum())
            terms = [(Fraction(int(count), total), model) for count, model in zip(counts, before, strict=True) if count]
            self.groups.append(
                {
                    layer: weighted_sum([(part, model[layer]) for part, model in terms], self._key)
                    for layer in self.shared
                }
                if terms
                else self.shared
            )

    def take(self, shared: Blocks, groups: Sequence[Blocks]) -> None:
        """The same models from a client that has encrypted them anew, since multiplying takes up room in the slots."""
        self.shared, self.groups = shared, list(groups)

    def _stepped(self, model: Blocks, updates: Sequence[Sent]) -> Blocks:
        samples = sum(update.samples for update in updates)
        pace = Fraction(-self._rate, samples)
        return {
            layer: weighted_sum([(1, held), *((pace, update.weighted[layer]) for update in updates)], self._key)
            for layer, held in model.items()
        }


@dataclass(frozen=True)
class KeyHolder:
    """The clients' half. Bounds are public: of weights, and of a gradient, clipped to it coordinate by coordinate."""

    key: Opens
    packing: Packing
    weight_bound: float = 8.0
    gradient_bound: float = 1.0

    def read(self, model: Blocks) -> dict[str, NDArray[np.float64]]:
        """A model in clear."""
        return {layer: decrypt(each, self.key) for layer, each in model.items()}

    def hide(self, model: Mapping[str, NDArray[np.floating[Any]]]) -> Blocks:
        """A model under encryption: the start, or one whose slots are full (it is rounded to the encoding step)."""
        return {layer: encrypt(each, self.key, self.packing, bound=self.weight_bound) for layer, each in model.items()}

    def gradient(self, group: int, samples: int, gradient: Mapping[str, NDArray[np.floating[Any]]]) -> Sent:
        """n_u g under encryption."""
        bound = self.gradient_bound
        hidden = {
            layer: encrypt(np.clip(each, -bound, bound), self.key, self.packing, bound=bound, weight=samples)
            for layer, each in gradient.items()
        }
        return Sent(group, samples, hidden)

    def vote(self, centroids: NDArray[np.floating[Any]], vector: NDArray[np.floating[Any]]) -> Encrypted:
        """A reader's unit vector [D] in the row of its nearest centroid [K, D], every row under encryption: the server
        can't see which of them is not zero."""
        rows = np.zeros((len(centroids), len(vector) + 1))
        group = int(nearest(centroids, vector[None])[0])
        rows[group, :-1], rows[group, -1] = vector, 1.0
        return encrypt(rows, self.key, self.packing, bound=1.0)

    def centroids(self, votes: Sequence[Encrypted], before: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """The Lloyd step from the sum of votes, which the server has added up unread."""
        return lloyd_step(self.opened(votes, before), before)

    def opened(self, votes: Sequence[Encrypted], before: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """The sum [K, D] of votes, which the server has added up unread."""
        total = decrypt(weighted_sum([(1, vote) for vote in votes], self.key.public), self.key)
        rows: NDArray[np.float64] = total.reshape(len(before), -1)
        return rows[:, :-1]


def rounded(share: float) -> Fraction:
    """To a multiple of 2^-COEFFICIENT_BITS."""
    return Fraction(round(share * 2**COEFFICIENT_BITS), 2**COEFFICIENT_BITS)
