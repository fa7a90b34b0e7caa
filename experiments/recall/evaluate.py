"""`ownfeed evaluate recall`: Uni-FedRec's recall model before and after training, with and without its noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.mind import FOLDER, Impressions, Mind, load_mind
from experiments.datasets.titles import product_vectors, title_vectors
from experiments.ranking.evaluation import evaluate
from experiments.recall.measure import DEPTHS, PossibleLists, WarmSplit, paired, recall, splits
from experiments.recall.modes import EmbeddedSplit
from experiments.recall.training import RATE, RecallSizes, RecallTrainer, history_samples
from experiments.recall.uni_fedrec import Decomposed, FirstModel, scale_of, unified_scores
from experiments.records import Cell, Table
from experiments.simulation.rounds import Trained
from experiments.study import Study
from models.shapes import NEWS_DIM

NOISY = (50.0, 300.0)
"""True epsilons of a report: at the paper's noise, and at a sixth of it."""
AT_100, AT_400 = DEPTHS.index(100), DEPTHS.index(400)
LOSSES_AVERAGED = 10
COLUMNS = (
    "trained",
    "loss",
    "AUC on dev",
    "content R@100 / 400 %",
    "with popularity R@100 / 400 %",
    "against step 0 @400",
    *(f"epsilon {epsilon:g}: paper's decoder / served @400" for epsilon in NOISY),
)


@dataclass(frozen=True)
class RecallEvaluation:
    """The readers to recall for, with and without popularity, and the impressions to rank."""

    split: WarmSplit
    popular: EmbeddedSplit
    content: EmbeddedSplit
    dev: Impressions

    @classmethod
    def of(cls, split: WarmSplit, news: NDArray[np.float32], dev: Impressions) -> RecallEvaluation:
        even = np.ones(len(news), dtype=np.int64)
        return cls(split, EmbeddedSplit(split, news, split.recent_clicks()), EmbeddedSplit(split, news, even), dev)

    def found(self, answers: PossibleLists) -> NDArray[np.float64]:
        """Return R@50/100/200/400 of each reader."""
        return recall(answers, self.split.measured.targets, self.split.news)


STEP_0 = "step 0"


@dataclass(frozen=True)
class RecallRun:
    """One training: losses, AUC on dev, and R@K of each reader [u, depths].

    content and popular: without and with popularity, no noise. noisy: for each of NOISY, by the paper's decoder and as
    served.
    """

    losses: tuple[float, ...]
    auc: float
    content: NDArray[np.float64]
    popular: NDArray[np.float64]
    noisy: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]


