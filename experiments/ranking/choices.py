"""Compares forms of the untrained default ranker in pairs on the same impressions.

Train impressions have other days and readers than dev; nothing is trained, so both may be used. If they disagree, train
decides, because dev is not representative.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.mind import Impressions, Mind, RaggedArray
from experiments.ranking.evaluation import ScoreFn, metrics
from experiments.ranking.models import features_of, flat_scores, live_popularity, softmax_cosine
from experiments.records import Cell, Table
from models.metrics import auc

AFFINITY_WEIGHT, COUNT_WEIGHT, RATE_WEIGHT = 0.05, 0.2, 0.1
COLUMNS = ("form", "against", "train AUC", "train difference", "dev AUC", "dev difference")


@dataclass(frozen=True)
class Difference:
    """Mean over impressions of AUC(first) - AUC(second), and its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:+.4f} +- {self.error:.4f}"


def paired_difference(impressions: Impressions, first: NDArray[np.float64], second: NDArray[np.float64]) -> Difference:
    """Compare two scorers over the impressions with clicked and skipped articles.

    Scores are flat, in the order of the candidates. Raises ValueError for fewer than two such impressions.
    """
    found = []
    offsets = impressions.candidates.offsets
    for start, end in pairwise(offsets):
        labels = impressions.clicked[start:end]
        if 0 < labels.sum() < len(labels):
            found.append(auc(labels, first[start:end]) - auc(labels, second[start:end]))
    if len(found) < 2:
        raise ValueError(f"impressions: {len(found)} have both clicked and skipped articles, at least 2 are needed")
    return Difference(float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found))))


def choices(mind: Mind, vectors: dict[int, NDArray[np.float32]]) -> Table:
    """Return the table. vectors: unit rows by dimension, including 256 and 384."""
    splits = {"train": with_history(mind.train), "dev": mind.dev}
    forms = {name: _forms(mind, split, vectors) for name, split in splits.items()}
    pairs = (
        ("mean, 256-d", "mean, 384-d"),
        ("softmax(3), 256-d", "softmax(3), 384-d"),
        ("softmax(3), 256-d", "mean, 256-d"),
        ("softmax(3), 256-d", "softmax(8), 256-d"),
        ("+ affinities", "softmax(3), 256-d"),
        ("+ affinities and live counts", "+ affinities"),
        ("+ affinities and live rate", "+ affinities and live counts"),
    )
    rows: list[tuple[Cell, ...]] = []
    for form, against in pairs:
        cells: list[Cell] = [form, against]
        for name, split in splits.items():
            found = forms[name]
            cells += [
                f"{metrics(split, found[form]).auc:.4f}",
                str(paired_difference(split, found[form], found[against])),
            ]
        rows.append(tuple(cells))
    notes = (
        "Nothing is trained. Differences are paired by impression, +- one standard error. Weights: affinities "
        f"{AFFINITY_WEIGHT} each, counts {COUNT_WEIGHT}, log rate {RATE_WEIGHT}; + means added to softmax(3), 256-d.",
    )
    return Table("What the default ranker is made of", COLUMNS, rows, notes)


def with_history(impressions: Impressions) -> Impressions:
    kept = np.flatnonzero(impressions.histories.lengths)
    real = np.isin(impressions.candidates.owners, kept)
    return Impressions(
        tuple(impressions.ids[row] for row in kept),
        tuple(impressions.users[row] for row in kept),
        impressions.times_sec[kept],
        RaggedArray.of([impressions.histories[int(row)] for row in kept]),
        RaggedArray.of([impressions.candidates[int(row)] for row in kept]),
        impressions.clicked[real],
    )


def _forms(mind: Mind, split: Impressions, vectors: dict[int, NDArray[np.float32]]) -> dict[str, NDArray[np.float64]]:
    found = {}
    for dim in (256, 384):
        found[f"mean, {dim}-d"] = flat_scores(split, softmax_cosine(vectors[dim], 0.0))
        for beta in (3, 8):
            found[f"softmax({beta}), {dim}-d"] = flat_scores(split, softmax_cosine(vectors[dim], beta))
    affinities = flat_scores(split, _affinities(mind))
    found["+ affinities"] = found["softmax(3), 256-d"] + AFFINITY_WEIGHT * affinities
    news = len(mind.news)
    for name, weight, rate in (("counts", COUNT_WEIGHT, False), ("rate", RATE_WEIGHT, True)):
        popular = weight * live_popularity(split, news, rate=rate)
        found[f"+ affinities and live {name}"] = found["+ affinities"] + popular
    return found


def _affinities(mind: Mind) -> ScoreFn:
    columns = features_of(("section_affinity", "topic_affinity"), mind)
    return lambda history, candidates: columns(history[None], candidates[None])[0].sum(axis=1)
