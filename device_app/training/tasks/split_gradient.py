"""Efficient-FedRec on a device: gradients of the user model and of article vectors (eq. 3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device_app.errors import NotEligible
from device_app.training.gradients import Batch, GradientFn, Params
from device_app.training.samples import RowSamples, RowSource, SampleSource
from device_app.training.tasks.mark_news import listed_news
from device_app.training.tasks.task import Shapes, TaskInputs, Update, gradient_shapes, pooled_gradient
from device_app.training.union_draws import UnionDraw
from protocol.releases import BLOB_LIMIT_BYTES
from protocol.tensors import TensorError, TensorSpec, unpack

LISTED, VECTORS = "news", "vectors"
"""Materials of the round: ids of the opened articles, and their vectors as safetensors."""
TABLE = "g.table"
NEWS_GRADIENT = "g.news"
"""float32 [n, D]: row i is the gradient of the i-th opened article's vector."""


@dataclass(frozen=True)
class SplitGradientTask:
    """dL_u/dw of the user model and dL_u/dE of the opened articles, for the mean loss over n_u samples.

    Opened articles have the vectors of the round's data; the gradients of an article that occurs several times, as a
    click and as a candidate, are summed; rows of articles in no sample are zero. Articles that were not opened have too
    few owners, or arrived after the union: their stored vectors are constants in the loss, and their gradients stay on
    the device. So no sample is lost, and the user model's gradient doesn't depend on which articles were opened.

    The samples are those drawn for the union, and a row that this device did not mark stays zero: so every device that
    contributes to a row was counted among its owners.

    Args:
        ids: opened articles, ascending.
        vectors: their vectors, float32 [n, D].
        negatives: K.
        samples_limit: the maximum number of samples used.
        features: the columns of the graph's input `features`, in order; none for a graph without that input.
        draw: the samples drawn for the union that opened these articles; None if all rows are open to every device, so
        that samples are drawn again.
        unchanged: whether all clicks of the draw are still there.
    """

    ids: Sequence[str]
    vectors: NDArray[np.float32]
    negatives: int
    samples_limit: int
    features: tuple[str, ...] = ()
    draw: UnionDraw | None = None
    unchanged: Callable[[], bool] | None = None

    def shapes(self, params: Params) -> Shapes:
        """Return the shapes: a gradient for every parameter, and a row for every opened article."""
        return {**gradient_shapes(params), NEWS_GRADIENT: self.vectors.shape}

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the reader's gradients. Raises ValueError if there are no samples."""
        drawn = self._drawn(samples, rng)
        counted = set(self.ids) if self.draw is None else self.draw.marked
        row_of = {news_id: row for row, news_id in enumerate(self.ids) if news_id in counted}
        here = [place for place, news_id in enumerate(drawn.ids) if news_id in row_of]
        there = [row_of[drawn.ids[place]] for place in here]
        table = drawn.table.copy()
        table[here] = self.vectors[there]
        found = pooled_gradient(len(drawn), lambda rows: table_batch(drawn, table, rows), params, grad)
        tensors = dict(found.tensors)
        vector_gradients = tensors.pop(TABLE)
        news = np.zeros((len(self.ids), self.vectors.shape[1]), dtype=np.float32)
        news[there] = vector_gradients[here]
        return Update({**tensors, NEWS_GRADIENT: news}, found.loss, found.samples, unchanged=self.unchanged)

    def _drawn(self, samples: SampleSource, rng: np.random.Generator) -> RowSamples:
        if self.draw is not None:
            return self.draw.samples(self.features)
        if not isinstance(samples, RowSource):
            raise TypeError(f"samples: {type(samples).__name__} does not list the rows it uses")
        return samples.draw_rows(negatives=self.negatives, limit=self.samples_limit, rng=rng, features=self.features)


def table_batch(samples: RowSamples, table: NDArray[np.float32], rows: slice) -> Batch:
    """Return the inputs of a `table_gradient` graph: the whole table, and some of the samples."""
    batch: dict[str, NDArray[Any]] = {
        "table": table,
        "click_rows": samples.click_rows[rows],
        "click_mask": samples.click_mask[rows],
        "candidate_rows": samples.candidate_rows[rows],
    }
    return batch if samples.features is None else batch | {"features": samples.features[rows]}


def split_gradient_task(inputs: TaskInputs) -> SplitGradientTask:
    """Make the task from the round's opened articles and this device's draw for their union.

    Raises NotEligible if the device took no part in the union, or its materials are unavailable or invalid.
    """
    manifest, release = inputs.manifest, inputs.release.manifest
    assert manifest.model is not None, "a task of a role has a model"
    draw = inputs.draws.of(manifest.round, manifest.follows)
    ids = listed_news(inputs.materials(LISTED))
    specs = {VECTORS: TensorSpec("float32", (len(ids), release.dimensions))}
    try:
        vectors: NDArray[np.float32] = unpack(inputs.materials(VECTORS), specs, limit_bytes=BLOB_LIMIT_BYTES)[VECTORS]
    except TensorError as broken:
        raise NotEligible(f"the round's vectors are malformed: {broken}") from broken
    return SplitGradientTask(
        ids=ids,
        vectors=vectors,
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
        features=release.models[manifest.model].features,
        draw=draw,
        unchanged=lambda: draw.mark is None or inputs.reading.holds(draw.mark),
    )
