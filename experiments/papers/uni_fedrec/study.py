"""`ownfeed evaluate uni-fedrec`: tables 2 to 4 and figures 4 to 7 of Uni-FedRec, for its recall stage.

A list is good if it contains held-out clicks (Table 2: R@K), and protects readers if it contains few of the clicks that
it was made from (Table 3). Lists are ranked by inner product alone and decoded as in the paper; popularity and the
served decoder are left out (`ownfeed bench recall` has them). News vectors are a frozen BERT's, whereas the paper
trains its own news model; the recall model is trained in exact federated rounds.
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
from experiments.datasets.mind import FOLDER, Impressions, Mind, RaggedArray, load_mind
from experiments.datasets.samples import TrainingSamples
from experiments.datasets.titles import product_vectors
from experiments.ranking.evaluation import model_scores
from experiments.ranking.models import STUDY_MODELS
from experiments.ranking.training import RankingSettings, train_in_rounds
from experiments.recall.interests import Channels, channels, lists
from experiments.recall.measure import PossibleLists, WarmSplit, recall, splits
from experiments.recall.modes import EmbeddedSplit
from experiments.recall.pools import vectors_of
from experiments.recall.training import RecallTrainer, history_samples
from experiments.recall.uni_fedrec import Decomposed, FirstModel
from experiments.records import Cell, Table
from experiments.simulation.clients import gradient_graph, ranker_inputs
from experiments.simulation.readers import Library
from experiments.study import Study
from models.metrics import auc
from models.shapes import NEWS_DIM

CLIP, NOISE = 0.2, 1.2
"""delta and lambda_I, section 4.1."""
INTENSITIES = (0.0, 0.3, 0.6, 0.9, 1.2, 1.5)
"""Values of lambda_I in figure 5."""
DISTANCES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4)
"""Clustering distances in figure 6, as a share of the one used in serving."""
SHARES = (0.01, 0.02, 0.05, 0.1)
"""Values of r in figure 7."""
DEPTHS = (100, 200, 300, 400, 500)
ROUNDS, COHORT = 60, 50
RECALLED = 400
"""Number of articles in a ranked list, section 4.3."""
RANKERS = {
    "NRMS": "NRMS, cosine start",
    "LSTUR": "LSTUR ini, cosine start",
    "NAML": "NAML, cosine start",
    "FedRec": "FedNewsRec, cosine start",
}
"""Table 4's columns, as models of the ranking study."""

Floats = NDArray[np.float64]
Job = tuple[str, int]


@dataclass(frozen=True)
class RecallShares:
    """For each reader, the shares [u, depths] of held-out clicks and of historical clicks in the list."""

    future: Floats
    past: Floats


