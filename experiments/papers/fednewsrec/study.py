"""`ownfeed evaluate fednewsrec`: figures 4 to 7 of FedNewsRec, for its user model on frozen news vectors.

Training follows the paper except for the sizes: each device clips its gradient by delta and adds Laplace noise of scale
lambda (eqs. 4 and 5), and the server takes SGD steps of .5 along the mean (eq. 7), in which each device is weighted by
its samples n_u (eq. 6), as in the preset `fednewsrec`. The figures share one training with all users and both parts at
the paper's values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.federation.optimizers import Sgd, StatefulOptimizer
from backend.federation.strategies.fedavg import FedAvg
from device_app.training.gradients import OnnxGradients
from device_app.training.tasks.full_gradient import FullGradientTask
from experiments.datasets.mind import FOLDER, load_mind
from experiments.datasets.samples import TrainingSamples, training_samples
from experiments.datasets.titles import product_vectors, title_vectors
from experiments.papers.finding.protocol import judgeable, rows_of
from experiments.ranking.evaluation import each_impression, model_scores
from experiments.records import Cell, Table
from experiments.simulation.clients import SimulatedDevice, WeightedReaders, gradient_graph, in_clear, ranker_inputs
from experiments.simulation.protections import ElementwiseLaplace
from experiments.simulation.readers import Library, SimulatedReader
from experiments.simulation.rounds import Rounds, simulate
from experiments.study import Study
from exporters.signature import parameters
from models.builders.user import fednewsrec
from models.shapes import NEGATIVES
from models.user.papers import FedNewsRecUser
from protocol.protections import LocalLaplace

HEADS, HEAD_DIM, ATTENTION_DIM, SAMPLES = 8, 8, 64, 32
RATE, CLIP, NOISE = 0.5, 0.005, 0.015
"""eta, delta and lambda, section 4.1."""
BOTH, LONG, SHORT = (1.0, 1.0), (1.0, 0.0), (0.0, 1.0)
PARTS = {BOTH: "long and short term", LONG: "without short term", SHORT: "without long term"}
Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]


class PartialUser(FedNewsRecUser):
    """FedNewsRec's user model with one of its two vectors left out. parts: 1 for each vector that is used, long-term
    first.
    """

    parts: tuple[float, float] = BOTH

    def fuse(self, long: Tensor, short: Tensor, present: Tensor) -> Tensor:
        """Combine the vectors that are used: a missing one has weight 0."""
        clicked = present.amax(dim=-1, keepdim=True)
        return super().fuse(long, short, torch.cat([part * clicked for part in self.parts], dim=-1))


@dataclass(frozen=True)
class FigurePoint:
    """One training. share: r, the share of all readers in a round. users: maximum number of readers, None for all."""

    seed: int
    users: int | None = None
    noise: float = NOISE
    clip: float = CLIP
    share: float = 0.01
    parts: tuple[float, float] = BOTH


@dataclass(frozen=True)
class FedNewsRecSizes:
    """rounds: of every training. measured: number of measurements during a training. users: most readers, None
    for all.
    """

    rounds: int = 40
    seeds: int = 2
    measured: int = 4
    users: tuple[int, ...] = (50, 500)
    noises: tuple[float, ...] = (0.0, 0.05, 0.15)
    clips: tuple[float, ...] = (0.001, 0.02)
    shares: tuple[float, ...] = (0.005, 0.02)


SMOKE = FedNewsRecSizes(2, 1, 1, (50,), (0.05,), (0.001,), (0.005,))


@dataclass(frozen=True)
class AucByRound:
    """Results after each of these rounds: AUC, nDCG@10 and possibly others. aucs: of every impression at the end."""

    rounds: tuple[int, ...]
    figures: tuple[tuple[float, ...], ...]
    aucs: tuple[float, ...]


@dataclass(frozen=True)
class FedNewsRecStudy(Study[FigurePoint, AucByRound]):
    """One training for each point of a figure and each seed."""

    data: Path
    sizes: FedNewsRecSizes = field(default_factory=FedNewsRecSizes)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.sizes.seeds))

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return rounds and measurements of every training, and how devices are weighted."""
        return {"rounds": self.sizes.rounds, "measured": self.sizes.measured, "weights": "n_u"}

    @property
    def jobs(self) -> Sequence[FigurePoint]:
        return [replace(each, seed=seed) for seed in self.seeds for each in dict.fromkeys(self._points)]

    @property
    def _points(self) -> list[FigurePoint]:
        whole, sizes = FigurePoint(0), self.sizes
        return [
            *(replace(whole, users=users) for users in (*sizes.users, None)),
            *(replace(whole, noise=noise) for noise in sizes.noises),
            *(replace(whole, clip=clip) for clip in sizes.clips),
            *(replace(whole, share=share) for share in sizes.shares),
            *(replace(whole, parts=parts) for parts in PARTS),
        ]

    def prepare(self) -> None:
        self.samples  # noqa: B018 - what it raises, it raises now

    @cached_property
    def _mind(self) -> Any:
        return load_mind(self.data / FOLDER)

    @cached_property
    def samples(self) -> TrainingSamples:
        return training_samples(self._mind.train, len(self._mind.news))

    @cached_property
    def library(self) -> Library:
        return Library.of(product_vectors(title_vectors(self._mind.news.titles), HEADS * HEAD_DIM))

    def run(self, job: FigurePoint) -> AucByRound:
        """Train, and measure on dev at intervals."""
        sizes, everyone = self.sizes, self.samples.readers
        model = user_model(job.parts, job.seed)
        users = min(job.users or everyone, everyone)
        chosen = np.random.default_rng((job.seed, everyone)).permutation(everyone)[:users]
        device = SimulatedDevice(
            FullGradientTask(NEGATIVES, SAMPLES, ()),
            OnnxGradients(graph_of(job.parts)),
            lambda reader: SimulatedReader(self.samples, int(chosen[reader]), self.library),
            job.seed,
            ElementwiseLaplace(LocalLaplace(clip=job.clip, scale=job.noise)) if job.noise else in_clear,
        )
        plan = Rounds(sizes.rounds, min(users, round(job.share * everyone)), users, job.seed)
        start = {name: value.numpy().copy() for name, value in parameters(model).items()}
        found: dict[int, Floats] = {0: self._measured(model, start)}

        def measure(done: int, weights: Mapping[str, Vectors]) -> None:
            if done % max(1, sizes.rounds // sizes.measured) == 0:
                found[done] = self._measured(model, weights)

        simulate(WeightedReaders(device), start, plan, FedAvg(), StatefulOptimizer(Sgd(RATE)), after_round=measure)
        means = [each.mean(axis=0).tolist() for each in found.values()]
        return AucByRound(tuple(found), tuple((a, b) for a, b in means), tuple(found[max(found)][:, 0].tolist()))

    @cached_property
    def _judged(self) -> Any:
        return rows_of(self._mind.dev, judgeable(self._mind.dev))

    def _measured(self, model: PartialUser, weights: Mapping[str, Vectors]) -> Floats:
        """Return AUC and nDCG@10, [impressions, 2]."""
        return each_impression(self._judged, model_scores(self._judged, model, weights, self.library))[:, :2]

    def line(self, job: FigurePoint, run: AucByRound) -> str:
        return f"{job}: AUC {run.figures[0][0]:.4f} -> {run.figures[-1][0]:.4f}"

    def rows(self, job: FigurePoint, run: AucByRound) -> list[dict[str, Any]]:
        return [{"job": asdict(job), **asdict(run)}]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[FigurePoint, AucByRound]:
        return {
            FigurePoint(**{**row["job"], "parts": tuple(row["job"]["parts"])}): AucByRound(
                tuple(row["rounds"]), tuple((a, b) for a, b in row["figures"]), tuple(row["aucs"])
            )
            for row in rows
        }

    def tables(self, runs: Mapping[FigurePoint, AucByRound]) -> list[Table]:
        sizes, whole, everyone = self.sizes, FigurePoint(0), self.samples.readers

        def row(*named: Cell, job: FigurePoint) -> tuple[Cell, ...]:
            pairs = [(runs[replace(job, seed=seed)], runs[replace(whole, seed=seed)]) for seed in self.seeds]
            return (*named, *compared([mine for mine, _ in pairs], [its for _, its in pairs]))

        users = [row(each or everyone, job=replace(whole, users=each)) for each in (*sizes.users, None)]
        pairs = [*((each, CLIP) for each in sorted({*sizes.noises, NOISE})), *((NOISE, each) for each in sizes.clips)]
        noise = [
            row(noise, clip if noise else None, round(2 * clip / noise, 3) if noise else None,
                job=replace(whole, noise=noise, clip=clip))
            for noise, clip in pairs
        ]  # fmt: skip
        curves: list[tuple[Cell, ...]] = []
        for share in sorted({*sizes.shares, whole.share}):
            found = [runs[FigurePoint(seed, share=share)] for seed in self.seeds]
            aucs = np.mean([[figures[0] for figures in each.figures] for each in found], axis=0)
            curves.append((f"{100 * share:g} %", *(f"{each:.4f}" for each in aucs)))
        parts = [row(name, job=replace(whole, parts=each)) for each, name in PARTS.items()]
        least = runs[whole]
        columns = ("AUC", "nDCG@10", "AUC - all, both, paper's values", "impressions needed")
        notes = (
            f"User model of {HEADS * HEAD_DIM} numbers from a random start; {sizes.rounds} rounds of "
            f"{100 * whole.share:g} % of {everyone:,} readers, means over "
            f"seeds; {len(least.aucs)} dev impressions. Differences are paired by impression, +- one standard error; "
            "needed are as many impressions as make the difference two of them.",
        )
        return [
            Table("Number of users (Figure 4)", ("users", *columns), users, notes),
            Table("lambda and delta (Figure 5)", ("lambda", "delta", "2 delta / lambda", *columns), noise),
            Table("AUC by round and r (Figure 6)", ("r", *(f"round {each}" for each in least.rounds)), curves),
            Table("Long and short term (Figure 7)", ("user model", *columns), parts),
        ]


def user_model(parts: tuple[float, float], seed: int) -> PartialUser:
    """Return the user model with random initial weights."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = fednewsrec(heads=HEADS, head_dim=HEAD_DIM, attention_dim=ATTENTION_DIM)
        partial_user = PartialUser(model.attention, model.pooling, model.gru, model.fusion)
    partial_user.parts = parts
    return partial_user


@cache
def graph_of(parts: tuple[float, float]) -> bytes:
    """Return the gradient graph, which is the same for all weights."""
    model = user_model(parts, 0)
    return gradient_graph(model, ranker_inputs(model.dim))


def compared(runs: Sequence[AucByRound], against: Sequence[AucByRound]) -> tuple[Cell, ...]:
    """Return AUC, nDCG@10, and the AUC's difference from other runs of the same seeds, paired by impression."""
    means = np.mean([each.figures[-1] for each in runs], axis=0)
    gains = np.mean([each.aucs for each in runs], axis=0) - np.mean([each.aucs for each in against], axis=0)
    if not gains.any():
        return (*(f"{each:.4f}" for each in means), None, None)
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    needed = round(float((2 * error / gains.mean()) ** 2 * len(gains)))
    return (*(f"{each:.4f}" for each in means), f"{gains.mean():+.4f} +- {error:.4f}", needed)
