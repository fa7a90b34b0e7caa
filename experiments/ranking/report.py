"""The study as tables: ours beside what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.ranking.training import CLIP, DELTA, EPSILON, SCHEDULES, RankingRun, RankingSettings
from experiments.table import Cell, Table
from models.metrics import RankingMetrics

UNTRAINED_COLUMNS = ("scorer", "AUC", "nDCG@10", "study")
TRAINED_COLUMNS = ("model", *SCHEDULES, "step 0", "nDCG@10 federated", "trainings", "study", "s")


@dataclass(frozen=True)
class PublishedAuc:
    """What was measured on this data before the first line of code: AUC and nDCG@10 on dev, AUC on its natural sample.

    Standard error of an AUC: .011 on dev, .009 on the natural sample. None is comparable with leaderboards of the full
    MIND. None where it was not measured.
    """

    dev_auc: float
    dev_ndcg10: float | None = None
    natural_auc: float | None = None


PUBLISHED: dict[str, PublishedAuc] = {
    "random": PublishedAuc(0.502, 0.362, 0.490),
    "click rate in train impressions": PublishedAuc(0.518, 0.377, 0.531),
    "history-category count": PublishedAuc(0.533, 0.384, 0.604),
    "mean cosine": PublishedAuc(0.618, 0.450, 0.640),
    "softmax(8) cosine": PublishedAuc(0.608, 0.444, 0.645),
    "live popularity + softmax(8) cosine": PublishedAuc(0.689, 0.505, 0.704),
    "NRMS, random start, central": PublishedAuc(0.575, None, 0.606),
    "NRMS, random start, federated": PublishedAuc(0.579, None, 0.603),
    "NRMS, cosine start, federated": PublishedAuc(0.600, 0.438, 0.628),
    "FedNewsRec, random start, central": PublishedAuc(0.575, 0.419, 0.599),
    "candidate attention 384, central": PublishedAuc(0.618, 0.451, 0.651),
    "candidate attention 384, private": PublishedAuc(0.613, 0.446, 0.648),
}
"""By the name of the row that is closest to it."""


def untrained_scorers(found: Mapping[str, RankingMetrics]) -> Table:
    """One row a scorer."""
    rows = [(name, _text(each.auc), _text(each.ndcg10), _published(name)) for name, each in found.items()]
    notes = (
        "MIND subset dev, grouped by impression; standard error of an AUC .011. study: the AUC measured before the "
        "project began.",
        "Live popularity is leave-one-out over dev readers: optimistic, as the data has no times of display.",
    )
    return Table("Ranking, MIND subset dev", UNTRAINED_COLUMNS, rows, notes)


def trained_rankers(runs: Sequence[RankingRun], settings: RankingSettings) -> Table:
    """One row a model; an AUC is the mean over seeds, with its standard deviation where there are several."""
    models: dict[str, list[RankingRun]] = {}
    for run in runs:
        models.setdefault(run.study_model, []).append(run)
    notes = (
        f"AUC on MIND subset dev. central: {settings.steps} steps of {settings.batch}; federated: {settings.rounds} "
        f"rounds of {settings.cohort} readers, noise off; Adam. private: federated, epsilon {EPSILON:g} and delta "
        f"{DELTA:g} for a reader after all rounds, L2 clip {CLIP:g}.",
        "Means over trainings (standard deviation). step 0: before training. study: measured before the project "
        "began. s: seconds a training.",
    )
    return Table("Trained rankers, MIND subset dev", TRAINED_COLUMNS, [_row(*each) for each in models.items()], notes)


def _row(name: str, runs: Sequence[RankingRun]) -> tuple[Cell, ...]:
    by_schedule = {schedule: [run for run in runs if run.schedule == schedule] for schedule in SCHEDULES}
    federated = [run.end.ndcg10 for run in by_schedule["federated"]]
    known = [f"{_published(row)} {schedule}" for schedule in SCHEDULES if (row := f"{name}, {schedule}") in PUBLISHED]
    return (
        name,
        *(_mean([run.end.auc for run in found]) for found in by_schedule.values()),
        _text(np.mean([run.start.auc for run in runs])),
        _text(np.mean(federated)) if federated else None,
        len({run.seed for run in runs}),
        ", ".join(known) or None,
        round(float(np.mean([run.seconds for run in runs]))),
    )


def _mean(aucs: Sequence[float]) -> str | None:
    if not aucs:
        return None
    return _text(np.mean(aucs)) + (f" ({_text(np.std(aucs, ddof=1))})" if len(aucs) > 1 else "")


def _text(figure: float | np.floating[Any]) -> str:
    """Four digits: the table's own format would round a difference of .003 away."""
    return f"{figure:.4f}"


def _published(name: str) -> Cell:
    known = PUBLISHED.get(name)
    return None if known is None else f"{known.dev_auc:.3f}"
