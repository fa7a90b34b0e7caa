"""`ownfeed evaluate basis`: what the basis that reports name finds on MIND, trained in rounds of the live server's step
and published by its vote, beside topics of the pool and k-means of readers.

Rounds without devices: gradients and votes of readers in closed form, the sum's noise from a seeded generator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import PREFIX, Aggregate
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.protections.sum_bounds import noise_deviation
from backend.federation.strategies.reported_basis import (
    BasisDraft,
    BasisRounds,
    BasisVote,
    principal_axes,
    report_lists,
)
from backend.federation.systems.system import SystemSpec
from backend.federation.systems.uni_fedrec import BASIS_VOTE, UNI_FEDREC, UNI_FEDREC_EXACT
from backend.popularity.prior import SHARPNESS
from device_app.wire.layout import WeightedSum
from device_app.wire.reported_basis import STEPS, ReportLists
from device_app.wire.sum_vectors import SHAPES
from experiments.datasets.mind import FOLDER, load_mind
from experiments.datasets.titles import product_vectors, title_vectors
from experiments.recall.basis_gradients import ClickSamples, clipped, gradients, votes
from experiments.recall.codebook_rounds import topics_of
from experiments.recall.measure import DEPTHS, paired, recall
from experiments.recall.modes import EmbeddedSplit, Mixtures, ReportCodebook, learned_book
from experiments.recall.warm import splits
from experiments.study import Study
from experiments.table import Cell, Table, required
from models.shapes import NEWS_DIM

EPSILON, FINEST = 4.0, 64
AT_100, AT_400 = DEPTHS.index(100), DEPTHS.index(400)


@dataclass(frozen=True)
class BasisPlan:
    """A system in rounds of a cohort for so many possible releases, and who votes on its drafts: devices, or 0 where
    every draft is published."""

    spec: SystemSpec
    cohort: int
    voters: int
    releases: int


DRAFTED, REPLAYED = 3, 50
PLANS = (
    BasisPlan(UNI_FEDREC_EXACT, 60, 0, DRAFTED),
    BasisPlan(UNI_FEDREC_EXACT, 300, 0, DRAFTED),
    BasisPlan(UNI_FEDREC_EXACT, 1_000, 0, DRAFTED),
    BasisPlan(UNI_FEDREC, 60, 0, DRAFTED),
    BasisPlan(UNI_FEDREC, 1_000, 0, DRAFTED),
    BasisPlan(UNI_FEDREC, 2_800, 0, DRAFTED),
    BasisPlan(UNI_FEDREC_EXACT, 60, 60, REPLAYED),
    BasisPlan(UNI_FEDREC_EXACT, 300, 2_800, REPLAYED),
    BasisPlan(UNI_FEDREC_EXACT, 300, 0, REPLAYED),
    BasisPlan(UNI_FEDREC, 60, 60, REPLAYED),
)


@dataclass(frozen=True)
class Releases:
    """What served after each possible release, [r + 1, K, D] with the start first, how many were published, and how
    much of the way from the start to the last draft is noise."""

    served: NDArray[np.float32]
    published: int
    noise: float


@dataclass(frozen=True)
class TrainedReaders:
    """Readers who train: their samples, and the pool that they read from."""

    study: EmbeddedSplit
    samples: ClickSamples
    finest: NDArray[np.float32]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.study.split.train)

    def lists(self, prototypes: NDArray[np.floating], axes: NDArray[np.float32]) -> ReportLists:
        """As the server gives them."""
        return report_lists(
            np.asarray(prototypes, dtype=np.float32), (), self.study.news, self.study.log_popularity, axes=axes
        )

    def train(self, plan: BasisPlan, start: NDArray[np.float32], seed: int) -> Releases:
        """All rounds of a plan; who takes part is drawn anew each round."""
        strategy, rng = plan.spec.strategy, np.random.default_rng(seed)
        assert isinstance(strategy, BasisRounds)
        axes = principal_axes(self.finest, strategy.axes)
        draft, served, published, noise = BasisDraft.begin(start), [start], 0, 0.0
        for _ in range(plan.releases):
            for _ in range(strategy.vote_every):
                draft = self._stepped(plan, strategy, draft, axes, rng)
            whole = replace(draft, begun=start.astype(np.float64), noise=noise + draft.noise)
            asked = draft if plan.voters else replace(draft, noise=0.0)  # noise is no reason where all is published
            if strategy.worth(asked, served[-1]) and self._voted(plan, draft, served[-1], rng):
                served.append(draft.prototypes.astype(np.float32))
                draft, published, noise = BasisDraft.begin(served[-1]), published + 1, whole.noise
            else:
                served.append(served[-1])
        return Releases(np.stack(served), published, whole.noise_share())

    def _stepped(
        self,
        plan: BasisPlan,
        strategy: BasisRounds,
        draft: BasisDraft,
        axes: NDArray[np.float32],
        rng: np.random.Generator,
    ) -> BasisDraft:
        mechanism = secure_sum_of(plan.spec.protection)
        cohort = rng.choice(self.count, size=plan.cohort, replace=False)
        mine = self.samples.of_readers(cohort, held=False)
        given = clipped(gradients(self.lists(draft.prototypes, axes), mine, plan.cohort, EPSILON), mechanism.clip)
        noise = noise_deviation(mechanism, plan.cohort)
        opened = given.sum(axis=0) + noise * rng.normal(size=given.shape[1:])
        total = Aggregate.of_opened(WeightedSum({PREFIX + STEPS: opened}, plan.cohort), mechanism.clip)
        return strategy.stepped(draft, total, noise / plan.cohort, axes)

    def _voted(self, plan: BasisPlan, draft: BasisDraft, served: NDArray[np.float32], rng: np.random.Generator) -> bool:
        if not plan.voters:
            return True
        mechanism, vote = secure_sum_of(BASIS_VOTE.protection), BASIS_VOTE.strategy
        assert isinstance(vote, BasisVote)
        cohort = rng.choice(self.count, size=plan.voters, replace=False)
        none = np.zeros((0, served.shape[1]), dtype=np.float32)
        mine = self.samples.of_readers(cohort, held=True)
        given = votes(self.lists(draft.prototypes, none), self.lists(served, none), mine, plan.voters, EPSILON)
        opened = given.sum(axis=0) + noise_deviation(mechanism, plan.voters) * rng.normal(size=len(SHAPES))
        sums = {name: opened[place : place + 1] for place, name in enumerate(SHAPES)}
        verdict, least = vote.judge(Aggregate.of_opened(WeightedSum(sums, plan.voters), mechanism.clip), mechanism)
        return verdict.gain > least


BasisJob = tuple[int, int]
"""Place among PLANS, and seed."""


@dataclass(frozen=True)
class BasisRun:
    """R@K of each reader [u, depths] by what served last; by_release [r + 1]: mean R@400 of what served; published: of
    the releases that there could have been; noise: share of the last draft."""

    noise: float
    published: int
    last: NDArray[np.float64]
    by_release: NDArray[np.float64]


@dataclass(frozen=True)
class BasisStudy(Study[BasisJob, BasisRun]):
    """Every plan from several starts, paired by reader with topics and with k-means of readers."""

    data: Path
    starts: int = 3
    plans: tuple[BasisPlan, ...] = PLANS

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of starts and draws."""
        return tuple(range(self.starts))

    @property
    def jobs(self) -> Sequence[BasisJob]:
        """Plan by plan."""
        return [(plan, seed) for plan in range(len(self.plans)) for seed in self.seeds]

    def prepare(self) -> None:
        """Look for the folder."""
        required(self.data / FOLDER)

    @cached_property
    def readers(self) -> EmbeddedSplit:
        """Test readers and news. Raises DataMissing and MalformedRow."""
        mind = load_mind(self.data / FOLDER)
        news = product_vectors(title_vectors(mind.news.titles), NEWS_DIM)
        histories = mind.train.longest_histories()
        _, test = splits([histories[user] for user in sorted(histories)], len(mind.news))
        return EmbeddedSplit(test, news, test.recent_clicks())

    @property
    def _size(self) -> int:
        strategy = self.plans[0].spec.strategy
        assert isinstance(strategy, BasisRounds)
        return strategy.size

    @cached_property
    def topics(self) -> list[NDArray[np.float32]]:
        """The start of each seed."""
        return [topics_of(self.readers, self._size, seed) for seed in self.seeds]

    @cached_property
    def finest(self) -> NDArray[np.float32]:
        """Of a seed of its own."""
        return topics_of(self.readers, FINEST, self.starts)

    def run(self, job: BasisJob) -> BasisRun:
        """Train in rounds, vote, and recall by what is drafted and by what serves."""
        plan, seed = self.plans[job[0]], job[1]
        samples = ClickSamples.of(self.readers.split.train, self.readers.news, seed)
        readers = TrainedReaders(self.readers, samples, self.finest)
        done = readers.train(plan, self.topics[seed], seed)
        found: list[NDArray[np.float64]] = []
        for place, each in enumerate(done.served):
            same = place and np.array_equal(each, done.served[place - 1])
            found.append(found[-1] if same else found_by(self.readers, each))
        means = np.array([each.mean(axis=0)[AT_400] for each in found])
        return BasisRun(done.noise, done.published, found[-1], means)

    def line(self, job: BasisJob, run: BasisRun) -> str:
        """R@400 of what served last, and how many releases were published."""
        plan = self.plans[job[0]]
        found = 100 * run.last.mean(axis=0)[AT_400]
        return (
            f"{plan.spec.name} of {plan.cohort}, {plan.voters} voters, seed {job[1]}: R@400 {found:.1f} %, "
            f"{run.published} of {plan.releases} published"
        )

    def tables(self, runs: Mapping[BasisJob, BasisRun]) -> list[Table]:
        """A row a plan."""
        study = self.readers
        topics = np.mean([found_by(study, start) for start in self.topics], axis=0)
        learned = [learned_book(study, self._size, seed) for seed in self.seeds]
        means = np.mean([found_by(study, each.prototypes, each.shares) for each in learned], axis=0)
        popular = recall(study.popular(), study.split.measured.targets, study.split.news)
        rows: list[tuple[Cell, ...]] = [
            ("popularity", None, None, None, *_points(popular), _gain(popular, topics), None),
            ("topics of the pool", None, None, None, *_points(topics), None, None),
            ("k-means of readers", None, None, None, *_points(means), _gain(means, topics), None),
        ]
        replay: list[tuple[Cell, ...]] = []
        for place, plan in enumerate(self.plans):
            mine = [runs[place, seed] for seed in self.seeds]
            last = np.mean([run.last for run in mine], axis=0)
            if plan.releases == DRAFTED:
                noise = f"{np.mean([run.noise for run in mine]):.2f}"
                told = (*_points(last), _gain(last, topics), _gain(last, means))
                rows.append((plan.spec.name, plan.cohort, _epsilon(plan.spec, plan.cohort), noise, *told))
                continue
            falls = 100 * np.stack([run.by_release - run.by_release[0] for run in mine])
            published = f"{sum(run.published for run in mine) / len(mine):.1f} of {plan.releases}"
            came_to = (published, *_points(last), _gain(last, topics), f"{falls.min():+.1f}")
            replay.append((plan.spec.name, plan.cohort, plan.voters or "nobody", *came_to))
        return [self._drafts(rows), self._replay(replay)]

    def _drafts(self, rows: list[tuple[Cell, ...]]) -> Table:
        columns = ("basis", "cohort", "epsilon of a round", "noise in the draft", "R@100 %", "R@400 %")
        split = self.readers.split
        return Table(
            "The basis that reports name, MIND subset",
            (*columns, "against topics @400", "against k-means @400"),
            rows,
            (
                f"{len(split.train):,} readers teach, {len(split.measured)} others are recalled for; reports of one of "
                f"{self._size} at epsilon {EPSILON:g}, in expectation; drafts after 30 rounds, {self.starts} starts "
                "and draws each. Differences in points, paired by reader, 95 % intervals of a bootstrap over readers.",
                "Rate, directions and sharpness of the assignment were chosen on validation readers, apart from these. "
                "A fifth of the clicks is held out for votes and teaches nothing.",
            ),
        )

    def _replay(self, rows: list[tuple[Cell, ...]]) -> Table:
        columns = ("system", "cohort", "voters", "published", "R@100 % at the end", "R@400 % at the end")
        return Table(
            "Releases of a trained basis, MIND subset",
            (*columns, "against topics @400", "lowest of any release"),
            rows,
            (
                "A draft is voted on every 10 rounds and published where its gain is beyond 3.09 standard errors of "
                "the votes, noise included; every time where nobody votes. Lowest: R@400 of what served less that "
                "of the start, in points, the least over all possible releases and starts.",
            ),
        )


