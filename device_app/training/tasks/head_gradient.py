"""Efficient-FedRec on a device where only the head trains: gradients of the user model and of the head, and of no news.

With BERT and its pooling standing still, the paper's step needs dL/de of each news (eq. 3) only to multiply it with the
news' pooled state (eq. 6). The states are public, so the device does that itself, and what leaves it says nothing of
single news: there is no union of news to make, and no row of one reader's alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.errors import GraphMismatch, NotEligible
from device_app.ranking.session import costs_of
from device_app.training.gradients import GRADIENT_PREFIX, GradientFn, OnnxGradients, Params
from device_app.training.samples import RowSource, SampleSource
from device_app.training.tasks.split_gradient import TABLE, table_batch
from device_app.training.tasks.task import Shapes, TaskInputs, Update, gradient_shapes, pooled_gradient
from device_app.wire.pooled_states import BIAS, GRAPH, HEAD, SHARDS, WEIGHT, joined_states, unpack_head
from device_app.wire.tensors import TensorError

NEWS_MODEL = "news."
"""Stands before the names of the head's parameters in an update, after `g.`."""
VECTORS = "g.slopes"
"""Output of the head's graph: its gradient for its input `slopes` (gradients of news vectors): the vectors."""


@dataclass(frozen=True)
class HeadGradientTask:
    """dL_u/dw of the user model and of the head, for the mean loss over the reader's n_u samples.

    News of the round's shards have the vectors that the head makes of their states, here as in the gradient. News that
    are in none have left the pool: their vectors, which the device holds, are constants of the loss. So no sample is
    lost.

    Args:
        head: its parameters, weight float32 [D, S] and bias [D].
        product: the graph (pooled [n, S], slopes G [n, D]) -> g.<parameter>, the head's gradient, and g.slopes [n, D],
            the vectors.
        row_of: by news id, the row of `states`.
        states: float16 [n, S], of all shards.
        negatives: K.
        samples_limit: most samples used.
        features: what the graph's input `features` holds, in order; none for a graph without that input.
    """

    head: Params
    product: GradientFn
    row_of: Mapping[str, int]
    states: NDArray[np.float16]
    negatives: int
    samples_limit: int
    features: tuple[str, ...] = ()

    def shapes(self, params: Params) -> Shapes:
        """A gradient for every parameter of the user model and of the head."""
        return {**gradient_shapes(params), **{_named(name): value.shape for name, value in self.head.items()}}

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """The reader's gradients. Raises ValueError if there are no samples."""
        if not isinstance(samples, RowSource):
            raise TypeError(f"samples: {type(samples).__name__} names no rows")
        drawn = samples.draw_rows(negatives=self.negatives, limit=self.samples_limit, rng=rng, features=self.features)
        here = [place for place, news_id in enumerate(drawn.ids) if news_id in self.row_of]
        pooled = self.states[[self.row_of[drawn.ids[place]] for place in here]].astype(np.float32)
        table = drawn.table.copy()
        if here:
            table[here] = self._by_head(pooled, np.zeros((len(here), table.shape[1]), np.float32))[VECTORS]
        found = pooled_gradient(len(drawn), lambda rows: table_batch(drawn, table, rows), params, grad)
        tensors = dict(found.tensors)
        vector_gradients = tensors.pop(TABLE)[here]
        of_head = {name: np.zeros_like(value) for name, value in self.head.items()}
        if here:
            made = self._by_head(pooled, vector_gradients)
            of_head = {name: made[GRADIENT_PREFIX + name] for name in self.head}
        return Update({**tensors, **{_named(name): each for name, each in of_head.items()}}, found.loss, found.samples)

    def _by_head(self, pooled: NDArray[np.float32], vector_gradients: NDArray[np.float32]) -> Params:
        return self.product(self.head, {"pooled": pooled, "slopes": vector_gradients}).tensors


def _named(parameter: str) -> str:
    """A gradient of the head in an update."""
    return f"{GRADIENT_PREFIX}{NEWS_MODEL}{parameter}"


def head_gradient_task(given: TaskInputs) -> HeadGradientTask:
    """On all shards of the round. Raises NotEligible if its materials can't be had or are not what they should be."""
    manifest, release = given.manifest, given.release.manifest
    assert manifest.model is not None, "a task of a role has a model"
    graph = given.materials(GRAPH)
    shards = [given.materials(name) for name in sorted(manifest.materials) if name.startswith(SHARDS)]
    try:
        costs_of(graph)
        head = unpack_head(given.materials(HEAD), release.dimensions)
        row_of, states = joined_states(shards, head[WEIGHT].shape[1])
    except (TensorError, GraphMismatch) as broken:
        raise NotEligible(f"the round's head or its states are malformed: {broken}") from broken
    return HeadGradientTask(
        head={name: head[name] for name in (WEIGHT, BIAS)},
        product=OnnxGradients(graph),
        row_of=row_of,
        states=states,
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
        features=release.models[manifest.model].features,
    )
