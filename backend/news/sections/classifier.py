"""Classifies articles into sections by their vectors: logistic regression, smoothed over nearest neighbours.

The regression is fitted to the taxonomy's sentences as the current encoder encodes them, so a new encoder needs no
other data. An article is represented by its title and the beginning of its abstract. Its nearest neighbours in the pool
then weigh about twice as much as its own text, since a pool has many articles of each subject, a taxonomy few
sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from backend.news.sections.taxonomy import NewsSection

TEXT_CHARS = 400
INVERSE_REGULARISATION = 10.0
"""C of the regression, per sentence; values from 3 to 30 change accuracy by half a point."""
NEIGHBOURS = 10
NEIGHBOURS_SHARE = 0.65
STEPS = 2
"""Propagation steps: in the second, neighbours' probabilities already include their own neighbours'."""
ROWS_AT_ONCE = 1_024


class TextEncoder(Protocol):
    """The part of `backend.embedding.embedder.Embedder` that the classifier uses."""

    digest: str

    def encode(self, titles: Sequence[str]) -> NDArray[np.float32]:
        """float32 [n, D], rows of unit length."""
        ...


def text_of(title: str, abstract: str) -> str:
    """The part of an article's text that is classified."""
    return f"{title}. {abstract}"[:TEXT_CHARS] if abstract else title


class SectionClassifier:
    """Softmax regression from centred unit vectors to sections.

    Args:
        sections: the taxonomy, of n sentences in total.
        vectors: float32 [n, D], the sentences' vectors by the encoder whose vectors are classified later.
    """

    def __init__(self, sections: Sequence[NewsSection], vectors: NDArray[np.float32]) -> None:
        self.names = tuple(section.name for section in sections)
        labels = np.repeat(np.arange(len(sections)), [len(section.sentences) for section in sections])
        if vectors.ndim != 2 or len(vectors) != len(labels):
            raise ValueError(f"vectors must have shape [{len(labels)}, D], got {list(vectors.shape)}")
        unit = _unit(vectors.astype(np.float64))
        self._mean = unit.mean(axis=0)
        self._weights = _fitted(_with_one(_unit(unit - self._mean)), labels, len(sections))

    def probabilities(self, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        """float64 [n, sections] of vectors [n, D]; rows sum to 1."""
        rows = _unit(_unit(vectors.astype(np.float64)) - self._mean)
        found: NDArray[np.float64] = softmax(_with_one(rows) @ self._weights, axis=1)
        return found


def with_neighbours(
    probabilities: NDArray[np.float64],
    vectors: NDArray[np.float32],
    known: NDArray[np.float64],
    known_vectors: NDArray[np.float32],
) -> NDArray[np.float64]:
    """Probabilities [n, S] of articles with vectors [n, D], each averaged with those of its nearest neighbours.

    known [m, S], known_vectors [m, D]: other articles, whose sections are known. The neighbours are the NEIGHBOURS
    nearest by cosine among both; if there are fewer, they weigh less.
    """
    around = _unit((np.concatenate([vectors, known_vectors]) if len(known) else vectors).astype(np.float64))
    centred = _unit(around - around.mean(axis=0))
    count = min(NEIGHBOURS, len(around) - 1)
    if count < 1:
        return probabilities
    nearest = np.concatenate([_nearest(centred, start, count) for start in range(0, len(probabilities), ROWS_AT_ONCE)])[
        : len(probabilities)
    ]
    share = NEIGHBOURS_SHARE * count / NEIGHBOURS
    mixed = probabilities
    for _ in range(STEPS):
        others = np.concatenate([mixed, known]) if len(known) else mixed
        mixed = (1 - share) * probabilities + share * others[nearest].mean(axis=1)
    return mixed


def _nearest(rows: NDArray[np.float64], start: int, count: int) -> NDArray[np.intp]:
    """The `count` rows nearest to each of ROWS_AT_ONCE rows from `start` on, excluding themselves."""
    asked = np.arange(start, min(start + ROWS_AT_ONCE, len(rows)))
    nearness = rows[asked] @ rows.T
    nearness[np.arange(len(asked)), asked] = -np.inf
    found: NDArray[np.intp] = np.argpartition(-nearness, count - 1, axis=1)[:, :count]
    return found


def _fitted(rows: NDArray[np.float64], labels: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Weights [D + 1, S] that minimise the mean cross-entropy plus an L2 penalty on all but the last row.

    All sections have the same total weight, however many sentences they have.
    """
    weight = 1 / np.bincount(labels, minlength=count)[labels] / count  # [n], sums to 1
    targets = np.eye(count)[labels]
    shape = (rows.shape[1], count)
    penalty = np.full((rows.shape[1], 1), 1 / (INVERSE_REGULARISATION * len(rows)))
    penalty[-1] = 0

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.reshape(shape)
        logs = log_softmax(rows @ weights, axis=1)
        value = -float((weight[:, None] * targets * logs).sum()) + float((penalty * weights**2).sum()) / 2
        slope = rows.T @ (weight[:, None] * (np.exp(logs) - targets)) + penalty * weights
        return value, slope.ravel()

    from scipy.optimize import minimize  # takes half a second, and not every server needs it

    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    fitted: NDArray[np.float64] = found.x.reshape(shape)
    return fitted


def _with_one(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack([rows, np.ones(len(rows))])


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    unit: NDArray[np.float64] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit
