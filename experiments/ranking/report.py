"""The study as a table: ours beside what was published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.ranking.published import PUBLISHED
from experiments.ranking.training import CLIP, DELTA, EPSILON, RankingRun, RankingSettings
from experiments.table import Cell, Table
from models.metrics import RankingMetrics

COLUMNS = ("scorer", "AUC", "sd", "nDCG@10", "step 0", "seeds", "study", "s")


def table(untrained: dict[str, RankingMetrics], runs: Sequence[RankingRun], settings: RankingSettings) -> Table:
    """One row a scorer; trained rows are means over seeds, with their standard deviation where there are several."""
    rows: list[tuple[Cell, ...]] = [
        (name, _text(found.auc), None, _text(found.ndcg10), None, None, _published(name), None)
        for name, found in untrained.items()
    ]
    groups: dict[str, list[RankingRun]] = {}
    for run in runs:
        groups.setdefault(f"{run.study_model}, {run.schedule}", []).append(run)
    rows += [_row(name, groups[name]) for name in sorted(groups)]
    notes = (
        f"MIND subset dev, grouped by impression; standard error of an AUC .011. Central: {settings.steps} steps of "
        f"{settings.batch}; federated: {settings.rounds} rounds of {settings.cohort} readers, noise off; Adam. "
        f"private: federated, epsilon {EPSILON:g} and delta {DELTA:g} for a reader after all rounds, L2 clip {CLIP:g}.",
        "study: the AUC measured before the project began. step 0: the AUC before training. s: seconds a run.",
        "Live popularity is leave-one-out over dev readers: optimistic, as the data has no times of display.",
    )
    return Table("Ranking, MIND subset dev", COLUMNS, rows, notes)


def _row(name: str, runs: Sequence[RankingRun]) -> tuple[Cell, ...]:
    auc = np.array([run.end.auc for run in runs])
    return (
        name,
        _text(auc.mean()),
        _text(auc.std(ddof=1)) if len(runs) > 1 else None,
        _text(np.mean([run.end.ndcg10 for run in runs])),
        _text(np.mean([run.start.auc for run in runs])),
        len(runs),
        _published(name),
        round(float(np.mean([run.seconds for run in runs]))),
    )


def _text(figure: float | np.floating[Any]) -> str:
    """Four digits: the table's own format would round a difference of .003 away."""
    return f"{figure:.4f}"


def _published(name: str) -> Cell:
    known = PUBLISHED.get(name)
    return None if known is None else f"{known.dev_auc:.3f}"
