"""Scores impressions, and computes their metrics grouped by impression (as for MIND, Wu et al. 2020)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from experiments.datasets.mind import Impressions
from experiments.simulation.readers import Library
from exporters.signature import call
from models.metrics import RankingMetrics, auc, by_impression, ndcg
from models.shapes import CLICKS

CHUNK = 32

ScoreFn = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[Any]]
"""(one history, oldest first; its candidates [R]; rows of the catalogue) -> scores [R]."""


def evaluate(impressions: Impressions, score: ScoreFn) -> RankingMetrics:
    """Return the metrics of a scoring function."""
    found = [
        score(history, candidates)
        for history, candidates in zip(impressions.histories, impressions.candidates, strict=True)
    ]
    return metrics(impressions, np.concatenate(found))


def metrics(impressions: Impressions, scores: NDArray[Any]) -> RankingMetrics:
    """Return the metrics of flat scores, in the order of `impressions.candidates`."""
    return by_impression(impressions.candidates.owners, impressions.clicked, scores)


def model_scores(
    impressions: Impressions, model: nn.Module, weights: Mapping[str, NDArray[np.float32]], library: Library
) -> NDArray[np.float32]:
    """Return scores of a ranker's `forward` under `weights`, flat, in the order of `impressions.candidates`.

    Impressions of similar length share a batch; the padding of shorter ones is removed again.
    """
    values = {name: torch.from_numpy(np.asarray(value)) for name, value in weights.items()}
    candidates = impressions.candidates
    clicks = impressions.histories.last(CLICKS, padding=library.padding)
    scores = np.zeros(len(candidates.values), dtype=np.float32)
    order = np.argsort(candidates.lengths, kind="stable")
    with torch.inference_mode():
        for start in range(0, len(order), CHUNK):
            rows = order[start : start + CHUNK]
            lengths = candidates.lengths[rows]
            padded = np.full((len(rows), max(int(lengths.max()), 1)), library.padding)
            real = np.arange(padded.shape[1]) < lengths[:, None]
            places = np.concatenate([np.arange(*candidates.offsets[row : row + 2]) for row in rows])
            padded[real] = candidates.values[places]
            samples = library.samples(clicks[rows], padded)
            inputs = [torch.from_numpy(getattr(samples, name)) for name in ("clicks", "click_mask", "candidates")]
            if library.features is not None:
                inputs.append(torch.from_numpy(library.features(clicks[rows], padded)))
            found = call(model, "forward", values, inputs).numpy()
            scores[places] = found[real]
    return scores


def each_impression(impressions: Impressions, scores: NDArray[Any]) -> NDArray[np.float64]:
    """Return AUC, nDCG@10 and loss of each impression [m, 3]; all must have clicked and skipped articles.

    The loss is the mean over clicks of -log softmax, among the click and what was skipped.
    """
    found = []
    for start, end in pairwise(impressions.candidates.offsets):
        labels, mine = impressions.clicked[start:end], scores[start:end].astype(np.float64)
        clicked = mine[labels == 1]
        loss = np.logaddexp(np.logaddexp.reduce(mine[labels == 0]), clicked) - clicked
        found.append((auc(labels, mine), ndcg(labels, mine, 10), loss.mean()))
    return np.array(found)


def evaluate_model(
    impressions: Impressions, model: nn.Module, weights: Mapping[str, NDArray[np.float32]], library: Library
) -> RankingMetrics:
    """Return the metrics of a ranker under `weights`."""
    return metrics(impressions, model_scores(impressions, model, weights, library))
