"""`ownfeed evaluate efficient-fedrec`: Efficient-FedRec's tables 2 and 3 and figures 4 and 5, on MIND's whole lists.

The news model is all-MiniLM-L6-v2, of which only the head is trained. It is trained on readers' samples of 9 to 13
November; the lists of the 14th are ranked.

A reader's own set of articles is the last 50 clicks and every candidate shown. A group's union is what its readers
request together (section 3.4), so it hides who requested what and determines the bytes of a round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.mind import Impressions, NewsTable, load_behaviors, load_news
from experiments.datasets.samples import TrainingSamples, training_samples
from experiments.papers.efficient_fedrec.costs import PIECES, SIZES, TITLES, news_model, user_model
from experiments.papers.efficient_fedrec.training import SplitModels, train
from experiments.papers.fednewsrec.study import AucByRound, compared
from experiments.papers.finding.protocol import judgeable, rows_of
from experiments.ranking.evaluation import each_impression, model_scores
from experiments.recall.pools import vectors_of
from experiments.records import Cell, Table, required
from experiments.simulation.readers import Library
from experiments.simulation.rounds import Rounds
from experiments.study import Study
from exporters.signature import parameters
from models.builders.user import nrms_400
from models.shapes import CLICKS, PAPER_DIM

FOLDER = "mind-train"
DAY_SEC = 86_400
UNION_GROUPS, UNIONS = (1, 10, 20, 30, 40, 50), 200
PUBLISHED_UNIONS = {1: 114, 40: 1_115}
"""Union sizes by group size in section 4.5; the figure's other values aren't in the paper's text."""
BYTES = 4
"""Bytes of a number, as float32."""
GROUP = 50
RATE = 5e-5
"""Adam's learning rate, section 4.1."""
EFFICIENT, CENTRAL, FROZEN = "Efficient-FedRec", "PLM-NR", "user model only"
METHODS = {
    CENTRAL: ("PLM-NR, central", 67.79),
    FROZEN: ("FedRec, user model only", None),
    EFFICIENT: ("Efficient-FedRec = FedRec(BERT)", 67.44),
}
"""Rows of table 2, with the paper's AUC."""
NewsSet = NDArray[np.int64]


@dataclass(frozen=True)
class StudyTraining:
    """One training. users: maximum number of readers who may take part, None for all."""

    seed: int
    method: str = EFFICIENT
    group: int = GROUP
    users: int | None = None


@dataclass(frozen=True)
class EfficientSizes:
    """rounds: of every training. measured: number of measurements during a training. users: most readers, None
    for all.
    """

    rounds: int = 60
    seeds: int = 2
    measured: int = 6
    groups: tuple[int, ...] = (10, 20)
    users: tuple[int, ...] = (200, 1_000)
    costs: tuple[str, ...] = tuple(SIZES)


SMOKE = EfficientSizes(2, 1, 1, (10,), (200,), ("Tiny",))
Job = StudyTraining | str
"""A training, or a size of BERT whose costs are measured."""
Costs = dict[str, float]


