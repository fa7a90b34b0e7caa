"""CFL (Sattler et al. 2020): a group whose members' gradients diverge is split in two, repeatedly.

When |mean update| < e1 and max |update| > e2 (the paper's epsilon_1 and epsilon_2), the members present are split so
that the largest cosine between the two sides is as small as possible. Absent members are assigned to a side by their
gradient at the model of each split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from backend.federation.grouping import Model
from backend.federation.optimizers import MemoryOptimizer, Weights
from experiments.simulation.strategies.method import GradientReaders, ModelChoice, RunningMean, VectorsAt, gradient_of

PLACING_ROUND = 1_000_000
"""The round whose draws assign a reader to a leaf; outside the training's rounds."""


@dataclass
class _Node:
    """A group; once split, its model is frozen and directions [2, n] point to the two sides."""

    model: Model
    sides: tuple[_Node, _Node] | None = None
    directions: NDArray[np.float64] | None = None


class Cfl:
    """A `Method`.

    Args:
        e1: the maximal L2 norm of the mean update in a group that may split.
        e2: the minimal L2 norm of its longest update.
        after: rounds before the first split; early means are long for every reader.
        least: members present that a split needs.
    """

    def __init__(
        self,
        readers: GradientReaders,
        weights: Weights,
        optimizer: MemoryOptimizer,
        *,
        e1: float,
        e2: float,
        after: int = 0,
        least: int = 4,
    ) -> None:
        self._readers, self._optimizer = readers, optimizer
        self._e1, self._e2, self._after, self._least = e1, e2, after, max(2, least)
        self._root = _Node(Model(weights))
        self._at: dict[int, _Node] = {}

    @property
    def leaves(self) -> list[_Node]:
        found, open_ = [], [self._root]
        while open_:
            node = open_.pop()
            if node.sides is None:
                found.append(node)
            else:
                open_ += reversed(node.sides)
        return found

    def run_round(self, number: int, cohort: Sequence[int]) -> float:
        """Step every group that has readers in the cohort, and split it if the criterion holds."""
        members: dict[int, list[int]] = {}
        nodes = {}
        for reader in cohort:
            node = self._leaf(reader)
            nodes[id(node)] = node
            members.setdefault(id(node), []).append(reader)
        losses: list[float] = []
        for key, readers in members.items():
            losses += self._step(nodes[key], number, readers)
        return float(np.mean(losses))

    def known(self, readers: NDArray[np.int64]) -> ModelChoice:
        """Return the model of the leaf that a reader's gradients lead to."""
        leaves = self.leaves
        places = {id(leaf): place for place, leaf in enumerate(leaves)}
        which = [places[id(self._leaf(int(reader)))] for reader in readers]
        return ModelChoice([leaf.model.weights for leaf in leaves], np.array(which, dtype=np.int64))

    def cold(self, vectors_at: VectorsAt) -> ModelChoice:
        """Return the mean of the leaves, weighted by their readers: without gradients, a reader can't be led down the
        tree.
        """
        mean = RunningMean()
        for leaf in self.leaves:
            mean.add(leaf.model.weights, 1e-9 + sum(node is leaf for node in self._at.values()))
        like = self._root.model.weights
        weights = {name: np.asarray(value, dtype=like[name].dtype) for name, value in mean.value().items()}
        return ModelChoice.one(weights, len(vectors_at(weights)))

    def _step(self, node: _Node, number: int, readers: Sequence[int]) -> list[float]:
        mean, losses, rows = RunningMean(), [], []
        for reader in readers:
            update = self._readers.update(node.model.weights, reader, number)
            gradient = gradient_of(update)
            mean.add(gradient, update.samples)
            rows.append(_flat(gradient))
            losses.append(update.loss)
        node.model = Model(*self._optimizer.advance(node.model.weights, mean.value(), node.model.memory))
        updates = np.stack(rows)
        lengths = np.linalg.norm(updates, axis=1)
        apart = np.linalg.norm(_flat(mean.value())) < self._e1 and lengths.max() > self._e2
        if number >= self._after and len(readers) >= self._least and lengths.min() > 0 and apart:
            self._split(node, readers, updates / lengths[:, None])
        return losses

    def _split(self, node: _Node, readers: Sequence[int], directions: NDArray[np.float64]) -> None:
        side = bipartition(directions @ directions.T)
        node.sides = (_Node(node.model), _Node(node.model))
        node.directions = np.stack([directions[side == each].mean(axis=0) for each in (0, 1)])
        for reader, each in zip(readers, side, strict=True):
            self._at[reader] = node.sides[int(each)]

    def _leaf(self, reader: int) -> _Node:
        node = self._at.get(reader, self._root)
        while node.sides is not None:
            assert node.directions is not None
            gradient = _flat(gradient_of(self._readers.update(node.model.weights, reader, PLACING_ROUND)))
            node = node.sides[int(np.argmax(node.directions @ gradient / np.linalg.norm(node.directions, axis=1)))]
        self._at[reader] = node
        return node


def bipartition(similarity: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return sides 0 and 1 [n] with the smallest possible largest cross similarity; similarity [n, n], n at least 2.

    Single linkage cut at two clusters: it joins the most similar pair first, so the similarity between the last two
    clusters is the least that any cut can have.
    """
    distance = 1.0 - (similarity + similarity.T) / 2
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(np.maximum(distance, 0.0), checks=False), method="single")
    return (fcluster(tree, 2, criterion="maxclust") - 1).astype(np.int64)


def _flat(tensors: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate([tensors[name].reshape(-1) for name in sorted(tensors)])