@dataclass(frozen=True)
class RecallStudy(Study[str, RecallRun]):
    """The model untrained, trained centrally, in exact rounds, and in rounds with the paper's noise."""

    data: Path
    sizes: RecallSizes = field(default_factory=RecallSizes)
    seed: int = 0

    @property
    def jobs(self) -> Sequence[str]:
        return list(self._ways)

    @property
    def _ways(self) -> dict[str, Callable[[RecallTrainer], Trained | None]]:
        steps, rounds, cohort, seed = self.sizes.steps, self.sizes.rounds, self.sizes.cohort, self.seed
        return {
            STEP_0: lambda trainer: None,
            f"centrally, {steps} steps": lambda trainer: trainer.centrally(steps, seed),
            f"{rounds} rounds of {cohort}, exact": lambda trainer: trainer.in_rounds(rounds, cohort, seed),
            f"{rounds} rounds of {cohort}, the paper's noise and steps": lambda trainer: trainer.by_the_paper(
                rounds, cohort, seed
            ),
        }

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seed of batches, cohorts and negatives."""
        return (self.seed,)

    def prepare(self) -> None:
        self.trainer  # noqa: B018 - what it raises, it raises now

    @cached_property
    def news(self) -> NDArray[np.float32]:
        """Return unit vectors [n, D] of the articles."""
        return product_vectors(title_vectors(self._mind.news.titles), NEWS_DIM)

    @cached_property
    def _mind(self) -> Mind:
        return load_mind(self.data / FOLDER)

    @cached_property
    def bench(self) -> RecallEvaluation:
        """Return the test readers of the warm protocol."""
        histories = self._mind.train.longest_histories()
        _, test = splits([histories[user] for user in sorted(histories)], len(self._mind.news))
        return RecallEvaluation.of(test, self.news, self._mind.dev)

    @cached_property
    def trainer(self) -> RecallTrainer:
        """Return a trainer of the first release's model on the training readers."""
        first = FirstModel.of(self.news)
        return RecallTrainer(first, self.news, history_samples(self.bench.split.train, len(self.news)))

    def run(self, job: str) -> RecallRun:
        """Train, and measure with and without noise."""
        bench, news, first = self.bench, self.news, self.trainer.first
        trained = self._ways[job](self.trainer)
        model = first if trained is None else first.under(trained.weights)
        clip, kind = model.model.score_clip, "basis_laplace"
        mine = Decomposed.of(model, news, bench.split.measured.histories)

        def noisy(epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            scale = scale_of(kind, epsilon, clip)
            naive = mine.naive(bench.popular, clip=clip, noise_scale=scale)
            return bench.found(naive), bench.found(mine.served(bench.popular, kind, clip=clip, noise_scale=scale))

        return RecallRun(
            () if trained is None else trained.losses,
            evaluate(bench.dev, lambda history, shown: unified_scores(model, news[history[-50:]], news[shown])).auc,
            bench.found(mine.served(bench.content, kind, clip=clip, noise_scale=0.0)),
            bench.found(mine.served(bench.popular, kind, clip=clip, noise_scale=0.0)),
            tuple(noisy(epsilon) for epsilon in NOISY),
        )

    def line(self, job: str, run: RecallRun) -> str:
        """Return recall and AUC."""
        return f"{job}: R@100 / 400 {_two(run.popular)} %, AUC {run.auc:.4f}"

    def tables(self, runs: Mapping[str, RecallRun]) -> list[Table]:
        """Return one row for each training, and the results that training doesn't change."""
        bench, news, first = self.bench, self.news, self.trainer.first
        rows = [_row(name, run, None if name == STEP_0 else runs[STEP_0]) for name, run in runs.items()]
        whole = Decomposed.of(first, news, bench.split.measured.histories)
        known = {
            "popularity alone": (None, bench.popular.popular()),
            "channels without a basis, step 0": (whole.whole(bench.content), whole.whole(bench.popular)),
        }
        for name, (content, popular) in known.items():
            alone = None if content is None else _two(bench.found(content))
            rows.append((name, None, None, alone, _two(bench.found(popular)), None, None, None))
        notes = (
            f"{len(bench.split.measured)} test readers, {len(news):,} articles; B = 30 topic centroids, C_max = 5, K = "
            f"4; Adam at {RATE:g} except in the last training. Differences are paired by reader, with 95 % intervals.",
        )
        return [Table("Uni-FedRec's recall model, MIND subset", COLUMNS, rows, notes)]


def _row(name: str, run: RecallRun, start: RecallRun | None) -> tuple[Cell, ...]:
    gain = None if start is None else paired(run.popular, start.popular)[AT_400]
    return (
        name,
        f"{_mean(run.losses[:LOSSES_AVERAGED])} -> {_mean(run.losses[-LOSSES_AVERAGED:])}" if run.losses else None,
        f"{run.auc:.4f}",
        _two(run.content),
        _two(run.popular),
        None if gain is None else f"{gain.mean:+.1f} ({gain.low:+.1f} .. {gain.high:+.1f})",
        *(" / ".join(f"{100 * found.mean(axis=0)[AT_400]:.1f}" for found in each) for each in run.noisy),
    )


def _two(found: NDArray[np.float64]) -> str:
    means = 100 * found.mean(axis=0)
    return f"{means[AT_100]:.1f} / {means[AT_400]:.1f}"


def _mean(losses: tuple[float, ...]) -> str:
    return f"{np.mean(losses):.3f}"
