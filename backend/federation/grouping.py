"""FINDING's groups: clusters of readers, prototypes that follow their sums, and a model for each group.

Readers are clustered by the vectors that the global model gives them (section 4.2). Prototypes follow a noisy sum of
their readers' vectors, as far as the noise allows. Group models stand next to a global model: steps, re-initialisation
and interpolation.

Source: FINDING, Algorithm 1 and eq. 8, and for the interpolation section 4.1.2: w'_k = lambda(t, i) w_k +
(1 - lambda(t, i)) w_g (eq. 1a, with lambda(t, i) of eqs. 4 to 7). Weights and optimizer moments are combined with the
same coefficients, so that the moments still belong to the weights. The paper does not mention moments; its code does
the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import faiss
import numpy as np
from numpy.typing import NDArray

from backend.federation.optimizers import Gradient, Memory, MemoryOptimizer, SteppedWeights, Weights

ITERATIONS, STARTS = 25, 10
"""The library starts from random readers; the start with the tightest groups is kept."""
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Clusters:
    """Centroids [K, D] of length 1, and the group [n] of each clustered vector."""

    centroids: NDArray[np.float32]
    labels: Labels


def unit(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Scale rows to length 1; a zero row, that of a reader without clicks, stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    found = np.divide(vectors, lengths, out=np.zeros_like(vectors, dtype=np.float64), where=lengths > 0)
    return np.asarray(found, dtype=np.float32)


def cluster(vectors: NDArray[np.floating[Any]], groups: int, *, seed: int) -> Clusters:
    """Return K-means clusters of vectors [n, D] by cosine similarity, determined by the seed.

    Deviation from the paper, which clusters vectors unnormalised: here only directions count, so that a device finds
    its group by an inner product and no reader has more weight for a longer vector. Raises ValueError for fewer vectors
    than groups.
    """
    if not 1 <= groups <= len(vectors):
        raise ValueError(f"groups: from 1 to the {len(vectors)} readers, got {groups}")
    rows = np.ascontiguousarray(unit(vectors))
    means = faiss.Kmeans(
        rows.shape[1],
        groups,
        niter=ITERATIONS,
        nredo=STARTS,
        seed=seed,
        spherical=True,
        min_points_per_centroid=1,
        max_points_per_centroid=len(rows),
    )
    means.train(rows)
    centroids = unit(np.asarray(means.centroids))
    return Clusters(centroids, nearest(centroids, rows))


def nearest(centroids: NDArray[np.floating[Any]], vectors: NDArray[np.floating[Any]]) -> Labels:
    """Return for each vector [n, D] the centroid with the largest inner product.

    Ties go to the first, so a zero vector belongs to group 0. This is also a new reader's group if the vector comes
    from the model that the centroids were computed with.
    """
    found: Labels = np.argmax(np.asarray(vectors) @ np.asarray(centroids).T, axis=1).astype(np.int64)
    return found


def lloyd_step(sums: NDArray[np.floating[Any]], centroids: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Return centroids [K, D] from each group's sum of unit vectors [K, D].

    A group whose sum is zero keeps its centroid. This is the step that K-means repeats; from sums alone it needs no
    single reader's vector.
    """
    moved = unit(sums)
    empty = ~moved.any(axis=1)
    moved[empty] = np.asarray(centroids, dtype=np.float32)[empty]
    return moved


def transitions(old: Labels, new: Labels, old_groups: int, new_groups: int) -> NDArray[np.int64]:
    """Return M [old_groups, new_groups]: how many readers moved from group i to group j.

    Raises ValueError for a label out of range.
    """
    if old.shape != new.shape:
        raise ValueError(f"labels: must be of the same readers, got shapes {old.shape} and {new.shape}")
    for name, labels, groups in (("old", old, old_groups), ("new", new, new_groups)):
        if len(labels) and not (labels.min() >= 0 and labels.max() < groups):
            raise ValueError(f"{name} labels: from 0 to {groups - 1}, got {labels.min()} to {labels.max()}")
    moves = np.zeros((old_groups, new_groups), dtype=np.int64)
    np.add.at(moves, (old, new), 1)
    return moves