@dataclass(frozen=True)
class UniFedRecStudy(Study[Job, dict[str, Any]]):
    """One job for each seed: the recall model is trained once, and measured in every variant; then the rankers."""

    data: Path
    repeats: int = 3
    smoke: bool = False

    @property
    def jobs(self) -> Sequence[Job]:
        return [("seed", seed) for seed in range(1 if self.smoke else self.repeats)]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(seed for _, seed in self.jobs)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return the rounds, and the readers per round."""
        return {"rounds": self.rounds, "cohort": COHORT, "smoke": self.smoke}

    @property
    def rounds(self) -> int:
        return 3 if self.smoke else ROUNDS

    def prepare(self) -> None:
        self.trainer  # noqa: B018 - what it raises, it raises now

    @cached_property
    def _mind(self) -> Mind:
        return load_mind(self.data / FOLDER)

    @cached_property
    def news(self) -> NDArray[np.float32]:
        """Return unit vectors [n, D] of the articles."""
        return product_vectors(vectors_of(self._mind.news.titles), NEWS_DIM)

    @cached_property
    def split(self) -> WarmSplit:
        """Return the test readers of the warm protocol."""
        histories = self._mind.train.longest_histories()
        _, test = splits([histories[user] for user in sorted(histories)], len(self._mind.news))
        return test

    @cached_property
    def samples(self) -> TrainingSamples:
        return history_samples(self.split.train, len(self.news))

    @cached_property
    def trainer(self) -> RecallTrainer:
        """Return a trainer of the first release's model on the training readers."""
        return RecallTrainer(FirstModel.of(self.news), self.news, self.samples)

    @cached_property
    def content(self) -> EmbeddedSplit:
        """Return the split with equal popularity."""
        return EmbeddedSplit(self.split, self.news, np.ones(len(self.news), dtype=np.int64))

    def run(self, job: Job) -> dict[str, Any]:
        """Train, and measure all variants and baselines; then the losses of figure 7 and the rankers of table 4."""
        _, seed = job
        trained = self.trainer.in_rounds(self.rounds, COHORT, seed)
        model = self.trainer.first.under(trained.weights)
        lists = {name: made(self.content, model, seed) for name, made in variants(self.smoke).items()}
        measured = {name: shares(self.content, answers) for name, answers in lists.items()}
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
            "ranked": self._ranked({name: answers for name, answers in lists.items() if name in RANKED}, seed),
        }

    def _ranked(self, lists: Mapping[str, PossibleLists], seed: int) -> dict[str, dict[str, list[float]]]:
        """Return the figures of `ranked_lists` for each recall method and ranker, trained on the training readers."""
        sizes = RankingSettings(rounds=self.rounds, cohort=COHORT)
        library = Library.of(self.news)
        found: dict[str, dict[str, list[float]]] = {name: {} for name in lists}
        for ranker, name in list(RANKERS.items())[: 1 if self.smoke else None]:
            kind = STUDY_MODELS[name]
            model = kind.model(seed)
            graph = gradient_graph(model, ranker_inputs(kind.dim))
            trained = train_in_rounds(self.samples, library, model, graph, kind, seed, sizes)
            for method, answers in lists.items():
                unread = unread_lists(self.split, answers)
                scores = model_scores(unread, model, trained.weights, library)
                found[method][ranker] = ranked_lists(self.split, unread, scores)
        return found

    def rows(self, job: Job, run: dict[str, Any]) -> list[dict[str, Any]]:
        return [run]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[Job, dict[str, Any]]:
        return {("seed", int(row["seed"])): dict(row) for row in rows}

    def line(self, job: Job, run: dict[str, Any]) -> str:
        """Return R@400 of the paper's configuration."""
        future, past = (100 * each[DEPTHS.index(400)] for each in run["measured"][PAPER])
        return f"seed {job[1]}: {PAPER} R@400 {future:.1f} %, of the history {past:.1f} %"

    def tables(self, runs: Mapping[Job, dict[str, Any]]) -> list[Table]:
        """Tables 2 to 4 and figures 4 to 7, with the mean and the standard deviation of the seeds."""
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
        rankers = list(every[0]["ranked"][PAPER])
        pools = np.array([[[found[1] for found in row.values()] for row in run["ranked"].values()] for run in every])
        ranked = Table(
            "AUC by recall and ranker (Table 4)",
            ("recall", *rankers, "readers", "AUC in the pool"),
            [_ranked_row(name, every, rankers) for name in every[0]["ranked"]],
            (
                f"Of {RECALLED} recalled articles those not read before, ranked by models that {self.rounds} rounds of "
                f"{COHORT} trained on other readers, from the cosine; of the readers with a later click in their list. "
                "In the pool: of all readers and articles; those that weren't recalled tie, behind those that were. "
                f"There rankers differ by {np.ptp(pools, axis=2).max():.5f} at most.",
            ),
        )
        note = (
            f"{len(self.split.measured)} test readers, {len(self.news):,} articles; {self.rounds} rounds of {COHORT}. "
            "Mean and standard deviation over seeds. The paper's values are not in the text at hand.",
        )
        return [
            replace(both[0], notes=note),
            both[1],
            ranked,
            Table("Training loss by round and r (Figure 7)", ("r", *(f"round {step + 1}" for step in steps)), curves),
        ]


Lists = Callable[[EmbeddedSplit, FirstModel, int], PossibleLists]
PAPER = "Uni-FedRec"
CLEAR = "without noise (Figure 4)"
MEAN, CLUSTERS = "mean of the clicks (YoutubeNet)", "means of clusters (PinnerSage)"
RANKED = (MEAN, CLUSTERS, PAPER, CLEAR)
"""Rows of table 4."""


def decoded(study: EmbeddedSplit, model: FirstModel, seed: int, noise: float = NOISE) -> PossibleLists:
    """Return lists by vectors decoded from clipped scores with Laplace noise of this intensity (section 3.3)."""
    found = Decomposed.of(model, study.news, study.split.measured.histories)
    sent = clipped(CLIP)(found.scores)
    if noise:
        sent = sent + laplace(SeededNoise(seed), noise, sent.shape)
    return listed(study, Channels(aggregate(sent, found.values), found.counts))


def undecomposed(study: EmbeddedSplit, model: FirstModel, seed: int) -> PossibleLists:
    """Return lists by the channels' own vectors, without basic interests ("BIE") and noise."""
    found = Decomposed.of(model, study.news, study.split.measured.histories)
    return listed(study, Channels(found.channels, found.counts))


