"""FedNewsRec on a device: its whole model's gradient, with the word vectors standing still below the news model
(section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.errors import GraphMismatch, NotEligible
from device_app.ranking.session import PARAMETER_PREFIX, shared_session
from device_app.training.gradients import GradientFn, OnnxGradients, Params
from device_app.training.tasks.news_gradient import VECTORS, NewsGradientTask
from device_app.training.tasks.task import TaskInputs
from device_app.wire.tensors import TensorError
from device_app.wire.words_of_titles import (
    GRAPH,
    MODEL,
    PADDING,
    TABLE,
    TITLES,
    joined_table,
    joined_titles,
    unpack_model,
)

TITLES_A_RUN = 32
"""Of the news model's graph: 131 MB and 2.6e9 multiply-adds (`wire.graphs`)."""
WORD_VECTORS, WORD_MASK, SLOPES = "word_vectors", "word_mask", "slopes"
"""Inputs of the graph besides parameters."""


@dataclass(frozen=True)
class WordedNews:
    """A news model over words, and the titles that it reads.

    Args:
        parameters: of the news model.
        graph: (word_vectors [n, L, E], word_mask [n, L], slopes G [n, D]) -> g.<parameter>, and g.slopes [n, D].
        row_of: by news id, the row of `titles`.
        titles: int32 [n, L], rows of `table`.
        table: word vectors float16 [V, E].
    """

    parameters: Params
    graph: GradientFn
    row_of: Mapping[str, int]
    titles: NDArray[np.int32]
    table: NDArray[np.float16]

    def product(self, rows: Sequence[int], slopes: NDArray[np.float32]) -> Params:
        """As `PublicNews.product`; a sum over news, so some titles at a time."""
        sums = {f"g.{name}": np.zeros(value.shape) for name, value in self.parameters.items()}
        vectors = []
        for start in range(0, len(rows), TITLES_A_RUN):
            some = slice(start, start + TITLES_A_RUN)
            words = self.titles[rows[some]]
            read = {
                WORD_VECTORS: self.table[words].astype(np.float32),
                WORD_MASK: (words != PADDING).astype(np.float32),
                SLOPES: slopes[some],
            }
            found = self.graph(self.parameters, read).tensors
            vectors.append(found[VECTORS])
            for name, total in sums.items():
                total += found[name]
        return {**{name: total.astype(np.float32) for name, total in sums.items()}, VECTORS: np.concatenate(vectors)}


def word_gradient_task(given: TaskInputs) -> NewsGradientTask:
    """On all titles of the round. Raises NotEligible if its materials can't be had or are not what they should be."""
    manifest, release = given.manifest, given.release.manifest
    assert manifest.model is not None, "a task of a role has a model"
    graph = given.materials(GRAPH)
    titles, parts = (
        [given.materials(name) for name in sorted(manifest.materials) if name.startswith(prefix)]
        for prefix in (TITLES, TABLE)
    )
    try:
        declared = {each.name: each.shape for each in shared_session(graph, threads=OnnxGradients.THREADS).get_inputs()}
        shapes = {
            name.removeprefix(PARAMETER_PREFIX): tuple(shape)
            for name, shape in declared.items()
            if name.startswith(PARAMETER_PREFIX)
        }
        if declared.keys() - {PARAMETER_PREFIX + name for name in shapes} != {WORD_VECTORS, WORD_MASK, SLOPES}:
            raise TensorError(f"the graph has other inputs than {WORD_VECTORS}, {WORD_MASK} and {SLOPES}")
        table = joined_table(parts, declared[WORD_VECTORS][-1])
        row_of, words = joined_titles(titles, len(table))
        parameters = unpack_model(given.materials(MODEL), shapes)
    except (TensorError, GraphMismatch) as broken:
        raise NotEligible(f"the round's news model or its titles are malformed: {broken}") from broken
    return NewsGradientTask(
        news=WordedNews(parameters, OnnxGradients(graph), row_of, words, table),
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
        features=release.models[manifest.model].features,
    )
