"""Efficient-FedRec with a frozen BERT: only the article model's head trains on the device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.errors import GraphMismatch, NotEligible
from device_app.ranking.session import costs_of
from device_app.training.gradients import GradientFn, OnnxGradients, Params
from device_app.training.tasks.news_gradient import NewsGradientTask
from device_app.training.tasks.task import TaskInputs
from protocol.pooled_states import BIAS, GRAPH, HEAD, SHARDS, WEIGHT, joined_states, unpack_head
from protocol.tensors import TensorError


@dataclass(frozen=True)
class PooledNews:
    """The head, and its inputs: pooled states, one row per article (eq. 6).

    Args:
        parameters: the head's parameters, weight float32 [D, S] and bias [D].
        graph: (pooled [n, S], slopes G [n, D]) -> g.<parameter>, the head's gradient, and g.slopes [n, D], the vectors.
        row_of: row of `states` by article id.
        states: float16 [n, S], from all shards.
    """

    parameters: Params
    graph: GradientFn
    row_of: Mapping[str, int]
    states: NDArray[np.float16]

    def product(self, rows: Sequence[int], slopes: NDArray[np.float32]) -> Params:
        return self.graph(self.parameters, {"pooled": self.states[rows].astype(np.float32), "slopes": slopes}).tensors


def head_gradient_task(inputs: TaskInputs) -> NewsGradientTask:
    """Make the task on all shards of the round. Raises NotEligible if the round's data are unavailable or invalid."""
    manifest, release = inputs.manifest, inputs.release.manifest
    assert manifest.model is not None, "a task of a role has a model"
    graph = inputs.materials(GRAPH)
    shards = [inputs.materials(name) for name in sorted(manifest.materials) if name.startswith(SHARDS)]
    try:
        costs_of(graph)
        head = unpack_head(inputs.materials(HEAD), release.dimensions)
        row_of, states = joined_states(shards, head[WEIGHT].shape[1])
    except (TensorError, GraphMismatch) as broken:
        raise NotEligible(f"the round's head or its states are malformed: {broken}") from broken
    return NewsGradientTask(
        news=PooledNews({name: head[name] for name in (WEIGHT, BIAS)}, OnnxGradients(graph), row_of, states),
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
        features=release.models[manifest.model].features,
    )
