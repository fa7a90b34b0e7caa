"""The study as a table: ours beside what was published."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.bench.table import Cell, Table
from experiments.ranking.published import PUBLISHED
from experiments.ranking.study import Run, Settings
from models.metrics import RankingMetrics

COLUMNS = ("scorer", "AUC", "nDCG@10", "MRR", "step 0", "change", "seeds", "study AUC", "study nDCG@10", "s a run")


def table(untrained: dict[str, RankingMetrics], runs: Sequence[Run], settings: Settings) -> Table:
    """One row a scorer; trained rows are means over seeds, with the standard deviation where there are several."""
    rows: list[tuple[Cell, ...]] = [
        (name, f"{found.auc:.4f}", f"{found.ndcg10:.3f}", f"{found.mrr:.3f}", None, None, None, *_published(name), None)
        for name, found in untrained.items()
    ]
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(f"{run.contestant}, {run.schedule}", []).append(run)
    rows += [_row(name, groups[name]) for name in sorted(groups)]
    notes = (
        f"MIND subset dev, grouped by impression; standard error of an AUC .011. Central: {settings.steps} steps of "
        f"{settings.batch}; federated: {settings.rounds} rounds of {settings.cohort} readers, noise off; Adam.",
        "Live popularity is leave-one-out over dev readers: optimistic, as the data has no times of display.",
        "change: trained less its own step 0, mean over seeds.",
    )
    return Table("Ranking on MIND subset, dev", COLUMNS, rows, notes)


def _row(name: str, runs: Sequence[Run]) -> tuple[Cell, ...]:
    auc = np.array([run.end.auc for run in runs])
    start = np.array([run.start.auc for run in runs])
    spread = f" +- {auc.std(ddof=1):.4f}" if len(runs) > 1 else ""
    return (
        name,
        f"{auc.mean():.4f}{spread}",
        f"{np.mean([run.end.ndcg10 for run in runs]):.3f}",
        f"{np.mean([run.end.mrr for run in runs]):.3f}",
        f"{start.mean():.4f}",
        f"{(auc - start).mean():+.4f}",
        len(runs),
        *_published(name),
        round(float(np.mean([run.seconds for run in runs]))),
    )


def _published(name: str) -> tuple[Cell, Cell]:
    known = PUBLISHED.get(name)
    if known is None:
        return None, None
    return f"{known.dev_auc:.3f}", None if known.dev_ndcg10 is None else f"{known.dev_ndcg10:.3f}"
