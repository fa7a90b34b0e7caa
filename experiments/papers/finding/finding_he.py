"""FINDING-HE: a server that computes on encrypted models and gradients and never reads them (FINDING, appendix A).

Clients share one private key. The server does the linear steps of FINDING on ciphertexts: interpolation (eq. 1a), the
SGD steps of Algorithm 1, and eq. 8. Clients do the rest: they decrypt their group's model, compute gradients and find
their nearest centroid. Adam is impossible, because it takes square roots.

What the server learns: sizes, who takes part, n_u, each client's group and the moves between groups. Not protected: one
client and the server together can read everything, since every client has the key. A secure sum has no key that opens
anything but a sum; for that reason and its lower cost, the secure sum is the default.

`EncryptedFinding` is FINDING-HE as a method of the study. Encryption doesn't change results (`PlaintextKey`), so most
rounds run unencrypted through the encoding, packing and steps of `EncryptedServer`. The first few also run through
Paillier, and any difference stops the run. The same is done for the votes of some readers in the first step of the
first two clusterings. The time and bytes of these rounds are the reported cost.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping import (
    Clusters,
    Layers,
    Model,
    Models,
    Personalisation,
    interpolated,
    lloyd_step,
    nearest,
    transitions,
    unit,
)
from backend.federation.optimizers import SteppedWeights, Weights
from experiments.papers.finding.paillier import (
    KEY_BITS,
    CheckedPrivateKey,
    Decryptor,
    Encrypted,
    Evaluator,
    Packing,
    PlaintextKey,
    PrivateKey,
    decrypt,
    encrypt,
    weighted_sum,
)
from experiments.simulation.strategies.method import GradientReaders, ModelChoice, VectorsAt, gradient_of

COEFFICIENT_BITS = 12
"""Fraction bits of lambda and of the rate: each is rounded to a multiple of 2^-12 and uses 12 bits of a slot."""
Blocks = Mapping[str, Encrypted]
"""A model: one vector for each layer, by the layer's name."""


@dataclass(frozen=True)
class EncryptedUpdate:
    """A client's message: its group, n_u, and n_u g under encryption."""

    group: int
    samples: int
    weighted: Blocks


class EncryptedServer:
    """The server of FINDING-HE: holds w_g and the groups' w_k under encryption, and no private key."""

    def __init__(self, key: Evaluator, shared: Blocks, groups: int, *, rate: float) -> None:
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

    def step(self, updates: Sequence[EncryptedUpdate]) -> None:
        """w <- w - rate sum n_u g / sum n_u, for the global model and for each group that has a client.

        Raises CapacityExceeded.
        """
        self.shared = self._stepped(self.shared, updates)
        for group, model in enumerate(self.groups):
            mine = [update for update in updates if update.group == group]
            self.groups[group] = self._stepped(model, mine) if mine else model

    def reinitialise(self, moves: NDArray[np.integer[Any]]) -> None:
        """Equation 8; a group without members gets w_g. Raises CapacityExceeded."""
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
        """Replace the models by the same ones, re-encrypted by a client, because multiplications use up room in the
        slots.
        """
        self.shared, self.groups = shared, list(groups)

    def _stepped(self, model: Blocks, updates: Sequence[EncryptedUpdate]) -> Blocks:
        samples = sum(update.samples for update in updates)
        pace = Fraction(-self._rate, samples)
        return {
            layer: weighted_sum([(1, held), *((pace, update.weighted[layer]) for update in updates)], self._key)
            for layer, held in model.items()
        }