def kept_names(moves: NDArray[np.int64]) -> Labels:
    """Return an old name for each new group, [K], so that most readers keep their group's name.

    It is the Hungarian assignment of the square M. Only names change: the set of models of eq. 8 stays the same.
    """
    from scipy.optimize import linear_sum_assignment  # slow import, not needed by every server

    old, new = linear_sum_assignment(moves, maximize=True)
    names = np.empty(len(moves), dtype=np.int64)
    names[new] = old
    return names


def renamed(found: Clusters, names: Labels) -> Clusters:
    """Return the same groups with group j renamed to names[j]; names: a permutation."""
    centroids = np.empty_like(found.centroids)
    centroids[names] = found.centroids
    return Clusters(centroids, names[found.labels])


Floats = NDArray[np.float64]

FIRST_LENGTH = 0.7
"""The assumed length of the mean of a group's unit vectors before any were seen."""
FIRST_VARIANCE = 0.5
"""The assumed mean squared distance of a group's true mean from its first prototype, a topic's centroid."""
SCATTER = 1 - FIRST_LENGTH**2
"""Mean squared distance of a group's readers from their mean."""
DRIFT = 0.01
"""Squared distance that a mean may move between two rounds, since articles and readers change."""
SHARE_MEMORY = 0.9
"""The weight of earlier rounds' counts relative to the new one's."""


@dataclass(frozen=True)
class Drift:
    """The estimate of K groups by a Kalman filter.

    It holds the means [K, D] of the groups, which lie in a subspace of `axes` directions, with variances [K] along
    each; and the members [K] of `readers`, with the variance of each, accumulated over rounds. noises [K] is the part
    of the mechanism's noise in the means, also as a variance along each direction.

    The sum s of a group with m readers is modelled as m mu + noise, where the noise has variance m nu^2 from the
    readers about mu and sigma^2 from the mechanism. m is noisy, too: it is shrunk towards an even share of the cohort,
    and its remaining uncertainty counts as noise. If the noise is large, the estimate hardly moves, so a cohort that is
    too small for its budget spends budget and does little harm.
    """

    means: Floats
    variances: Floats
    members: Floats
    members_variance: float
    readers: float
    noises: Floats
    axes: int

    @classmethod
    def begin(cls, prototypes: NDArray[np.float32], *, axes: int | None = None) -> Self:
        """Return the estimate at prototypes [K, D] of length 1, before any reader was seen.

        axes: D unless given.
        """
        K, D = prototypes.shape
        axes = D if axes is None else axes
        return cls(
            FIRST_LENGTH * prototypes.astype(np.float64),
            np.full(K, FIRST_VARIANCE / axes),
            np.zeros(K),
            0.0,
            0.0,
            np.zeros(K),
            axes,
        )

    @property
    def prototypes(self) -> NDArray[np.float32]:
        """The prototypes [K, D], rows of length 1."""
        return unit(self.means)

    def apart(self, share: float) -> NDArray[np.float32]:
        """Return the means less `share` of the mean of all readers, [K, D], rows of length 1.

        The mean of all readers is what they have in common. A share of 0 gives `prototypes`.
        """
        return unit(self.means - share * (self.shares() @ self.means))

    def noise_share(self) -> float:
        """Return how much of the distance between groups is the mechanism's noise, from 0 to 1.

        It is the noise's share of the squared length of each mean less the mean of means, averaged over the groups. The
        noise in the means is known exactly, since the filter is linear. The groups have equal weight here, so that
        noisy member counts don't look like a distance between groups.
        """
        lengths = np.square(self.means - self.means.mean(axis=0)).sum(axis=1)
        return float(np.minimum(self.axes * self.noises / np.maximum(lengths, 1e-12), 1.0).mean())

    def seen(
        self, sums: Floats, members: Floats, readers: int, *, sums_variance: float, members_variance: float
    ) -> Self:
        """Return the estimate after a round with this many readers.

        sums: [K, D] of the groups' unit vectors, projected onto the `axes`. members: counts [K]. sums_variance and
        members_variance: variance of the noise on each number. Raises ValueError for other shapes or values that are
        not finite.
        """
        K, D = self.means.shape
        if sums.shape != (K, D) or members.shape != (K,):
            raise ValueError(f"sums, members: [{K}, {D}] and [{K}], got {sums.shape} and {members.shape}")
        if not (np.isfinite(sums).all() and np.isfinite(members).all()):
            raise ValueError("sums, members: not finite")
        even = readers / K
        trust = even**2 / (even**2 + members_variance)
        counted = np.maximum(even + trust * (members - even), 0.0)
        variances = self.variances + DRIFT / self.axes
        miscounted = trust * members_variance * np.square(self.means).sum(axis=1) / self.axes
        spread = counted**2 * variances + counted * (SCATTER / self.axes) + miscounted + sums_variance
        gain = np.divide(variances * counted, spread, out=np.zeros(K), where=spread > 0)
        return type(self)(
            self.means + gain[:, None] * (sums - counted[:, None] * self.means),
            variances * (1 - gain * counted),
            SHARE_MEMORY * self.members + members,
            SHARE_MEMORY**2 * self.members_variance + members_variance,
            SHARE_MEMORY * self.readers + readers,
            np.square(1 - gain * counted) * self.noises + np.square(gain) * (miscounted + sums_variance),
            self.axes,
        )

    def shares(self) -> Floats:
        """Return the share of readers near each prototype, [K].

        Shares are shrunk towards even ones by the noise. The shares add up to 1. No share is below a tenth of an even
        one, so that a noisy count can't make Bayes' rule exclude a prototype.
        """
        K = len(self.members)
        even = self.readers / K
        if even == 0:
            return np.full(K, 1 / K)
        trust = even**2 / (even**2 + self.members_variance)
        drawn = np.maximum(even + trust * (self.members - even), 0.1 * even)
        return np.asarray(drawn / drawn.sum(), dtype=np.float64)