def mean_click(study: EmbeddedSplit, model: FirstModel, seed: int) -> PossibleLists:
    """Return lists by the mean of the clicks' vectors, as YoutubeNet aggregates them."""
    return listed(study, Channels(study.readers, ((1,),) * len(study.readers)))


def clustered(study: EmbeddedSplit, model: FirstModel, seed: int) -> PossibleLists:
    """Return lists by the means of clusters of clicks, as in PinnerSage, without attention."""
    return listed(study, channels(study.news, study.news, study.split.measured.histories))


def listed(study: EmbeddedSplit, found: Channels) -> PossibleLists:
    """Return the longest lists, ranked by inner product in each channel and merged by the channels' clicks."""
    return lists(study, found, 1.0, max(DEPTHS))


def variants(smoke: bool) -> dict[str, Lists]:
    """Return every row of the tables: baselines, the paper's configuration, ablations, noise, clustering distance."""
    rows: dict[str, Lists] = {
        "random order": lambda study, model, seed: PossibleLists.common(
            np.random.default_rng(seed).permutation(len(study.news))[: max(DEPTHS)], len(study.readers)
        ),
        MEAN: mean_click,
        CLUSTERS: clustered,
        PAPER: decoded,
        CLEAR: lambda study, model, seed: decoded(study, model, seed, 0.0),
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
    """Return R@K of the held-out clicks and of the history, for each reader."""
    split = study.split
    past = [np.unique(history) for history in split.measured.histories]
    return RecallShares(
        recall(answers, split.measured.targets, split.news, DEPTHS), recall(answers, past, split.news, DEPTHS)
    )


def unread_lists(split: WarmSplit, answers: PossibleLists) -> Impressions:
    """Return the readers' lists as impressions, without articles already read; clicked are the held-out clicks."""
    readers = split.measured
    lists = [answers.lists[names[0], :RECALLED] for names in answers.choice]
    lists = [rows[~np.isin(rows, history)] for rows, history in zip(lists, readers.histories, strict=True)]
    clicked = [np.isin(rows, targets) for rows, targets in zip(lists, readers.targets, strict=True)]
    names = tuple(str(reader) for reader in range(len(readers)))
    times = np.zeros(len(readers), dtype=np.int64)
    labels = np.concatenate(clicked).astype(np.int64)
    return Impressions(names, names, times, RaggedArray.of(readers.histories), RaggedArray.of(lists), labels)


def ranked_lists(split: WarmSplit, unread: Impressions, scores: NDArray[np.float32]) -> list[float]:
    """Return mean AUC in lists that contain a held-out click and in the whole unread pool, and the number of such
    lists.

    A click that wasn't recalled ranks behind every recalled article and ties with all others.
    """
    in_lists: list[float] = []
    in_pool: list[float] = []
    offsets = unread.candidates.offsets
    for reader, (history, targets) in enumerate(zip(split.measured.histories, split.measured.targets, strict=True)):
        part = slice(*offsets[reader : reader + 2])
        hits, length = int(unread.clicked[part].sum()), part.stop - part.start
        inside = auc(unread.clicked[part], scores[part]) if 0 < hits < length else 0.5
        if hits:
            in_lists.append(inside)
        outside = split.news - len(np.unique(history)) - len(targets) - (length - hits)
        pairs = hits * (outside + inside * (length - hits)) + (len(targets) - hits) * outside / 2
        in_pool.append(pairs / (len(targets) * (outside + length - hits)))
    return [float(np.mean(in_lists)) if in_lists else 0.5, float(np.mean(in_pool)), len(in_lists)]


def _ranked_row(name: str, every: Sequence[Mapping[str, Any]], rankers: Sequence[str]) -> tuple[Cell, ...]:
    found = np.array([[run["ranked"][name][ranker] for ranker in rankers] for run in every])  # [seeds, rankers, 3]
    in_lists = (_figure(found[:, each, 0], 4) for each in range(len(rankers)))
    return (name, *in_lists, _figure(found[:, 0, 2], 0), _figure(found[..., 1].mean(axis=1), 4))


def _row(name: str, every: Sequence[Mapping[str, Any]], at: int) -> tuple[Cell, ...]:
    found = np.array([run["measured"][name][at] for run in every])
    return (name, *(_figure(100 * found[:, depth], 1) for depth in range(len(DEPTHS))))


def _figure(values: Sequence[float] | Floats, places: int) -> str:
    mean = f"{float(np.mean(values)):.{places}f}"
    return mean if len(values) == 1 else f"{mean} +- {float(np.std(values, ddof=1)):.{places}f}"