@dataclass(frozen=True)
class KeyHolder:
    """The clients' half. Bounds are public: of weights, and of a gradient, which is clipped to it per coordinate."""

    key: Decryptor
    packing: Packing
    weight_bound: float = 8.0
    gradient_bound: float = 1.0

    def read(self, model: Blocks) -> dict[str, NDArray[np.float64]]:
        return {layer: decrypt(each, self.key) for layer, each in model.items()}

    def hide(self, model: Mapping[str, NDArray[np.floating[Any]]]) -> Blocks:
        """Encrypt a model: the first one, or one whose slots are full (it is rounded to the encoding step)."""
        return {layer: encrypt(each, self.key, self.packing, bound=self.weight_bound) for layer, each in model.items()}

    def gradient(self, group: int, samples: int, gradient: Mapping[str, NDArray[np.floating[Any]]]) -> EncryptedUpdate:
        """Return n_u g, encrypted."""
        bound = self.gradient_bound
        hidden = {
            layer: encrypt(np.clip(each, -bound, bound), self.key, self.packing, bound=bound, weight=samples)
            for layer, each in gradient.items()
        }
        return EncryptedUpdate(group, samples, hidden)

    def vote(self, centroids: NDArray[np.floating[Any]], vector: NDArray[np.floating[Any]]) -> Encrypted:
        """Return an encrypted vote: the reader's unit vector [D] in the row of its nearest centroid, zeros elsewhere.

        All K rows are encrypted, so the server can't see which of them is not zero.
        """
        rows = np.zeros((len(centroids), len(vector) + 1))
        group = int(nearest(centroids, vector[None])[0])
        rows[group, :-1], rows[group, -1] = vector, 1.0
        return encrypt(rows, self.key, self.packing, bound=1.0)

    def centroids(self, votes: Sequence[Encrypted], before: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Return the Lloyd step from the encrypted sum of votes."""
        return lloyd_step(self.opened(votes, before), before)

    def opened(self, votes: Sequence[Encrypted], before: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Decrypt the sum [K, D] of votes."""
        total = decrypt(weighted_sum([(1, vote) for vote in votes], self.key.public), self.key)
        rows: NDArray[np.float64] = total.reshape(len(before), -1)
        return rows[:, :-1]


def rounded(share: float) -> Fraction:
    return Fraction(round(share * 2**COEFFICIENT_BITS), 2**COEFFICIENT_BITS)


PACKING = Packing(KEY_BITS, slot_bits=64)
"""31 numbers a ciphertext. A round takes 59 bits: 16 of the fraction, 7 of a weight, 12 of lambda, 12 of the rate, 11
of a cohort's samples, and the sign; so clients encrypt the models again before each round, and before formula 8."""
WEIGHT_BOUND, GRADIENT_BOUND = 64.0, 1.0
LLOYD_STEPS = 5
REAL_CLUSTERINGS = 2
T = TypeVar("T")


@dataclass
class Cost:
    """Cost of rounds with real keys, in processor seconds of one thread; clients' costs are summed over a cohort."""

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
        """Return the cost as a sentence for the table; '' if no round used real keys."""
        if not self.rounds:
            return ""
        return self._of_rounds() + (self._of_votes() if self.votes else "")

    def _of_votes(self) -> str:
        return (
            f". {self.votes} votes in {self.clusterings} clusterings decrypted to the plain sums: "
            f"{self.vote_sec / self.votes:.2f} s and {self.vote_bytes / self.votes:,.0f} bytes a vote"
        )

    def _of_rounds(self) -> str:
        return (
            f"{self.rounds} rounds under {KEY_BITS}-bit keys decrypted to the same integers; a reader took "
            f"{self.client_sec / self.readers:.2f} s, sent {self.up_bytes / self.readers:,.0f} bytes and got "
            f"{self.down_bytes / self.readers:,.0f}; a round took the server {self.server_sec / self.rounds:.1f} s, "
            f"and one client {self.fresh_sec / self.rounds:.1f} s to encrypt all models again"
        )


@dataclass
class EncryptedFinding:
    """A `Method`: FINDING by SGD; the server holds ciphertexts and clients do the nonlinear steps.

    Args:
        rate: SGD's rate, rounded as the server rounds it; Adam's roots are impossible on ciphertexts.
        first: initial centroids [K, D], which do not depend on readers.
        recluster_every: T.
        real_rounds: number of rounds, from the first, that also run with a real key.
        real_voters: number of readers whose votes do so in the first step of the first two clusterings, if any round
        does.
        make_key: generates the key.
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
        self.server = EncryptedServer(self._holder.key.public, hidden, len(self.first), rate=self.rate)
        self.clusters = self._clustered(self.start, self.first)
        self.clustered_under: Weights = self.start

    def run_round(self, number: int, cohort: Sequence[int]) -> float:
        """Run one round; one of the first runs with the real key, too."""
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
        """Return the reader's group's model at the start of the next round.

        Clients interpolate unencrypted.
        """
        return ModelChoice(self._models(), self.clusters.labels[readers])

    def cold(self, vectors_at: VectorsAt) -> ModelChoice:
        """Return the group of the nearest centroid, for vectors by the model used in the last clustering."""
        return ModelChoice(self._models(), nearest(self.clusters.centroids, vectors_at(self.clustered_under)))

    def weights_of(self, model: Blocks) -> SteppedWeights:
        """Return the decrypted weights with which a client computes, float32."""
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
        """Run Lloyd steps on sums of votes, in the votes' fixed point, some of them with a real key."""
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
        """Sum these readers' encrypted votes, and decrypt the sum: [K, D]."""
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
        """Continue without real keys: the same models, encoded as before every round."""
        old, self._holder = self._holder, self._with(PlaintextKey())
        server = EncryptedServer(self._holder.key.public, {}, 0, rate=self.rate)
        server.take(
            self._holder.hide(old.read(self.server.shared)),
            [self._holder.hide(old.read(group)) for group in self.server.groups],
        )
        self.server = server

    def _with(self, key: Decryptor) -> KeyHolder:
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
    """Return the sum of all readers' votes [K, D]; each coordinate is rounded as in a vote."""
    whole = np.rint(np.asarray(vectors, np.float64) * 2**fraction_bits).astype(np.int64)
    total = np.zeros(centroids.shape, np.int64)
    np.add.at(total, nearest(centroids, vectors), whole)
    return np.asarray(total / 2**fraction_bits)


def _size(model: Mapping[str, Any]) -> int:
    return sum(each.size_bytes for each in model.values())