@dataclass(frozen=True)
class Model:
    """Weights, and the optimizer's state for them."""

    weights: Weights
    memory: Memory = field(default_factory=Memory)


@dataclass(frozen=True)
class Models:
    """The global model w_g and the K group models w_k."""

    shared: Model
    groups: tuple[Model, ...]

    @classmethod
    def alike(cls, weights: Weights, groups: int) -> Models:
        """Return the initial models: every group's model is the global one.

        Raises ValueError for no group.
        """
        if groups < 1:
            raise ValueError(f"groups: at least 1, got {groups}")
        shared = Model(weights)
        return cls(shared, (shared,) * groups)

    def stepped(self, optimizer: MemoryOptimizer, total: Gradient, by_group: Mapping[int, Gradient]) -> Models:
        """Return the models after a step: the global one along `total`, each group along its mean.

        total: the mean gradient of all clients. A group that is not in `by_group` had no client and stays unchanged.
        Interpolate the groups first (`interpolated`). Raises ValueError for a group that does not exist.
        """
        for group in by_group:
            if not 0 <= group < len(self.groups):
                raise ValueError(f"group: 0 to {len(self.groups) - 1}, got {group}")
        return Models(
            _step(self.shared, optimizer, total),
            tuple(
                _step(model, optimizer, by_group[group]) if group in by_group else model
                for group, model in enumerate(self.groups)
            ),
        )

    def reinitialised(self, moves: NDArray[np.floating[Any] | np.integer[Any]]) -> Models:
        """Return new groups as averages of the old ones, weighted by how many readers moved.

        w_j = sum_i M_ij w_i / sum_i M_ij (eq. 8).

        moves: M [old groups, new groups], not negative. A new group that nobody moved to gets the global model; there
        the formula is 0/0, and the paper's code gives NaN. Raises ValueError for another shape or a negative count.
        """
        counts = np.asarray(moves, dtype=np.float64)
        if counts.ndim != 2 or counts.shape[0] != len(self.groups) or not counts.shape[1] or (counts < 0).any():
            raise ValueError(
                f"moves: expected counts >= 0 of {len(self.groups)} old groups by new group, got shape {counts.shape}"
            )
        sizes = counts.sum(axis=0)
        return Models(
            self.shared,
            tuple(
                _average(self.groups, counts[:, new] / sizes[new]) if sizes[new] > 0 else self.shared
                for new in range(counts.shape[1])
            ),
        )


