"""FINDING-HE as a method of the study: whole trainings in the fixed point of encryption, some rounds under real keys.

Encryption changes no number (`plaintext_key.py`), so most rounds go in clear through the very encoding, packing and
steps of `BlindServer`; the first few go through Paillier as well, and any difference ends the run. So do the votes of
some readers in the first step of the first two clusterings, of which the second is a re-clustering. What they take is
the cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping.group_models import Model, Models
from backend.federation.grouping.interpolation import Personalisation, interpolated
from backend.federation.grouping.layers import Layers
from backend.federation.grouping.reader_groups import Clusters, lloyd_step, nearest, transitions, unit
from backend.federation.optimizers import SteppedWeights, Weights
from experiments.encrypted.finding_he import BlindServer, Blocks, KeyHolder
from experiments.encrypted.packing import Opens, Packing
from experiments.encrypted.paillier import KEY_BITS, PrivateKey
from experiments.encrypted.plaintext_key import CheckedPrivateKey, PlaintextKey
from experiments.simulation.strategies.method import GradientReaders, ModelChoice, VectorsAt, gradient_of

PACKING = Packing(KEY_BITS, slot_bits=64)
"""31 numbers a ciphertext. A round takes 59 bits: 16 of the fraction, 7 of a weight, 12 of lambda, 12 of the rate, 11
of a cohort's samples, and the sign; so clients encrypt the models anew before each round, and before formula 8."""
WEIGHT_BOUND, GRADIENT_BOUND = 64.0, 1.0
LLOYD_STEPS = 5
REAL_CLUSTERINGS = 2
T = TypeVar("T")


@dataclass
class Cost:
    """Of the rounds under real keys. Clients' seconds are summed over a cohort; processor time of one thread."""

    rounds: int = 0
    readers: int = 0
    client_sec: float = 0.0
    fresh_sec: float = 0.0
    server_sec: float = 0.0
    up_bytes: int = 0
    down_bytes: int = 0
    clusterings: int = 0
    votes: int = 0
    vote_sec: float = 0.0
    vote_bytes: int = 0

    def __str__(self) -> str:
        """A sentence for the table."""
        if not self.rounds:
            return "no round under real keys"
        return self._of_rounds() + (self._of_votes() if self.votes else "")

    def _of_votes(self) -> str:
        return (
            f". In {self.clusterings} clusterings {self.votes} votes for groups were added up under such keys to the "
            f"sums in clear: {self.vote_sec / self.votes:.2f} s and {self.vote_bytes / self.votes:,.0f} bytes a vote"
        )

    def _of_rounds(self) -> str:
        return (
            f"{self.rounds} rounds under {KEY_BITS}-bit keys opened to the same integers; a reader took "
            f"{self.client_sec / self.readers:.2f} s and sent {self.up_bytes / self.readers:,.0f} bytes, got "
            f"{self.down_bytes / self.readers:,.0f}; the server {self.server_sec / self.rounds:.1f} s a round, and "
            f"{self.fresh_sec / self.rounds:.1f} s of some client's to encrypt all models anew"
        )