def found_by(
    study: EmbeddedSplit, prototypes: NDArray[np.float32], shares: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """R@K of each reader [u, depths] by reports of one of these prototypes [K, D]; even shares if none are given."""
    size = len(prototypes)
    book = ReportCodebook(prototypes, np.full(size, 1 / size) if shares is None else shares, np.eye(size))
    lists = Mixtures(study, book, SHARPNESS).code(EPSILON)
    return recall(lists, study.split.measured.targets, study.split.news)


def _points(found: NDArray[np.float64]) -> tuple[str, str]:
    means = 100 * found.mean(axis=0)
    return f"{means[AT_100]:.1f}", f"{means[AT_400]:.1f}"


def _epsilon(spec: SystemSpec, cohort: int) -> str | None:
    """Of a round for each of so many survivors; None where the exact sum is opened."""
    mechanism, strategy = secure_sum_of(spec.protection), spec.strategy
    assert isinstance(strategy, BasisRounds)
    return f"{mechanism.epsilon(cohort, coordinates=strategy.size * strategy.axes):.2f}" if mechanism.sigma else None


def _gain(found: NDArray[np.float64], reference: NDArray[np.float64]) -> str:
    gain = paired(found, reference)[AT_400]
    return f"{gain.mean:+.1f} ({gain.low:+.1f} .. {gain.high:+.1f})"
