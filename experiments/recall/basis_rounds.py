"""`ownfeed evaluate basis`: recall on MIND with a report basis that is trained in rounds and published by votes.

It is compared with topics of the pool and with k-means of readers. Rounds use the live server's step without devices:
readers' gradients and votes are closed forms of what devices compute with their graph and task, for a whole cohort at
once (tests compare the two); the sum's noise comes from a seeded generator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
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
from backend.federation.systems import COMPOSED
from backend.federation.systems.composition import SystemSpec
from backend.federation.systems.uni_fedrec import BASIS_VOTE
from backend.popularity.estimate import SHARPNESS
from experiments.datasets.mind import FOLDER
from experiments.recall import codebook_rounds
from experiments.recall.codebook_rounds import AT_100, AT_400, EPSILON, FINEST, topics_of, warm_readers
from experiments.recall.measure import CLICKS_MOST, HELD_OUT_MOST, KEPT_LEAST, Rows, paired, recall
from experiments.recall.modes import EmbeddedSplit, learned_book
from experiments.recall.tower import Vectors, reader_vectors
from experiments.records import Cell, Table, required
from experiments.study import Study
from models.recall.basis import ASSIGNMENT
from protocol.recall import STEPS, ReportLists, report_chances
from protocol.ring import SHAPES, WeightedSum, written

Floats = NDArray[np.float64]

VOTES_OF = 5
"""One click in this many is held out of gradients, as for the release gate."""


@dataclass(frozen=True)
class ClickSamples:
    """Clicks of readers, each with the clicks before it.

    reader [n]; unit vectors of the earlier clicks [n, D]; the click's vector [n, D]; held [n]: reserved for votes.
    """

    reader: Rows
    vectors: Vectors
    clicked: Vectors
    held: NDArray[np.bool_]

    @classmethod
    def of(cls, readers: Sequence[Rows], news: Vectors, seed: int) -> ClickSamples:
        """Return the last clicks of each reader, as the protocol holds them out, after the 50 before them."""
        places, histories, clicked = [], [], []
        for place, clicks in enumerate(readers):
            cut = len(clicks) - min(HELD_OUT_MOST, len(clicks) - KEPT_LEAST)
            for row in np.setdiff1d(clicks[cut:], clicks[:cut]):
                places.append(place)
                histories.append(clicks[:cut][-CLICKS_MOST:])
                clicked.append(row)
        held = np.random.default_rng(seed).random(len(places)) < 1 / VOTES_OF
        return cls(np.array(places), reader_vectors(news, histories), news[clicked], held)

    def of_readers(self, cohort: Rows, *, held: bool) -> ClickSamples:
        """Return these readers' clicks for gradients or for votes; readers are renumbered from 0."""
        number = np.full(int(max(self.reader.max(), cohort.max())) + 1, -1)
        number[cohort] = np.arange(len(cohort))
        mine = (number[self.reader] >= 0) & (self.held == held)
        return ClickSamples(number[self.reader[mine]], self.vectors[mine], self.clicked[mine], self.held[mine])


def gradients(lists: ReportLists, samples: ClickSamples, readers: int, epsilon: float) -> Floats:
    """Return gradients of each reader's mean loss along the axes of the basis: [readers, K, m], zeros without a
    sample.
    """
    basis, axes = lists.prototypes.astype(np.float64), lists.axes.astype(np.float64)
    users, clicked = samples.vectors.astype(np.float64), samples.clicked.astype(np.float64)
    near = ASSIGNMENT * users @ basis.T  # [n, K]
    soft = np.exp(near - np.logaddexp.reduce(near, axis=1, keepdims=True))
    chances = report_chances(lists.size, epsilon)
    scores = lists.sharpness * clicked @ basis.T - lists.log_normalisers
    terms = lists.log_posterior(epsilon)[None] + scores[:, None, :]  # [n, y, K]
    mixed = np.logaddexp.reduce(terms, axis=2)  # [n, y]
    by_list = -np.einsum("ny,nyk->nk", soft @ chances, np.exp(terms - mixed[:, :, None]))  # dL/d score
    slopes = -mixed @ chances.T  # dL/d soft, [n, K]
    by_report = ASSIGNMENT * soft * (slopes - (soft * slopes).sum(axis=1, keepdims=True))  # dL/d <u, v>
    by_click = lists.sharpness * by_list[:, :, None] * (clicked @ axes.T)[:, None, :]
    mine = (
        by_click
        - by_list[:, :, None] * (lists.slopes.astype(np.float64) @ axes.T)
        + by_report[:, :, None] * (users @ axes.T)[:, None, :]
    )
    along = by_list * (lists.sharpness * clicked @ basis.T - (lists.slopes * basis).sum(axis=1))
    along += by_report * (users @ basis.T)
    mine -= along[:, :, None] * (basis @ axes.T)  # prototypes keep length 1
    counts = np.maximum(np.bincount(samples.reader, minlength=readers), 1)[:, None, None]
    return np.asarray(_by_reader(samples.reader, readers, mine) / counts)


