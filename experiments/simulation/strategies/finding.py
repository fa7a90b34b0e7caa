"""FINDING (CIKM 2023): group models between the global model and a reader's own (Algorithm 1).

Rounds are numbered from 0 here and t = number + 1 in the formulas. Order in a round: interpolate, train, cluster, as in
the paper; its code clusters before it trains.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping import (
    Clusters,
    Layers,
    Models,
    Personalisation,
    cluster,
    interpolated,
    kept_names,
    nearest,
    renamed,
    transitions,
)
from backend.federation.optimizers import MemoryOptimizer, Weights
from experiments.simulation.strategies.method import GradientReaders, ModelChoice, RunningMean, VectorsAt, gradient_of

ClusterFunction = Callable[[NDArray[np.float32]], Clusters]


def k_means(groups: int, seed: int) -> ClusterFunction:
    """Return the paper's clustering, k-means with this seed, as a function of the vectors."""
    return lambda vectors: cluster(vectors, groups, seed=seed)


class Finding:
    """A `Method`.

    Args:
        groups: K.
        personalisation: lambda(t, i) over `layers`.
        recluster_every: T; above the number of rounds, readers stay in their first group.
        interp_every: rounds from one interpolation to the next: 1 in the paper, 10 in its code.
        vectors_at: the vectors of all training readers, by reader.
    """

    def __init__(
        self,
        readers: GradientReaders,
        weights: Weights,
        optimizer: MemoryOptimizer,
        *,
        groups: int,
        personalisation: Personalisation,
        layers: Layers,
        recluster_every: int,
        vectors_at: VectorsAt,
        clustering: ClusterFunction,
        interp_every: int = 1,
    ) -> None:
        for name, value in (("recluster_every", recluster_every), ("interp_every", interp_every)):
            if value < 1:
                raise ValueError(f"{name}: at least 1, got {value}")
        self._readers, self._optimizer, self._layers = readers, optimizer, layers
        self._personalisation, self._interp_every = personalisation, interp_every
        self._recluster_every, self._vectors_at, self._clustering = recluster_every, vectors_at, clustering
        self._rounds = 0
        self.models = Models.alike(weights, groups)
        self.clusters = clustering(vectors_at(weights))
        self.clustered_under: Weights = weights
        """w_g when the centroids were found: a new reader's vector must be computed with it."""
        self.moves: tuple[int, ...] = ()
        """How many readers changed their group at each clustering after the first (figure 6)."""

    def run_round(self, number: int, cohort: Sequence[int]) -> float:
        """Interpolate, step, and cluster again every T rounds."""
        self.models = self._ready(number + 1)
        total, losses = RunningMean(), []
        by_group: dict[int, RunningMean] = {}
        for reader in cohort:
            group = int(self.clusters.labels[reader])
            update = self._readers.update(self.models.groups[group].weights, reader, number)
            for mean in (total, by_group.setdefault(group, RunningMean())):
                mean.add(gradient_of(update), update.samples)
            losses.append(update.loss)
        means = {group: mean.value() for group, mean in by_group.items()}
        self.models = self.models.stepped(self._optimizer, total.value(), means)
        self._rounds = number + 1
        if self._rounds % self._recluster_every == 0:
            self._recluster()
        return float(np.mean(losses))

    def known(self, readers: NDArray[np.int64]) -> ModelChoice:
        """Return the model of the reader's group at the start of the next round.

        With lambda = 0 that is w_g, while the stored w_k has made one step of its own (5.5).
        """
        return ModelChoice(self._evaluated(), self.clusters.labels[readers])

    def cold(self, vectors_at: VectorsAt) -> ModelChoice:
        """Return the group of the nearest centroid, for vectors by the model used in the last clustering."""
        return ModelChoice(self._evaluated(), nearest(self.clusters.centroids, vectors_at(self.clustered_under)))

    def _ready(self, moment: int) -> Models:
        if moment % self._interp_every:
            return self.models
        return interpolated(self.models, self._layers, self._personalisation.coefficients(moment, self._layers))

    def _evaluated(self) -> list[Weights]:
        return [group.weights for group in self._ready(self._rounds + 1).groups]

    def _recluster(self) -> None:
        old, groups = self.clusters.labels, len(self.models.groups)
        self.clustered_under = self.models.shared.weights
        found = self._clustering(self._vectors_at(self.clustered_under))
        self.clusters = renamed(found, kept_names(transitions(old, found.labels, groups, groups)))
        flows = transitions(old, self.clusters.labels, groups, groups)
        self.moves += (int(flows.sum() - flows.trace()),)
        self.models = self.models.reinitialised(flows)
