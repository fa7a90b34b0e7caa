"""`ownfeed evaluate uni-fedrec`: tables 2 and 3 and figures 4 to 7 of Uni-FedRec, for its recall stage.

A list is good if it holds the clicks that were held out (Table 2: R@K), and protects if it holds few of the clicks
that it was made from (Table 3). Lists are ranked by inner product alone and decoded as the paper does; popularity and
the served decoder stay out (`ownfeed bench recall` has them). News vectors are a frozen BERT's, where the paper trains
its own news model; the recall model is trained in exact federated rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.recall.decode import aggregate
from backend.recall.posterior import clipped
from device_app.privacy.noise_sources import SeededNoise, laplace
from experiments.datasets.mind import FOLDER, Mind, load_mind
from experiments.datasets.samples import TrainingSamples
from experiments.datasets.titles import product_vectors
from experiments.recall.interests import Channels, channels, lists
from experiments.recall.measure import PossibleLists, WarmSplit, recall, splits
from experiments.recall.modes import EmbeddedSplit
from experiments.recall.pools import vectors_of
from experiments.recall.training import RecallTrainer, history_samples
from experiments.recall.uni_fedrec import Decomposed, FirstModel
from experiments.records import Cell, Table
from experiments.study import Study
from models.shapes import NEWS_DIM

CLIP, NOISE = 0.2, 1.2
"""delta and lambda_I, section 4.1."""
INTENSITIES = (0.0, 0.3, 0.6, 0.9, 1.2, 1.5)
"""lambda_I of figure 5."""
DISTANCES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4)
"""Figure 6: the clustering distance, as a share of the one that serves."""
SHARES = (0.01, 0.02, 0.05, 0.1)
"""r of figure 7."""
DEPTHS = (100, 200, 300, 400, 500)
ROUNDS, COHORT = 60, 50

Floats = NDArray[np.float64]
Job = tuple[str, int]


@dataclass(frozen=True)
class RecallShares:
    """For each reader, the shares [u, depths] of held-out clicks and of historical clicks in the list."""

    future: Floats
    past: Floats


@dataclass(frozen=True)
class UniFedRecStudy(Study[Job, dict[str, Any]]):
    """One job for each seed: the recall model is trained once, and measured in every variant."""

    data: Path
    repeats: int = 3
    smoke: bool = False

    @property
    def jobs(self) -> Sequence[Job]:
        """The seeds."""
        return [("seed", seed) for seed in range(1 if self.smoke else self.repeats)]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of cohorts, negatives and noise."""
        return tuple(seed for _, seed in self.jobs)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Rounds and readers a round."""
        return {"rounds": self.rounds, "cohort": COHORT, "smoke": self.smoke}

    @property
    def rounds(self) -> int:
        """Rounds of training."""
        return 3 if self.smoke else ROUNDS

    def prepare(self) -> None:
        """Read the data and build the first model."""
        self.trainer  # noqa: B018 - what it raises, it raises now

    @cached_property
    def _mind(self) -> Mind:
        return load_mind(self.data / FOLDER)

    @cached_property
    def news(self) -> NDArray[np.float32]:
        """Unit vectors [n, D]."""
        return product_vectors(vectors_of(self._mind.news.titles), NEWS_DIM)

    @cached_property
    def split(self) -> WarmSplit:
        """The test readers of the warm protocol."""
        histories = self._mind.train.longest_histories()
        _, test = splits([histories[user] for user in sorted(histories)], len(self._mind.news))
        return test

    @cached_property
    def samples(self) -> TrainingSamples:
        """The training readers' samples."""
        return history_samples(self.split.train, len(self.news))

    @cached_property
    def trainer(self) -> RecallTrainer:
        """Trains the first release's model on the training readers."""
        return RecallTrainer(FirstModel.of(self.news), self.news, self.samples)

    @cached_property
    def content(self) -> EmbeddedSplit:
        """The split with equal popularity."""
        return EmbeddedSplit(self.split, self.news, np.ones(len(self.news), dtype=np.int64))

    def run(self, job: Job) -> dict[str, Any]:
        """Train, and measure all variants and baselines; then the losses of figure 7."""
        _, seed = job
        trained = self.trainer.in_rounds(self.rounds, COHORT, seed)
        model = self.trainer.first.under(trained.weights)
        measured = {
            name: shares(self.content, made(self.content, model, seed)) for name, made in variants(self.smoke).items()
        }
        readers = self.samples.readers
        losses = {
            f"{share:g}": list(self.trainer.in_rounds(self.rounds, max(1, round(share * readers)), seed).losses)
            for share in (SHARES[:1] if self.smoke else SHARES)
        }
        return {
            "seed": seed,
            "measured": {
                name: [each.future.mean(axis=0).tolist(), each.past.mean(axis=0).tolist()]
                for name, each in measured.items()
            },
            "losses": losses,
        }

    def rows(self, job: Job, run: dict[str, Any]) -> list[dict[str, Any]]:
        """A run as one row of the file."""
        return [run]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[Job, dict[str, Any]]:
        """The runs of stored rows."""
        return {("seed", int(row["seed"])): dict(row) for row in rows}

    def line(self, job: Job, run: dict[str, Any]) -> str:
        """R@400 of the paper's configuration."""
        future, past = (100 * each[DEPTHS.index(400)] for each in run["measured"][PAPER])
        return f"seed {job[1]}: {PAPER} R@400 {future:.1f} %, of the history {past:.1f} %"

    def tables(self, runs: Mapping[Job, dict[str, Any]]) -> list[Table]:
        """Tables 2 and 3 and figures 4 to 7, with the mean and the standard deviation of the seeds."""
        every = list(runs.values())
        names = list(every[0]["measured"])
        both = [
            Table(title, ("method", *(f"R@{depth} %" for depth in DEPTHS)), [_row(name, every, at) for name in names])
            for at, title in enumerate(("Recall of later clicks (Table 2)", "Recall of the history (Table 3)"))
        ]
        steps = sorted({0, self.rounds // 4, self.rounds // 2, self.rounds - 1})
        curves: list[tuple[Cell, ...]] = [
            (
                f"{100 * float(share):g} %",
                *(_figure([run["losses"][share][step] for run in every], 3) for step in steps),
            )
            for share in every[0]["losses"]
        ]
        note = (
            f"{len(self.split.measured)} test readers, {len(self.news):,} articles; {self.rounds} rounds of {COHORT}. "
            "Mean and standard deviation over seeds. The paper's values are not in the text at hand.",
        )
        return [
            replace(both[0], notes=note),
            both[1],
            Table("Training loss by round and r (Figure 7)", ("r", *(f"round {step + 1}" for step in steps)), curves),
        ]


Lists = Callable[[EmbeddedSplit, FirstModel, int], PossibleLists]
PAPER = "Uni-FedRec"


def decoded(study: EmbeddedSplit, model: FirstModel, seed: int, noise: float = NOISE) -> PossibleLists:
    """Lists by the vectors that clipped scores with Laplace noise of this intensity give (section 3.3)."""
    found = Decomposed.of(model, study.news, study.split.measured.histories)
    sent = clipped(CLIP)(found.scores)
    if noise:
        sent = sent + laplace(SeededNoise(seed), noise, sent.shape)
    return listed(study, Channels(aggregate(sent, found.values), found.counts))


def undecomposed(study: EmbeddedSplit, model: FirstModel, seed: int) -> PossibleLists:
    """Lists by the channels' own vectors, without basic interests ("BIE") and noise."""
    found = Decomposed.of(model, study.news, study.split.measured.histories)
    return listed(study, Channels(found.channels, found.counts))


def mean_click(study: EmbeddedSplit, model: FirstModel, seed: int) -> PossibleLists:
    """Lists by the mean of the clicks' vectors, as YoutubeNet aggregates them."""
    return listed(study, Channels(study.readers, ((1,),) * len(study.readers)))


def clustered(study: EmbeddedSplit, model: FirstModel, seed: int) -> PossibleLists:
    """Lists by the means of clusters of clicks, as PinnerSage has them, without attention."""
    return listed(study, channels(study.news, study.news, study.split.measured.histories))


def listed(study: EmbeddedSplit, found: Channels) -> PossibleLists:
    """The longest lists, ranked by inner product in each channel and merged by the channels' clicks."""
    return lists(study, found, 1.0, max(DEPTHS))


def variants(smoke: bool) -> dict[str, Lists]:
    """Every row of the tables: baselines, the paper's configuration, ablations, noise, clustering distance."""
    rows: dict[str, Lists] = {
        "random order": lambda study, model, seed: PossibleLists.common(
            np.random.default_rng(seed).permutation(len(study.news))[: max(DEPTHS)], len(study.readers)
        ),
        "mean of the clicks (YoutubeNet)": mean_click,
        "means of clusters (PinnerSage)": clustered,
        PAPER: decoded,
        "without noise (Figure 4)": lambda study, model, seed: decoded(study, model, seed, 0.0),
        "without clusters (Figure 4)": lambda study, model, seed: decoded(study, replace(model, distance=np.inf), seed),
        "without basic interests (Figure 4)": undecomposed,
    }
    if smoke:
        return rows
    for noise in INTENSITIES:
        rows[f"lambda {noise:g} (Figure 5)"] = lambda study, model, seed, noise=noise: decoded(  # type: ignore[misc]
            study, model, seed, noise
        )
    for share in DISTANCES:
        rows[f"d {share:g} of the served (Figure 6)"] = lambda study, model, seed, share=share: decoded(  # type: ignore[misc]
            study, replace(model, distance=share * model.distance), seed, 0.0
        )
    return rows


def shares(study: EmbeddedSplit, answers: PossibleLists) -> RecallShares:
    """R@K of the held-out clicks and of the history, for each reader."""
    split = study.split
    past = [np.unique(history) for history in split.measured.histories]
    return RecallShares(
        recall(answers, split.measured.targets, split.news, DEPTHS), recall(answers, past, split.news, DEPTHS)
    )


def _row(name: str, every: Sequence[Mapping[str, Any]], at: int) -> tuple[Cell, ...]:
    found = np.array([run["measured"][name][at] for run in every])
    return (name, *(_figure(100 * found[:, depth], 1) for depth in range(len(DEPTHS))))


def _figure(values: Sequence[float] | Floats, places: int) -> str:
    mean = f"{float(np.mean(values)):.{places}f}"
    return mean if len(values) == 1 else f"{mean} +- {float(np.std(values, ddof=1)):.{places}f}"