def _step(model: Model, optimizer: MemoryOptimizer, gradient: Gradient) -> Model:
    weights, memory = optimizer.advance(model.weights, gradient, model.memory)
    return Model(weights, memory)


def _average(models: tuple[Model, ...], parts: NDArray[np.float64]) -> Model:
    """Return the weighted average of the models; parts: [models], adding up to 1."""
    first = models[0]
    weights: SteppedWeights = {
        name: np.asarray(
            sum(part * model.weights[name].astype(np.float64) for part, model in zip(parts, models, strict=True)),
            dtype=value.dtype,
        )
        for name, value in first.weights.items()
    }
    names = {name for model in models for name in model.memory.tensors}
    known = {name: next(model for model in models if name in model.memory.tensors) for name in names}
    moments = {
        name: np.asarray(
            sum(part * _moment(model, name, known[name]) for part, model in zip(parts, models, strict=True)),
            dtype=np.float64,
        )
        for name in names
    }
    steps = round(float(np.dot(parts, [model.memory.steps for model in models])))
    return Model(weights, Memory(steps, moments))


def _moment(model: Model, name: str, like: Model) -> NDArray[np.float64]:
    """Return a moment, or zeros if the model has not stepped yet."""
    found = model.memory.tensors.get(name)
    return np.zeros_like(like.memory.tensors[name]) if found is None else found


@dataclass(frozen=True)
class Layers:
    """Prefixes of parameter names in definition order, the bottom layer first.

    Layers are named explicitly, since a file of weights does not keep the order of definition.

    Args:
        prefixes: `attention` matches `attention.query.weight` and all other names that begin with `attention.` or
            equal it.
        frozen_below: number of frozen layers below these, such as those of a frozen news encoder. They count in N
            and i, so that the trained layers get the same coefficients as in the whole model.
    """

    prefixes: tuple[str, ...]
    frozen_below: int = 0

    def __post_init__(self) -> None:
        if not self.prefixes or len(set(self.prefixes)) != len(self.prefixes):
            raise ValueError(f"prefixes: distinct names, at least one, got {self.prefixes}")
        if self.frozen_below < 0:
            raise ValueError(f"frozen_below: at least 0, got {self.frozen_below}")

    def __len__(self) -> int:
        """Return the number of trained layers."""
        return len(self.prefixes)

    @property
    def depth(self) -> int:
        """N, including the frozen layers."""
        return len(self.prefixes) + self.frozen_below

    def place(self, parameter: str) -> int:
        """Return the index of a parameter's trained layer, from 0.

        Raises ValueError if the parameter belongs to no layer or to several.
        """
        found = [
            place
            for place, prefix in enumerate(self.prefixes)
            if parameter == prefix or parameter.startswith(prefix + ".")
        ]
        if len(found) != 1:
            raise ValueError(
                f"parameter {parameter}: must be in one layer, is in {len(found)} of {', '.join(self.prefixes)}"
            )
        return found[0]


class Personalisation(Protocol):
    """Gives lambda for every trained layer, the bottom one first."""

    def coefficients(self, round_number: int, layers: Layers) -> NDArray[np.float64]:
        """Return [len(layers)] from 0, all global, to 1, all the group's own.

        Rounds are counted from 1.
        """


