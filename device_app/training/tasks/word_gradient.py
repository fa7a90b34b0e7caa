"""FedNewsRec on a device: the whole model's gradient over a fixed table of word vectors (section 3.2).

NAML's and LSTUR's article models also read abstracts and categories.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device_app.errors import GraphMismatch, NotEligible
from device_app.ranking.session import PARAMETER_PREFIX, shared_session
from device_app.training.gradients import GradientFn, OnnxGradients, Params
from device_app.training.tasks.news_gradient import VECTORS, NewsGradientTask
from device_app.training.tasks.task import TaskInputs
from protocol.tensors import TensorError
from protocol.words_of_titles import (
    ABSTRACT_WORDS_LIMIT,
    ABSTRACTS,
    CATEGORIES,
    GRAPH,
    MODEL,
    PADDING,
    TABLE,
    TITLES,
    WORDS_LIMIT,
    joined_categories,
    joined_table,
    joined_texts,
    unpack_model,
)

TITLES_A_RUN = 32
"""Titles per run of the article model's graph: 131 MB and 2.6e9 multiply-adds (`protocol.graph_check`)."""
TITLE, ABSTRACT = "word", "abstract"
"""Prefixes of the graph's inputs, by text."""
CATEGORY, SUBCATEGORY, SLOPES = "category", "subcategory", "slopes"
"""Inputs of the graph besides parameters and texts."""


def vectors_of(text: str) -> str:
    """Return the name of the graph's input for a text's word vectors [n, L, E]."""
    return f"{text}_vectors"


def mask_of(text: str) -> str:
    """Return the name of the graph's input for a text's mask [n, L]."""
    return f"{text}_mask"


@dataclass(frozen=True)
class WordModelInputs:
    """A word-based article model, and its inputs for all articles.

    Args:
        parameters: the article model's parameters.
        graph: (<text>_vectors [n, L, E] and <text>_mask [n, L] for each text, category and subcategory [n] if it reads
            them, slopes G [n, D]) -> g.<parameter>, and g.slopes [n, D].
        row_of: the row of all its inputs, by article id.
        texts: titles, and abstracts if it reads them, each int32 [n, L] with rows of `table`.
        table: word vectors float16 [V, E].
        categories: ids of section and topic, int32 [n, 2]; None if it reads none.
    """

    parameters: Params
    graph: GradientFn
    row_of: Mapping[str, int]
    texts: Mapping[str, NDArray[np.int32]]
    table: NDArray[np.float16]
    categories: NDArray[np.int32] | None = None

    def product(self, rows: Sequence[int], slopes: NDArray[np.float32]) -> Params:
        """See `PublicNews.product`. It is a sum over articles, so it is computed for a few titles at a time."""
        sums = {f"g.{name}": np.zeros(value.shape) for name, value in self.parameters.items()}
        vectors = []
        for start in range(0, len(rows), TITLES_A_RUN):
            some = slice(start, start + TITLES_A_RUN)
            found = self.graph(self.parameters, {**self._read(rows[some]), SLOPES: slopes[some]}).tensors
            vectors.append(found[VECTORS])
            for name, total in sums.items():
                total += found[name]
        return {**{name: total.astype(np.float32) for name, total in sums.items()}, VECTORS: np.concatenate(vectors)}

    def _read(self, rows: Sequence[int]) -> dict[str, NDArray[Any]]:
        """Return the graph's inputs for these articles."""
        read: dict[str, NDArray[Any]] = {}
        for text, all_words in self.texts.items():
            words = all_words[rows]
            read[vectors_of(text)] = self.table[words].astype(np.float32)
            read[mask_of(text)] = (words != PADDING).astype(np.float32)
        if self.categories is not None:
            columns = (np.ascontiguousarray(each, dtype=np.int64) for each in self.categories[rows].T)
            read[CATEGORY], read[SUBCATEGORY] = columns
        return read


def word_gradient_task(inputs: TaskInputs) -> NewsGradientTask:
    """Make the task on all articles of the round. Raises NotEligible if the round's data are unavailable or invalid."""
    manifest, release = inputs.manifest, inputs.release.manifest
    assert manifest.model is not None, "a task of a role has a model"
    graph = inputs.materials(GRAPH)

    def shards(prefix: str) -> list[bytes]:
        return [inputs.materials(name) for name in sorted(manifest.materials) if name.startswith(prefix)]

    try:
        declared = {each.name: each.shape for each in shared_session(graph, threads=OnnxGradients.THREADS).get_inputs()}
        shapes = {
            name.removeprefix(PARAMETER_PREFIX): tuple(shape)
            for name, shape in declared.items()
            if name.startswith(PARAMETER_PREFIX)
        }
        names = declared.keys() - {PARAMETER_PREFIX + name for name in shapes}
        table = joined_table(shards(TABLE), declared.get(vectors_of(TITLE), [0])[-1])
        row_of, texts, categories = _read_by(names, shards, len(table))
        parameters = unpack_model(inputs.materials(MODEL), shapes)
    except (TensorError, GraphMismatch) as broken:
        raise NotEligible(f"the round's news model or its titles are malformed: {broken}") from broken
    return NewsGradientTask(
        news=WordModelInputs(parameters, OnnxGradients(graph), row_of, texts, table, categories),
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
        features=release.models[manifest.model].features,
    )


def _read_by(
    names: Set[str], shards: Callable[[str], list[bytes]], words: int
) -> tuple[Mapping[str, int], dict[str, NDArray[np.int32]], NDArray[np.int32] | None]:
    """Return each article's row by id, and `texts` and `categories` as in `WordModelInputs`, for the graph's inputs.

    words: rows of the table. Raises TensorError.
    """
    read = {TITLE: (TITLES, WORDS_LIMIT)}
    if vectors_of(ABSTRACT) in names:
        read[ABSTRACT] = (ABSTRACTS, ABSTRACT_WORDS_LIMIT)
    ids = {CATEGORY, SUBCATEGORY} if CATEGORY in names else set()
    if names != {each(text) for text in read for each in (vectors_of, mask_of)} | ids | {SLOPES}:
        raise TensorError(f"the graph's inputs must be titles, abstracts, categories and {SLOPES}; got {sorted(names)}")
    found = {text: joined_texts(shards(prefix), words, length=length) for text, (prefix, length) in read.items()}
    row_of = found[TITLE][0]
    named, categories = joined_categories(shards(CATEGORIES)) if ids else (row_of, None)
    if any(each != row_of for each in (named, *(of for of, _ in found.values()))):
        raise TensorError("the abstracts or categories don't list the same articles as the titles")
    return row_of, {text: rows for text, (_, rows) in found.items()}, categories