@dataclass
class EncryptedFinding:
    """A `Method`: FINDING by SGD, where the server holds ciphertexts and clients do what isn't linear.

    Args:
        rate: of SGD, rounded as the server rounds it; Adam takes roots, which no ciphertext has.
        first: centroids [K, D] to begin with, which tell nothing of readers.
        recluster_every: T.
        real_rounds: how many rounds, from the first, go under a real key as well.
        real_voters: how many readers' votes do so in the first step of the first two clusterings, if any round does.
        make_key: makes it.
    """

    readers: GradientReaders
    start: Weights
    rate: float
    personalisation: Personalisation
    layers: Layers
    first: NDArray[np.float32]
    recluster_every: int
    vectors_at: VectorsAt
    real_rounds: int = 0
    real_voters: int = 0
    packing: Packing = PACKING
    make_key: Callable[[], PrivateKey] = PrivateKey.generate
    cost: Cost = field(default_factory=Cost)

    def __post_init__(self) -> None:
        self._rounds, self._clusterings = 0, 0
        self._holder = self._with(CheckedPrivateKey(self.make_key()) if self.real_rounds else PlaintextKey())
        self._voters = self._holder
        hidden = self._holder.hide(self.start)
        self.server = BlindServer(self._holder.key.public, hidden, len(self.first), rate=self.rate)
        self.clusters = self._clustered(self.start, self.first)
        self.clustered_under: Weights = self.start

    def run_round(self, number: int, cohort: Sequence[int]) -> float:
        """One round; under the real key too if it is one of the first."""
        if self._rounds == self.real_rounds and self.real_rounds:
            self._change_key()
        watch = self._rounds < self.real_rounds
        self._encrypt_anew(watch)
        coefficients = self.personalisation.coefficients(number + 1, self.layers)
        by_name = {name: float(coefficients[self.layers.place(name)]) for name in self.start}
        self._timed("server_sec", watch, lambda: self.server.interpolate(by_name))
        sent, losses = [], []
        for reader in cohort:
            group = int(self.clusters.labels[reader])
            model = self.server.groups[group]
            weights = self._timed("client_sec", watch, lambda model=model: self.weights_of(model))  # type: ignore[misc]
            update = self.readers.update(weights, reader, number)
            gradient = gradient_of(update)
            sent.append(
                self._timed(
                    "client_sec",
                    watch,
                    lambda group=group, n=update.samples, g=gradient: self._holder.gradient(group, n, g),  # type: ignore[misc]
                )
            )
            losses.append(update.loss)
            if watch:
                self.cost.readers += 1
                self.cost.down_bytes += _size(model)
                self.cost.up_bytes += _size(sent[-1].weighted)
        self._timed("server_sec", watch, lambda: self.server.step(sent))
        self.cost.rounds += watch
        self._rounds += 1
        if self._rounds % self.recluster_every == 0:
            self._recluster()
        return float(np.mean(losses))

    def known(self, readers: NDArray[np.int64]) -> ModelChoice:
        """The model of the reader's group as it would begin the next round, which clients interpolate in clear."""
        return ModelChoice(self._models(), self.clusters.labels[readers])

    def cold(self, vectors_at: VectorsAt) -> ModelChoice:
        """The group of the nearest centroid, for vectors by the model that the centroids were found under."""
        return ModelChoice(self._models(), nearest(self.clusters.centroids, vectors_at(self.clustered_under)))

    def weights_of(self, model: Blocks) -> SteppedWeights:
        """What a client computes with: in clear, float32."""
        return {
            name: each.reshape(self.start[name].shape).astype(self.start[name].dtype)
            for name, each in self._holder.read(model).items()
        }

    def _models(self) -> list[Weights]:
        models = Models(
            Model(self.weights_of(self.server.shared)),
            tuple(Model(self.weights_of(model)) for model in self.server.groups),
        )
        coefficients = self.personalisation.coefficients(self._rounds + 1, self.layers)
        return [group.weights for group in interpolated(models, self.layers, coefficients).groups]

    def _recluster(self) -> None:
        old = self.clusters.labels
        self.clustered_under = self.weights_of(self.server.shared)
        self.clusters = self._clustered(self.clustered_under, self.clusters.centroids)
        self._encrypt_anew(watch=False)
        size = len(self.first)
        self.server.reinitialise(transitions(old, self.clusters.labels, size, size))

    def _clustered(self, weights: Weights, centroids: NDArray[np.float32]) -> Clusters:
        """Lloyd steps on sums of votes, in the votes' fixed point, some of them under a real key."""
        vectors = unit(self.vectors_at(weights))
        hidden = self.real_voters if self.real_rounds and self._clusterings < REAL_CLUSTERINGS else 0
        for step in range(LLOYD_STEPS):
            under_keys = hidden if step == 0 else 0
            total = summed_votes(centroids, vectors[under_keys:], self.packing.fraction_bits)
            if under_keys:
                total = total + self._opened_votes(centroids, vectors[:under_keys])
            centroids = lloyd_step(total, centroids)
        self._clusterings += 1
        return Clusters(centroids, nearest(centroids, vectors))

    def _opened_votes(self, centroids: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        """[K, D]: these readers' votes, added up unread and opened."""
        cost = self.cost
        began = time.thread_time()
        votes = [self._voters.vote(centroids, vector) for vector in vectors]
        total = self._voters.opened(votes, centroids)
        cost.vote_sec += time.thread_time() - began
        cost.votes += len(votes)
        cost.vote_bytes += sum(vote.size_bytes for vote in votes)
        cost.clusterings += 1
        return total

    def _encrypt_anew(self, watch: bool) -> None:
        holder, server = self._holder, self.server

        def work() -> None:
            server.take(holder.hide(holder.read(server.shared)), [holder.hide(holder.read(g)) for g in server.groups])

        self._timed("fresh_sec", watch, work)

    def _change_key(self) -> None:
        """From real keys to none: the same models, encoded once as before every round."""
        old, self._holder = self._holder, self._with(PlaintextKey())
        server = BlindServer(self._holder.key.public, {}, 0, rate=self.rate)
        server.take(
            self._holder.hide(old.read(self.server.shared)),
            [self._holder.hide(old.read(group)) for group in self.server.groups],
        )
        self.server = server

    def _with(self, key: Opens) -> KeyHolder:
        return KeyHolder(key, self.packing, weight_bound=WEIGHT_BOUND, gradient_bound=GRADIENT_BOUND)

    def _timed(self, name: str, watch: bool, work: Callable[[], T]) -> T:
        began = time.thread_time()
        done = work()
        if watch:
            setattr(self.cost, name, getattr(self.cost, name) + time.thread_time() - began)
        return done


def summed_votes(
    centroids: NDArray[np.floating[Any]], vectors: NDArray[np.floating[Any]], fraction_bits: int
) -> NDArray[np.float64]:
    """[K, D]: what all readers' votes add up to, each coordinate rounded as a vote rounds it."""
    whole = np.rint(np.asarray(vectors, np.float64) * 2**fraction_bits).astype(np.int64)
    total = np.zeros(centroids.shape, np.int64)
    np.add.at(total, nearest(centroids, vectors), whole)
    return np.asarray(total / 2**fraction_bits)


def _size(model: Mapping[str, Any]) -> int:
    return sum(each.size_bytes for each in model.values())