@dataclass(frozen=True)
class TimeAndLayer:
    """lambda(t, i) = g(t) h(i), g(t) = 1 - alpha^-t, h(i) = ((i + 1) / N)^beta, i = 0 the bottom layer.

    The paper's alpha = 1.0003 is meant for 12,000 rounds: g is 0.044 after 150 rounds and 0.5 after 2,311.
    """

    alpha: float = 1.0003
    beta: float = 0.5

    def __post_init__(self) -> None:
        if not self.alpha > 1:
            raise ValueError(f"alpha: above 1, got {self.alpha}")
        if not self.beta >= 0:
            raise ValueError(f"beta: at least 0, got {self.beta}")

    def of_time(self, round_number: int) -> float:
        """Return g(t)."""
        return float(-np.expm1(-round_number * np.log(self.alpha)))

    def of_layers(self, layers: Layers) -> NDArray[np.float64]:
        """Return h(i) of the trained layers."""
        from_bottom = np.arange(layers.frozen_below, layers.depth, dtype=np.float64)
        found: NDArray[np.float64] = ((from_bottom + 1) / layers.depth) ** self.beta
        return found

    def coefficients(self, round_number: int, layers: Layers) -> NDArray[np.float64]:
        """Return g(t) h(i)."""
        return self.of_time(round_number) * self.of_layers(layers)


@dataclass(frozen=True)
class Constant:
    """The same lambda for all rounds and layers.

    0 is vanilla federated learning, 1 is clustered learning.
    """

    coefficient: float

    def __post_init__(self) -> None:
        if not 0 <= self.coefficient <= 1:
            raise ValueError(f"coefficient: from 0 to 1, got {self.coefficient}")

    def coefficients(self, round_number: int, layers: Layers) -> NDArray[np.float64]:
        """Return the constant for each layer."""
        return np.full(len(layers), self.coefficient)


def interpolated(models: Models, layers: Layers, coefficients: NDArray[np.float64]) -> Models:
    """Return every group at w'_k = lambda w_k + (1 - lambda) w_g, layer by layer.

    coefficients: lambda [len(layers)]. A moment uses its parameter's lambda. The number of steps, which corrects the
    bias of moments, uses the mean lambda and is rounded; it only differs if a group had rounds without a client. Raises
    ValueError for invalid coefficients.
    """
    return Models(models.shared, tuple(_mixed(group, models.shared, layers, coefficients) for group in models.groups))


def _mixed(own: Model, shared: Model, layers: Layers, coefficients: NDArray[np.float64]) -> Model:
    if coefficients.shape != (len(layers),) or (coefficients < 0).any() or (coefficients > 1).any():
        raise ValueError(f"coefficients: {len(layers)} numbers from 0 to 1, got {coefficients}")
    weights: SteppedWeights = {
        name: _blend(value, shared.weights[name], float(coefficients[layers.place(name)]))
        for name, value in own.weights.items()
    }
    moments = {}
    for name in own.memory.tensors.keys() | shared.memory.tensors.keys():
        coefficient = float(coefficients[layers.place(name.split(".", 1)[1])])
        mine, theirs = _moment(own, name, shared), _moment(shared, name, own)
        moments[name] = coefficient * mine + (1 - coefficient) * theirs
    mean = float(coefficients.mean())
    return Model(weights, Memory(round(mean * own.memory.steps + (1 - mean) * shared.memory.steps), moments))


def _blend(own: NDArray[Any], shared: NDArray[Any], coefficient: float) -> NDArray[Any]:
    """Return the interpolated array; exact at both ends: `own` at 1, `shared` at 0."""
    mixed = coefficient * own.astype(np.float64) + (1 - coefficient) * shared.astype(np.float64)
    return np.asarray(mixed, dtype=own.dtype)
