"""`ownfeed evaluate news-baselines`: the baselines of FedNewsRec's and Efficient-FedRec's tables 2, from words.

All see the same samples of 9 to 13 November on MIND's whole lists, and rank those of the 14th, as Efficient-FedRec's
study does. FedRec is FedNewsRec's model in rounds without noise; the others but FCF train centrally.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from experiments.datasets.mind import Impressions, NewsTable, load_behaviors, load_news
from experiments.datasets.samples import TrainingSamples, training_samples
from experiments.papers.efficient_fedrec.study import FOLDER, days
from experiments.papers.finding.protocol import judgeable, rows_of
from experiments.papers.fl_mv_dssm.baselines import Factorising
from experiments.papers.news_baselines.articles import ArticleColumns
from experiments.papers.news_baselines.factors import DeepFusion, FactorisationMachine, factor_scores, factorise
from experiments.papers.news_baselines.training import NewsRanker, central_batches, ranked, train
from experiments.papers.news_baselines.words import DIM, Dan, Denoised, Dkn, Lstur, Npa, fednewsrec_model, nrms_model
from experiments.ranking.evaluation import each_impression
from experiments.records import Cell, Table, required
from experiments.simulation.rounds import Rounds
from experiments.study import Study

RATE, BATCH, COHORT = 1e-3, 64, 50
CENTRAL, FEDERATED, FACTORS = "CenNewsRec = CenRec", "FedRec", "FCF"
MODELS: dict[str, Callable[[ArticleColumns, int], NewsRanker]] = {
    "FM": FactorisationMachine,
    "DFM": lambda columns, readers: DeepFusion(columns),
    "EBNR": lambda columns, readers: Denoised(columns),
    "DKN": lambda columns, readers: Dkn(columns),
    "DAN": lambda columns, readers: Dan(columns),
    "NPA": Npa,
    "LSTUR": Lstur,
    "NRMS": lambda columns, readers: nrms_model(columns),
    CENTRAL: lambda columns, readers: fednewsrec_model(columns),
    FEDERATED: lambda columns, readers: fednewsrec_model(columns),
}
PUBLISHED: dict[str, tuple[float | None, float | None]] = {
    "FM": (58.41, None),
    "DFM": (61.25, 60.67),
    "EBNR": (63.64, None),
    "DKN": (62.38, 64.72),
    "DAN": (62.54, None),
    "NPA": (64.29, None),
    "LSTUR": (None, 66.90),
    "NRMS": (65.72, 66.67),
    CENTRAL: (66.45, 66.92),
    FEDERATED: (None, 66.54),
    FACTORS: (51.03, 50.02),
}
"""AUC in table 2 of FedNewsRec, on MSN-News, and of Efficient-FedRec, on MIND."""


@dataclass(frozen=True)
class BaselineJob:
    """One training of one method."""

    method: str
    seed: int


@dataclass(frozen=True)
class BaselineSizes:
    """steps: of 64 samples; rounds: of FedRec, as many as have the samples of 400 steps; factor_rounds: of FCF."""

    steps: int = 400
    rounds: int = 100
    seeds: int = 3
    factor_rounds: int = 100


SMOKE = BaselineSizes(2, 2, 1, 2)
Figures = tuple[tuple[float, float, float], ...]
"""AUC, nDCG@10 and loss of each impression."""


@dataclass(frozen=True)
class NewsBaselineStudy(Study[BaselineJob, Figures]):
    """Each method, trained once a seed."""

    data: Path
    sizes: BaselineSizes = BaselineSizes()
    methods: tuple[str, ...] = tuple(PUBLISHED)

    @property
    def jobs(self) -> Sequence[BaselineJob]:
        """The trainings, seed by seed."""
        return [BaselineJob(method, seed) for seed in self.seeds for method in self.methods]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of weights, batches and negatives."""
        return tuple(range(self.sizes.seeds))

    @property
    def settings(self) -> Mapping[str, Any]:
        """Steps, rounds and the rate."""
        return {"steps": self.sizes.steps, "rounds": self.sizes.rounds, "rate": RATE, "dim": DIM}

    def prepare(self) -> None:
        """Check that the folder exists. Raises DataMissing."""
        required(self.data / FOLDER)

    @cached_property
    def _news(self) -> NewsTable:
        return load_news(self.data / FOLDER / "news.tsv")

    @cached_property
    def columns(self) -> ArticleColumns:
        """What the models read."""
        return ArticleColumns.load(self.data / FOLDER / "news.tsv", self._news)

    @cached_property
    def _shown(self) -> Impressions:
        return load_behaviors(self.data / FOLDER / "behaviors.tsv", self._news)

    @cached_property
    def samples(self) -> TrainingSamples:
        """The readers' samples before the last day."""
        return training_samples(days(self._shown, 1, 99), len(self._news))

    @cached_property
    def judged(self) -> tuple[Impressions, NDArray[np.int64]]:
        """The last day's lists, and the number of each reader among those who trained, 0 for the others."""
        last = days(self._shown, 0, 1)
        kept = rows_of(last, judgeable(last))
        numbers = {name: number for number, name in enumerate(self.samples.names, start=1)}
        return kept, np.array([numbers.get(user, 0) for user in kept.users], dtype=np.int64)

    def run(self, job: BaselineJob) -> Figures:
        """Train, and rank the last day's lists."""
        shown, readers = self.judged
        scores = self._factored(job.seed) if job.method == FACTORS else ranked(self._trained(job), shown, readers)
        return tuple((a, b, c) for a, b, c in each_impression(shown, scores).tolist())

    def _trained(self, job: BaselineJob) -> NewsRanker:
        samples, sizes = self.samples, self.sizes
        with torch.random.fork_rng():
            torch.manual_seed(job.seed)
            model = MODELS[job.method](self.columns, samples.readers)
            if job.method == FEDERATED:
                plan = Rounds(sizes.rounds, COHORT, samples.readers, job.seed)
                batches = (
                    np.concatenate([samples.of_reader(each) for each in plan.cohort_of(number)])
                    for number in range(sizes.rounds)
                )
                train(model, samples, batches, RATE, job.seed)
            else:
                train(model, samples, central_batches(samples, sizes.steps, BATCH, job.seed), RATE, job.seed)
        return model

    def _factored(self, seed: int) -> NDArray[np.float64]:
        samples, how = self.samples, Factorising(rounds=self.sizes.factor_rounds)
        read = [sorted(each) for each in samples.read]
        owners = np.repeat(np.arange(len(read)), [len(each) for each in read])
        seen = csr_array((np.ones(len(owners)), (owners, np.concatenate(read))), shape=(len(read), samples.news))
        return factor_scores(factorise(seen, how, seed), self.judged[0], how)

    def line(self, job: BaselineJob, run: Figures) -> str:
        """AUC, nDCG@10 and loss."""
        return f"{job.method}, seed {job.seed}: {np.mean(run, axis=0).round(4).tolist()}"

    def rows(self, job: BaselineJob, run: Figures) -> list[dict[str, Any]]:
        return [{"job": asdict(job), "figures": run}]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[BaselineJob, Figures]:
        return {BaselineJob(**row["job"]): tuple((a, b, c) for a, b, c in row["figures"]) for row in rows}

    def tables(self, runs: Mapping[BaselineJob, Figures]) -> list[Table]:
        """Both papers' tables 2."""
        found = {
            method: np.array([runs[BaselineJob(method, seed)] for seed in self.seeds]) for method in self.methods
        }  # [seeds, impressions, 3]
        central = found.get(CENTRAL)
        rows: list[tuple[Cell, ...]] = []
        for method, figures in found.items():
            means, by_seed = figures.mean(axis=(0, 1)), figures[..., 0].mean(axis=1)
            spread = f" ({by_seed.std(ddof=1):.4f})" if len(by_seed) > 1 else ""
            cells = (f"{means[0]:.4f}{spread}", f"{means[1]:.4f}", f"{means[2]:.4f}")
            rows.append((method, *cells, *_against(figures, central), *PUBLISHED[method]))
        judged = len(next(iter(found.values()))[0])
        notes = (
            f"Vectors of {DIM} numbers, from random weights. {self.sizes.steps} steps of {BATCH} samples; FedRec: "
            f"{self.sizes.rounds} rounds of {COHORT} readers. {judged} impressions; means over seeds (standard "
            "deviation). Differences are paired by impression, +- one standard error; needed are as many impressions "
            "as make the difference two of them.",
        )
        columns = ("AUC", "nDCG@10", "loss", "AUC - CenNewsRec", "impressions needed")
        papers = ("AUC % FedNewsRec", "AUC % Efficient-FedRec")
        return [Table("Baselines from words (Table 2)", ("method", *columns, *papers), rows, notes)]


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Return the methods of these names, all for none. Raises ValueError for an unknown name."""
    unknown = sorted(set(names) - set(PUBLISHED))
    if unknown:
        raise ValueError(f"method: {', '.join(unknown)} is none of {', '.join(PUBLISHED)}")
    return tuple(each for each in PUBLISHED if not names or each in names)


def _against(figures: NDArray[np.float64], other: NDArray[np.float64] | None) -> tuple[Cell, Cell]:
    """The difference in AUC, and the impressions that would show it."""
    if other is None or other is figures:
        return None, None
    gains = figures[..., 0].mean(axis=0) - other[..., 0].mean(axis=0)
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    return f"{gains.mean():+.4f} +- {error:.4f}", round(float((2 * error / gains.mean()) ** 2 * len(gains)))