@dataclass(frozen=True)
class EfficientFedRecStudy(Study[Job, AucByRound | Costs]):
    """One training for each point of a table or figure and each seed, and the costs of each size of BERT."""

    data: Path
    sizes: EfficientSizes = EfficientSizes()

    @property
    def jobs(self) -> Sequence[Job]:
        whole = StudyTraining(0)
        points = [
            *(replace(whole, method=method) for method in METHODS),
            *(replace(whole, group=group) for group in self.sizes.groups),
            *(replace(whole, users=users) for users in self.sizes.users),
        ]
        return [*self.sizes.costs, *(replace(each, seed=seed) for seed in self.seeds for each in points)]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.sizes.seeds))

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return rounds and measurements of every training, and its rate."""
        return {"rounds": self.sizes.rounds, "measured": self.sizes.measured, "rate": RATE}

    def prepare(self) -> None:
        required(self.data / FOLDER)

    @cached_property
    def _news(self) -> NewsTable:
        return load_news(self.data / FOLDER / "news.tsv")

    @cached_property
    def _shown(self) -> Impressions:
        return load_behaviors(self.data / FOLDER / "behaviors.tsv", self._news)

    @cached_property
    def samples(self) -> TrainingSamples:
        """Return the readers' samples before the last day."""
        return training_samples(days(self._shown, 1, 99), len(self._news))

    @cached_property
    def _judged(self) -> Impressions:
        last = days(self._shown, 0, 1)
        return rows_of(last, judgeable(last))

    @cached_property
    def _states(self) -> NDArray[np.float32]:
        return vectors_of(self._news.titles)

    @cached_property
    def readers(self) -> list[NewsSet]:
        """Return the articles of each reader's behaviours."""
        shown = self._shown
        found: dict[str, list[NewsSet]] = {}
        for row, user in enumerate(shown.users):
            found.setdefault(user, []).extend((shown.histories[row][-CLICKS:], shown.candidates[row]))
        return [np.unique(np.concatenate(each)) for each in found.values()]

    def unions(self, group: int) -> list[int]:
        """Return the sizes of the unions of random groups."""
        rng = np.random.default_rng((0, group))
        return [union(self.readers, rng.choice(len(self.readers), group, replace=False)) for _ in range(UNIONS)]

    def run(self, job: Job) -> AucByRound | Costs:
        """Train, ranking the last day's lists at intervals; or measure the costs of one size."""
        if isinstance(job, str):
            numbers, seconds = news_model(job)
            return {
                "numbers": numbers,
                "title": seconds,
                "user": user_model(SplitModels.start(self._states), self.samples),
            }
        models, everyone, rounds = SplitModels.start(self._states), self.samples.readers, self.sizes.rounds
        users = min(job.users or everyone, everyone)
        found = {0: self._measured(models)}

        def measure(done: int) -> None:
            if done % max(1, rounds // self.sizes.measured) == 0:
                found[done] = self._measured(models)

        chosen = np.random.default_rng((job.seed, everyone)).permutation(everyone)[:users]
        plan = Rounds(rounds, job.group, users, job.seed)
        forms = {"central": job.method == CENTRAL, "news": job.method != FROZEN}
        train(models, self.samples, plan, RATE, readers=chosen, after_round=measure, **forms)
        means = [tuple(each.mean(axis=0).tolist()) for each in found.values()]
        return AucByRound(tuple(found), tuple(means), tuple(found[max(found)][:, 0].tolist()))

    def _measured(self, models: SplitModels) -> NDArray[np.float64]:
        weights = {name: value.numpy() for name, value in parameters(models.user).items()}
        library = Library.of(models.vectors(slice(0, -1)))
        return each_impression(self._judged, model_scores(self._judged, models.user, weights, library))

    def line(self, job: Job, run: AucByRound | Costs) -> str:
        return f"{job}: {run if isinstance(run, dict) else [run.figures[0], run.figures[-1]]}"

    def rows(self, job: Job, run: AucByRound | Costs) -> list[dict[str, Any]]:
        if isinstance(run, dict):
            return [{"size": job, "costs": run}]
        assert isinstance(job, StudyTraining)
        return [{"job": asdict(job), **asdict(run)}]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[Job, AucByRound | Costs]:
        return {
            row["size"] if "size" in row else StudyTraining(**row["job"]): row["costs"]
            if "size" in row
            else AucByRound(tuple(row["rounds"]), tuple(map(tuple, row["figures"])), tuple(row["aucs"]))
            for row in rows
        }

    def tables(self, runs: Mapping[Job, AucByRound | Costs]) -> list[Table]:
        unions = {group: self.unions(group) for group in UNION_GROUPS}
        user, whole = sum(each.numel() for each in nrms_400().parameters()), StudyTraining(0)

        def of(job: StudyTraining) -> list[AucByRound]:
            found = [runs[replace(job, seed=seed)] for seed in self.seeds]
            return [each for each in found if isinstance(each, AucByRound)]

        start = [replace(each, figures=each.figures[:1]) for each in of(whole)]
        columns = ("AUC", "nDCG@10", "loss")
        against = (f"AUC - {EFFICIENT}, all", "impressions needed")
        methods: list[tuple[Cell, ...]] = [
            ("untrained", *(f"{each:.4f}" for each in start[0].figures[0]), None, None, None)
        ]
        for method, (name, paper) in METHODS.items():
            methods.append((name, *compared(of(replace(whole, method=method)), of(whole)), paper))
        users = [
            (each or self.samples.readers, *compared(of(replace(whole, users=each)), of(whole)))
            for each in (*self.sizes.users, None)
        ]
        notes = (
            f"{self.sizes.rounds} rounds of {GROUP} of {self.samples.readers:,} readers, from the cosine; "
            f"{len(self._judged)} impressions; means over seeds. Only the head of the news model trains. Differences "
            "are paired by impression, +- one standard error; needed are as many impressions as make the difference "
            "two of them. Central steps have as many samples as the rounds.",
        )
        costs = {size: each for size in self.sizes.costs if isinstance(each := runs[size], dict)}
        return [
            Table("Accuracy (Table 2)", ("method", *columns, *against, "AUC % paper"), methods, notes),
            cost_table(costs, float(np.mean(unions[1])), float(np.mean(unions[GROUP])), user),
            self._union_table(unions, user),
            self._convergence_table(
                {each: of(replace(whole, group=each)) for each in (*self.sizes.groups, GROUP)}, user
            ),
            Table("Number of users (Figure 5)", ("users", *columns, *against), users),
        ]

    def _union_table(self, unions: Mapping[int, list[int]], user: int) -> Table:
        rows: list[tuple[Cell, ...]] = []
        own = float(np.mean(unions[1]))
        for group in UNION_GROUPS:
            size, paper = float(np.mean(unions[group])), PUBLISHED_UNIONS.get(group)
            times = None if paper is None else round(paper / PUBLISHED_UNIONS[1], 1)
            sent = BYTES * 2 * (size * PAPER_DIM + user) / 1e6
            rows.append((group, round(size), paper, f"{size / own:.1f}", times, f"{sent:.2f}"))
        each = len(self._shown.users) / len(self.readers)
        notes = (
            f"Mean of {UNIONS} random groups of {len(self.readers):,} readers with {each:.1f} impressions each, "
            "where the paper has all of them. MB: news vectors of 400 numbers and the user model, float32, there and "
            "back; without the other devices' keys and shares.",
        )
        columns = ("group", "union", "union paper", "times own", "times own paper", "MB a reader and round")
        return Table("Union news set by group size (Figure 4a)", columns, rows, notes)

    def _convergence_table(self, by_group: Mapping[int, list[AucByRound]], user: int) -> Table:
        losses = {
            group: np.mean([[each[2] for each in run.figures] for run in runs], axis=0)
            for group, runs in by_group.items()
        }
        goal = max(each.min() for each in losses.values())
        rows: list[tuple[Cell, ...]] = []
        for group, found in losses.items():
            done = by_group[group][0].rounds[int(np.argmax(found <= goal))]
            sent = BYTES * 2 * (float(np.mean(self.unions(group))) * PAPER_DIM + user) / 1e6
            rows.append((group, done, f"{done * sent:,.0f}", f"{done * sent * group / 1e3:.1f}", f"{found[-1]:.4f}"))
        columns = ("group", "rounds", "MB a reader in all of them", "GB of the group", "loss at the end")
        notes = (
            f"Rounds until the loss on the last day's lists is {goal:.4f}, the least that every group reaches, among "
            f"{self.sizes.measured} measured.",
        )
        return Table("Rounds and bytes by group size (Figures 4b and 4c)", columns, rows, notes)


def days(shown: Impressions, first: int, after: int) -> Impressions:
    """Return the impressions of the days first to after - 1, counted back from the last."""
    back = shown.times_sec.max() // DAY_SEC - shown.times_sec // DAY_SEC
    return rows_of(shown, np.flatnonzero((back >= first) & (back < after)))


def union(readers: Sequence[NewsSet], group: NDArray[np.int64]) -> int:
    """Return how many distinct articles the readers of a group have together."""
    return len(np.unique(np.concatenate([readers[each] for each in group])))


def cost_table(costs: Mapping[str, Costs], own: float, together: float, user: int) -> Table:
    """Return table 3.

    own and together: number of articles of a reader and of a group. user: parameters of the user model.
    """
    rows: list[tuple[Cell, ...]] = []
    for size, found in costs.items():
        paper = SIZES[size]
        sent = 2 * (together * PAPER_DIM + user) / 1e6, 2 * (found["numbers"] + user) / 1e6
        ours = (sent[0], found["user"], together * found["title"], sent[1], found["user"] + own * found["title"])
        theirs = (paper.numbers, paper.client, paper.server, paper.fedrec_numbers, paper.fedrec_client)
        cells = (cell for pair in zip(map("{:.3g}".format, ours), theirs, strict=True) for cell in pair)
        rows.append((size, *cells, paper.auc))
    columns = ("M numbers", "client s", "server s")
    named = [f"{each}{mark}" for each in columns for mark in ("", " paper")]
    fedrec = [f"FedRec {each}" for each in named[:4]]
    notes = (
        "A reader and round, there and back; M: millions. CPU seconds of one core, where the paper's server has a GPU: "
        f"news models with random weights on {TITLES} titles of {PIECES} word pieces, times the {own:.0f} news of a "
        f"reader or the {together:,.0f} of {GROUP} readers; the user model on the samples of a reader. Without secure "
        "sums. AUC: the paper's, as no size is trained here.",
    )
    return Table("Cost by size of BERT (Table 3, Figure 3)", ("BERT", *named, *fedrec, "AUC % paper"), rows, notes)