def clipped(updates: Floats, clip: float) -> Floats:
    """Scale each [K, m] into the ball of that radius."""
    lengths = np.sqrt(np.square(updates).sum(axis=(1, 2), keepdims=True))
    return np.asarray(updates * np.minimum(1.0, clip / np.maximum(lengths, 1e-12)))


def votes(drafted: ReportLists, before: ReportLists, samples: ClickSamples, readers: int, epsilon: float) -> Floats:
    """Return each reader's three numbers, in the order of SHAPES: [readers, 3], zeros without a held-out click."""
    counts = np.bincount(samples.reader, minlength=readers)
    standings = []
    for lists in (drafted, before):
        true = np.argmax(samples.vectors @ lists.prototypes.T, axis=1)
        lifts = (report_chances(lists.size, epsilon)[true] * lists.lifts(samples.clicked, epsilon)).sum(axis=1)
        totals = np.bincount(samples.reader, weights=1 / (1 + np.exp(-lifts)), minlength=readers)
        standings.append(totals / np.maximum(counts, 1))
    found = np.zeros((readers, len(SHAPES)))
    for reader in np.flatnonzero(counts):
        numbers = written(standings[0][reader], standings[1][reader])
        found[reader] = [numbers[name] for name in SHAPES]
    return found


def _by_reader(reader: Rows, readers: int, values: Floats) -> Floats:
    totals = np.zeros((readers, *values.shape[1:]))
    order = np.argsort(reader, kind="stable")
    present, starts = np.unique(reader[order], return_index=True)
    if len(present):
        totals[present] = np.add.reduceat(values[order], starts, axis=0)
    return totals


BASIS = COMPOSED["basis/secure/mean"]
BASIS_EXACT = COMPOSED["basis/exact/mean"]

found_by = partial(codebook_rounds.found_by, sharpness=SHARPNESS)


@dataclass(frozen=True)
class BasisPlan:
    """A system in rounds of one cohort size, for several possible releases.

    Drafts are voted on by this many devices; with 0, every draft is published.
    """

    spec: SystemSpec
    cohort: int
    voters: int
    releases: int


DRAFTED, REPLAYED = 3, 50
PLANS = (
    BasisPlan(BASIS_EXACT, 60, 0, DRAFTED),
    BasisPlan(BASIS_EXACT, 300, 0, DRAFTED),
    BasisPlan(BASIS_EXACT, 1_000, 0, DRAFTED),
    BasisPlan(BASIS, 60, 0, DRAFTED),
    BasisPlan(BASIS, 1_000, 0, DRAFTED),
    BasisPlan(BASIS, 2_800, 0, DRAFTED),
    BasisPlan(BASIS_EXACT, 60, 60, REPLAYED),
    BasisPlan(BASIS_EXACT, 300, 2_800, REPLAYED),
    BasisPlan(BASIS_EXACT, 300, 0, REPLAYED),
    BasisPlan(BASIS, 60, 60, REPLAYED),
)


@dataclass(frozen=True)
class Releases:
    """The basis of each possible release, [r + 1, K, D] with the start first, and how many were published.

    noise: the share of noise in the difference between the start and the last draft.
    """

    served: NDArray[np.float32]
    published: int
    noise: float


@dataclass(frozen=True)
class TrainedReaders:
    """The readers who train: their samples, and the pool of articles."""

    study: EmbeddedSplit
    samples: ClickSamples
    finest: NDArray[np.float32]

    @property
    def count(self) -> int:
        return len(self.study.split.train)

    def lists(self, prototypes: NDArray[np.floating], axes: NDArray[np.float32]) -> ReportLists:
        """Return the lists that the server gives for reports of these prototypes."""
        return report_lists(
            np.asarray(prototypes, dtype=np.float32), (), self.study.news, self.study.log_popularity, axes=axes
        )

    def train(self, plan: BasisPlan, start: NDArray[np.float32], seed: int) -> Releases:
        """Run all rounds of a plan, each with a new cohort."""
        strategy, rng = plan.spec.strategy, np.random.default_rng(seed)
        assert isinstance(strategy, BasisRounds)
        axes = principal_axes(self.finest, strategy.axes)
        draft, served, published, noise = BasisDraft.begin(start), [start], 0, 0.0
        for _ in range(plan.releases):
            for _ in range(strategy.vote_every):
                draft = self._stepped(plan, strategy, draft, axes, rng)
            whole = replace(draft, begun=start.astype(np.float64), noise=noise + draft.noise)
            candidate = draft if plan.voters else replace(draft, noise=0.0)  # without a vote, noise does not matter
            if strategy.worth(candidate, served[-1]) and self._voted(plan, draft, served[-1], rng):
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
        contributions = clipped(
            gradients(self.lists(draft.prototypes, axes), mine, plan.cohort, EPSILON), mechanism.clip
        )
        noise = noise_deviation(mechanism, plan.cohort)
        opened = contributions.sum(axis=0) + noise * rng.normal(size=contributions.shape[1:])
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
        ballots = votes(self.lists(draft.prototypes, none), self.lists(served, none), mine, plan.voters, EPSILON)
        opened = ballots.sum(axis=0) + noise_deviation(mechanism, plan.voters) * rng.normal(size=len(SHAPES))
        sums = {name: opened[place : place + 1] for place, name in enumerate(SHAPES)}
        verdict, least = vote.judge(Aggregate.of_opened(WeightedSum(sums, plan.voters), mechanism.clip), mechanism)
        return verdict.gain > least


