"""`ownfeed evaluate recall`: Uni-FedRec's recall model before and after training, with and without its noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from experiments.bench.table import Cell, Table
from experiments.datasets.mind import FOLDER, Impressions, load_mind
from experiments.datasets.titles import product_vectors, title_vectors
from experiments.ranking.evaluation import evaluate
from experiments.recall.measure import DEPTHS, PossibleLists, paired, recall
from experiments.recall.modes import EmbeddedSplit
from experiments.recall.training import RATE, RecallSizes, RecallTrainer, history_samples
from experiments.recall.uni_fedrec import Decomposed, FirstModel, scale_of, unified_scores
from experiments.recall.warm import WarmSplit, splits
from experiments.simulation.rounds import Trained
from models.shapes import NEWS_DIM

PAPER, HIGH = 50.0, 300.0
"""Honest epsilons of a report: at the paper's noise, and at a sixth of it."""
AT_100, AT_400 = DEPTHS.index(100), DEPTHS.index(400)
LOSSES_AVERAGED = 10
COLUMNS = (
    "trained",
    "loss",
    "AUC on dev",
    "content R@100 / 400 %",
    "with popularity R@100 / 400 %",
    "against step 0 @400",
    f"epsilon {PAPER:g}: paper's decoder / served @400",
    f"epsilon {HIGH:g}: paper's decoder / served @400",
)


@dataclass(frozen=True)
class RecallEvaluation:
    """The readers to recall for, with popularity and without, and the impressions to rank."""

    split: WarmSplit
    popular: EmbeddedSplit
    content: EmbeddedSplit
    dev: Impressions

    @classmethod
    def of(cls, split: WarmSplit, news: NDArray[np.float32], dev: Impressions) -> RecallEvaluation:
        """news [n, D]."""
        even = np.ones(len(news), dtype=np.int64)
        return cls(split, EmbeddedSplit(split, news, split.recent_clicks()), EmbeddedSplit(split, news, even), dev)

    def found(self, answers: PossibleLists) -> NDArray[np.float64]:
        """R@50/100/200/400 of each reader."""
        return recall(answers, self.split.measured.targets, self.split.news)


def run_recall(*, data: Path, sizes: RecallSizes, seed: int, console: Console) -> list[Table]:
    """Train and measure on the test readers of the warm protocol. Raises DataMissing, MalformedRow and ValueError."""
    torch.set_num_threads(1)
    mind = load_mind(data / FOLDER)
    news = product_vectors(title_vectors(mind.news.titles), NEWS_DIM)
    histories = mind.train.longest_histories()
    _, test = splits([histories[user] for user in sorted(histories)], len(mind.news))
    return [
        study(RecallEvaluation.of(test, news, mind.dev), news, sizes, seed, lambda line: console.print(f"  {line}"))
    ]


def study(
    bench: RecallEvaluation, news: NDArray[np.float32], sizes: RecallSizes, seed: int, tell: Callable[[str], None]
) -> Table:
    """The table: nothing trained, trained in one place, in exact rounds, and in rounds at the paper's noise."""
    first = FirstModel.of(news)
    shop = RecallTrainer(first, news, history_samples(bench.split.train, len(news)))
    ways: dict[str, Callable[[], Trained | None]] = {
        "step 0": lambda: None,
        f"centrally, {sizes.steps} steps": lambda: shop.centrally(sizes.steps, seed),
        f"{sizes.rounds} rounds of {sizes.cohort}, exact": lambda: shop.in_rounds(sizes.rounds, sizes.cohort, seed),
        f"{sizes.rounds} rounds of {sizes.cohort}, the paper's noise and steps": lambda: shop.by_the_paper(
            sizes.rounds, sizes.cohort, seed
        ),
    }
    rows: list[tuple[Cell, ...]] = []
    start: NDArray[np.float64] | None = None
    for name, train in ways.items():
        trained = train()
        row, served = _row(
            name, bench, news, first if trained is None else first.under(trained.weights), trained, start
        )
        start = served if start is None else start
        rows.append(row)
        tell(" | ".join(map(str, row)))
    whole = Decomposed.of(first, news, bench.split.measured.histories)
    known = {
        "popularity alone": (None, bench.popular.popular()),
        "channels without a basis, step 0": (whole.whole(bench.content), whole.whole(bench.popular)),
    }
    for name, (content, popular) in known.items():
        alone = None if content is None else _two(bench.found(content))
        rows.append((name, None, None, alone, _two(bench.found(popular)), None, None, None))
    notes = (
        f"{len(bench.split.measured)} test readers of the warm protocol, {len(news):,} news; none of them trains. "
        f"B = 30, topic centroids, C_max = 5, unified score, K = 4; Adam at {RATE:g} but for the last. AUC of the "
        "unified score on dev impressions. Differences are paired by reader, 95 % intervals.",
        "Without an epsilon there is no noise; popularity is that of the training readers' last clicks. Design study, "
        "free basis of 30, trained: R@400 16.2 by content, 72.3 with popularity, 67.5 at the paper's noise by the "
        "paper's decoder; 17.5 and 73.2 without a basis.",
    )
    return Table("Uni-FedRec's recall model, MIND subset", COLUMNS, rows, notes)


def _row(
    name: str,
    bench: RecallEvaluation,
    news: NDArray[np.float32],
    model: FirstModel,
    trained: Trained | None,
    start: NDArray[np.float64] | None,
) -> tuple[tuple[Cell, ...], NDArray[np.float64]]:
    clip = model.model.score_clip
    mine = Decomposed.of(model, news, bench.split.measured.histories)
    served = bench.found(mine.served(bench.popular, "basis_laplace", clip=clip, noise_scale=0.0))
    content = bench.found(mine.served(bench.content, "basis_laplace", clip=clip, noise_scale=0.0))
    metrics = evaluate(bench.dev, lambda history, shown: unified_scores(model, news[history[-50:]], news[shown]))
    gain = None if start is None else paired(served, start)[AT_400]
    row: tuple[Cell, ...] = (
        name,
        None if trained is None else f"{_mean(trained.losses[:LOSSES_AVERAGED])} -> {_mean(trained.losses[-10:])}",
        f"{metrics.auc:.4f}",
        _two(content),
        _two(served),
        None if gain is None else f"{gain.mean:+.1f} ({gain.low:+.1f} .. {gain.high:+.1f})",
        *(_noisy(bench, mine, epsilon, clip) for epsilon in (PAPER, HIGH)),
    )
    return row, served


def _noisy(bench: RecallEvaluation, mine: Decomposed, epsilon: float, clip: float) -> str:
    scale = scale_of("basis_laplace", epsilon, clip)
    naive = bench.found(mine.naive(bench.popular, clip=clip, noise_scale=scale))
    served = bench.found(mine.served(bench.popular, "basis_laplace", clip=clip, noise_scale=scale))
    return f"{100 * naive.mean(axis=0)[AT_400]:.1f} / {100 * served.mean(axis=0)[AT_400]:.1f}"


def _two(found: NDArray[np.float64]) -> str:
    means = 100 * found.mean(axis=0)
    return f"{means[AT_100]:.1f} / {means[AT_400]:.1f}"


def _mean(losses: tuple[float, ...]) -> str:
    return f"{np.mean(losses):.3f}"
