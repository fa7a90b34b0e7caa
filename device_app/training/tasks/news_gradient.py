"""Trains the user model and the article model on a device: sends gradients of both models, but none of single articles.

dL/de of each article is only needed to multiply it by de/dtheta (Efficient-FedRec, eqs. 3 and 6). If the article
model's inputs are public, the device multiplies them itself: its update reveals nothing about single articles, so no
union of articles is needed, and no row belongs to one reader alone. It is the gradient of end-to-end training, by the
chain rule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from device_app.training.gradients import GRADIENT_PREFIX, GradientFn, Params
from device_app.training.samples import RowSource, SampleSource
from device_app.training.tasks.split_gradient import TABLE, table_batch
from device_app.training.tasks.task import Shapes, Update, gradient_shapes, pooled_gradient

NEWS_MODEL = "news."
"""Prefix of the article model's parameters in an update, after `g.`."""
VECTORS = "g.slopes"
"""Output of an article model's graph: the gradient for its input `slopes`, which is the vectors themselves."""


class PublicNews(Protocol):
    """The trained part of an article model, and its inputs for each article of the round's shards."""

    @property
    def parameters(self) -> Params:
        """The trained parameters, by torch name."""

    @property
    def row_of(self) -> Mapping[str, int]:
        """The row of each article's inputs, by article id."""

    def product(self, rows: Sequence[int], slopes: NDArray[np.float32]) -> Params:
        """Return `g.<parameter>`, and `g.slopes` [n, D], which are the vectors themselves, for at least one article.

        slopes: gradients of the articles' vectors [n, D].
        """


@dataclass(frozen=True)
class NewsGradientTask:
    """dL_u/dw of the user model and of the article model, for the mean loss over the reader's n_u samples.

    Articles in the round's shards have the vectors that the article model computes, in the loss and in the gradient.
    Articles in no shard have left the pool: their stored vectors are constants in the loss, so that no sample is lost.

    Args:
        news: the trained part of the article model.
        negatives: K.
        samples_limit: the maximum number of samples used.
        features: the columns of the graph's input `features`, in order; none for a graph without that input.
    """

    news: PublicNews
    negatives: int
    samples_limit: int
    features: tuple[str, ...] = ()

    def shapes(self, params: Params) -> Shapes:
        """Return the shapes: a gradient for every parameter of the user model and of the article model."""
        return {
            **gradient_shapes(params),
            **{_named(name): value.shape for name, value in self.news.parameters.items()},
        }

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the reader's gradients. Raises ValueError if there are no samples."""
        if not isinstance(samples, RowSource):
            raise TypeError(f"samples: {type(samples).__name__} does not list the rows it uses")
        drawn = samples.draw_rows(negatives=self.negatives, limit=self.samples_limit, rng=rng, features=self.features)
        here = [place for place, news_id in enumerate(drawn.ids) if news_id in self.news.row_of]
        rows = [self.news.row_of[drawn.ids[place]] for place in here]
        table = drawn.table.copy()
        if here:
            table[here] = self.news.product(rows, np.zeros((len(here), table.shape[1]), np.float32))[VECTORS]
        found = pooled_gradient(len(drawn), lambda some: table_batch(drawn, table, some), params, grad)
        tensors = dict(found.tensors)
        vector_gradients = tensors.pop(TABLE)[here]
        of_news = {name: np.zeros_like(value) for name, value in self.news.parameters.items()}
        if here:
            product = self.news.product(rows, vector_gradients)
            of_news = {name: product[GRADIENT_PREFIX + name] for name in of_news}
        return Update({**tensors, **{_named(name): each for name, each in of_news.items()}}, found.loss, found.samples)


def _named(parameter: str) -> str:
    """Return the name of an article-model gradient in an update."""
    return f"{GRADIENT_PREFIX}{NEWS_MODEL}{parameter}"