BasisJob = tuple[int, int]
"""Index in PLANS, and seed."""


@dataclass(frozen=True)
class BasisRun:
    """The result of one plan.

    R@K of each reader [u, depths] by the last basis served; by_release [r + 1]: mean R@400 of each release; published:
    how many of the possible releases; noise: share of the last draft.
    """

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
        return tuple(range(self.starts))

    @property
    def jobs(self) -> Sequence[BasisJob]:
        return [(plan, seed) for plan in range(len(self.plans)) for seed in self.seeds]

    def prepare(self) -> None:
        required(self.data / FOLDER)

    @cached_property
    def readers(self) -> EmbeddedSplit:
        return warm_readers(self.data)

    @property
    def _size(self) -> int:
        strategy = self.plans[0].spec.strategy
        assert isinstance(strategy, BasisRounds)
        return strategy.size

    @cached_property
    def topics(self) -> list[NDArray[np.float32]]:
        """Return the initial basis of each seed."""
        return [topics_of(self.readers, self._size, seed) for seed in self.seeds]

    @cached_property
    def finest(self) -> NDArray[np.float32]:
        """Return the finest codebook, from its own seed."""
        return topics_of(self.readers, FINEST, self.starts)

    def run(self, job: BasisJob) -> BasisRun:
        """Train in rounds, vote, and measure recall by the draft and by the published basis."""
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
        plan = self.plans[job[0]]
        found = 100 * run.last.mean(axis=0)[AT_400]
        return (
            f"{plan.spec.name} of {plan.cohort}, {plan.voters} voters, seed {job[1]}: R@400 {found:.1f} %, "
            f"{run.published} of {plan.releases} published"
        )

    def tables(self, runs: Mapping[BasisJob, BasisRun]) -> list[Table]:
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
                figures = (*_points(last), _gain(last, topics), _gain(last, means))
                rows.append((plan.spec.name, plan.cohort, _epsilon(plan.spec, plan.cohort), noise, *figures))
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
                f"{len(split.train):,} readers train, {len(split.measured)} others are tested; reports of one of "
                f"{self._size} at epsilon {EPSILON:g}; drafts after 30 rounds, means of {self.starts} starts and "
                "draws. Differences in points, paired by reader, with 95 % intervals.",
            ),
        )

    def _replay(self, rows: list[tuple[Cell, ...]]) -> Table:
        columns = ("system", "cohort", "voters", "published", "R@100 % at the end", "R@400 % at the end")
        return Table(
            "Releases of a trained basis, MIND subset",
            (*columns, "against topics @400", "lowest of any release"),
            rows,
            (
                "A draft is voted on every 10 rounds and published if its gain exceeds 3.09 standard errors of the "
                "votes, noise included; without voters every draft is published. Lowest: the worst R@400 of any "
                "release against the start, in points.",
            ),
        )


def _points(found: NDArray[np.float64]) -> tuple[str, str]:
    means = 100 * found.mean(axis=0)
    return f"{means[AT_100]:.1f}", f"{means[AT_400]:.1f}"


def _epsilon(spec: SystemSpec, cohort: int) -> str | None:
    """Return the epsilon of a round with this many survivors; None for an exact sum."""
    mechanism, strategy = secure_sum_of(spec.protection), spec.strategy
    assert isinstance(strategy, BasisRounds)
    return f"{mechanism.epsilon(cohort, coordinates=strategy.size * strategy.axes):.2f}" if mechanism.sigma else None


def _gain(found: NDArray[np.float64], reference: NDArray[np.float64]) -> str:
    gain = paired(found, reference)[AT_400]
    return f"{gain.mean:+.1f} ({gain.low:+.1f} .. {gain.high:+.1f})"
