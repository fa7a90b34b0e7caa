"""The paper's tables beside ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from device_app.privacy.local_aggregate import exact_epsilon, renyi_epsilon
from experiments.bench.table import Cell, Table
from experiments.movielens.published import PUBLISHED
from experiments.movielens.study import ALL, HELD_OUT, TRAININGS, Run, Settings
from experiments.movielens.systems import Choices

METRICS = (("precision", "P@10"), ("recall", "R@10"), ("ndcg", "NDCG@10"), ("auc", "AUC"))
COLUMNS = ("system", *(f"{title}{whose}" for _, title in METRICS for whose in ("", " paper")), "builds", "s")
DELTA = 1e-3


def tables(runs: Sequence[Run], settings: Settings, choices: Choices) -> list[Table]:
    """Warm, cold and noisy rows, mean +- standard deviation over builds where there are several."""
    groups: dict[str, list[Run]] = {}
    for name, training in TRAININGS.items():
        kind = training.protocol
        for row in (name, f"{name}, {HELD_OUT}", f"{name}, {ALL}"):
            if found := [run for run in runs if run.row == row]:
                groups.setdefault("warm" if kind == "warm" and training.builds > 1 else
                                  "noise" if kind == "warm" else "cold", []).extend(found)  # fmt: skip
    asked = (
        "a fifth of each user's training items, no test item" if settings.validate else "a fifth of each user's items"
    )
    chosen = (
        f"{settings.rounds} rounds of {choices.cohort} users; SGD {choices.local_rate:g}, batches of 20, at most "
        f"{choices.batches} a round; server Adam {choices.server_rate:g}, half a cosine; C = {choices.clip:g}, "
        f"gamma = {choices.gamma:g}, N = {choices.negatives}; noise off."
    )
    notes = {
        "warm": (f"Warm: {asked} is asked among all films but the user's own training items. s: seconds a training.",
                 chosen, "The paper's nDCG is below its precision in every row, so it is not the usual one."),
        "cold": ("Cold starts are FL-MV-DSSM: a tenth of users, films or both is in no part of training.",
                 "CS-Users: all items of a held-out user, whose View-2 is zeros as it has nothing to fold in.",
                 "The paper does not say among which films held-out films are ranked; both ways are shown."),
        "noise": (f"Sigma 1, C = {choices.clip:g}, each view noisy: epsilon {exact_epsilon(1, 100, DELTA):.1f} for a "
                  f"view in 100 rounds at delta 1e-3 ({renyi_epsilon(1, 100, DELTA):.1f} by Renyi); in 11 rounds "
                  f"{exact_epsilon(1, 11, DELTA):.1f} ({renyi_epsilon(1, 11, DELTA):.1f}).",
                  "Noisy prediction: N(0, 2) on every probability of some 1 / 1,682."),
    }  # fmt: skip
    titles = {
        "warm": "Recommendation, MovieLens-100K (Table III)",
        "cold": "Cold start, MovieLens-100K (Table II)",
        "noise": "With the paper's noise",
    }
    return [Table(titles[kind], COLUMNS, _rows(groups[kind]), notes[kind]) for kind in titles if kind in groups]


def _rows(runs: Sequence[Run]) -> list[tuple[Cell, ...]]:
    named = dict.fromkeys(run.row for run in runs)
    return [_row(name, [run for run in runs if run.row == name]) for name in named]


def _row(name: str, runs: Sequence[Run]) -> tuple[Cell, ...]:
    known = PUBLISHED.get(name.split(",")[0])
    cells: list[Cell] = []
    for metric, _ in METRICS:
        ours = np.array([getattr(run.figures, metric) for run in runs])
        cells.append(_text(float(ours.mean()), float(ours.std(ddof=1)) if len(ours) > 1 else None))
        cells.append(_text(*getattr(known, metric)) if known else None)
    return (name, *cells, len(runs), round(float(np.mean([run.seconds for run in runs]))))


def _text(mean: float, deviation: float | None) -> str:
    return f"{mean:.4f}" if deviation is None else f"{mean:.4f}+-{deviation:.4f}"
