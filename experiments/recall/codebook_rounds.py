"""`ownfeed evaluate codebook`: recall on MIND with prototypes learned in rounds, against topics of the pool.

Rounds run without devices: readers' unit vectors, the sum's noise from a seeded generator, and the live strategy's
filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping import Drift
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.strategies.learned_codebook import NOISE_MOST, LearnedCodebook
from backend.federation.systems import COMPOSED
from backend.federation.systems.composition import SystemSpec
from backend.releases.codebooks import topic_centroids
from experiments.datasets.mind import FOLDER, load_mind
from experiments.datasets.titles import product_vectors, title_vectors, unit_rows
from experiments.recall.measure import DEPTHS, paired, recall, splits
from experiments.recall.modes import EmbeddedSplit, Mixtures, ReportCodebook
from experiments.records import Cell, Table, required
from experiments.study import Study
from models.shapes import NEWS_DIM
from protocol.ring import VECTOR_SHARE, member_share

CODEBOOK = COMPOSED["codebook/secure/mean"]
CODEBOOK_EXACT = COMPOSED["codebook/exact/mean"]

EPSILON, CODEBOOK_SIZE, FINEST, SHARPNESS = 4.0, 16, 64, 2.0
"""Epsilon of reports; K of the learned codebook and of the finest; s chosen by validation for a first release."""
AT_100, AT_400 = DEPTHS.index(100), DEPTHS.index(400)
PLANS = (
    (CODEBOOK_EXACT, 60),
    (CODEBOOK_EXACT, 300),
    (CODEBOOK_EXACT, 1_000),
    (CODEBOOK, 60),
    (CODEBOOK, 300),
    (CODEBOOK, 1_000),
    (CODEBOOK, 2_800),
)
"""Systems and cohorts."""
COLUMNS = (
    "system",
    "cohort",
    "epsilon of a round",
    "rounds",
    "noise in the draft",
    "published",
    "R@100 %",
    "R@400 %",
    "published against topics @100",
    "@400",
    "draft against topics @100",
    "draft @400",
)


@dataclass(frozen=True)
class Learned:
    """A draft after several rounds, and the last published prototypes, which are the topics if none were published."""

    rounds: int
    draft: NDArray[np.float32]
    shares: NDArray[np.float64]
    noise: float
    published: NDArray[np.float32]
    published_shares: NDArray[np.float64]


def learn(
    spec: SystemSpec,
    topics: NDArray[np.float32],
    finest: NDArray[np.float32],
    readers: NDArray[np.float32],
    *,
    cohort: int,
    rounds: int,
    seed: int,
) -> Learned:
    """Run the system's rounds from topics [K, D]; readers [u, D] are unit vectors; each round draws a cohort."""
    strategy, mechanism = spec.strategy, secure_sum_of(spec.protection)
    assert isinstance(strategy, LearnedCodebook)
    rng = np.random.default_rng(seed)
    step = mechanism.sigma / 2.0**mechanism.fraction_bits * np.sqrt(cohort)
    spread, miscount = step / (VECTOR_SHARE * mechanism.clip), step / (member_share() * mechanism.clip)
    belief: Drift = strategy.begin(topics)
    published, shares = topics, np.full(len(topics), 1 / len(topics))
    for number in range(1, rounds + 1):
        mine = readers[rng.choice(len(readers), size=cohort, replace=False)]
        near = np.argmax(mine @ belief.prototypes.T, axis=1)
        sums = np.zeros(topics.shape)
        np.add.at(sums, near, mine)
        sums += spread * rng.normal(size=sums.shape)
        members = np.bincount(near, minlength=len(topics)) + miscount * rng.normal(size=len(topics))
        belief = belief.seen(
            strategy.within(sums, finest), members, cohort, sums_variance=spread**2, members_variance=miscount**2
        )
        if number % strategy.adopt_every == 0 and strategy.worth(belief, published):
            published, shares = belief.apart(strategy.apart), belief.shares()
    noise = belief.noise_share()
    return Learned(rounds, belief.apart(strategy.apart), belief.shares(), noise, published, shares)


CodebookJob = tuple[int, int]
"""Index in PLANS, and seed."""


@dataclass(frozen=True)
class CodebookRun:
    """R@K of each reader [u, depths] by the last published prototypes and by the draft.

    adopted: whether any were published.
    """

    noise: float
    adopted: bool
    published: NDArray[np.float64]
    drafts: NDArray[np.float64]


@dataclass(frozen=True)
class CodebookStudy(Study[CodebookJob, CodebookRun]):
    """Every plan from several starts, paired by reader with the topics that it starts from."""

    data: Path
    starts: int = 3
    rounds: int = 30

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.starts))

    @property
    def jobs(self) -> Sequence[CodebookJob]:
        return [(plan, seed) for plan in range(len(PLANS)) for seed in self.seeds]

    def prepare(self) -> None:
        required(self.data / FOLDER)

    @cached_property
    def readers(self) -> EmbeddedSplit:
        return warm_readers(self.data)

    @cached_property
    def topics(self) -> list[NDArray[np.float32]]:
        """Return the initial prototypes of each seed."""
        return [topics_of(self.readers, CODEBOOK_SIZE, seed) for seed in self.seeds]

    @cached_property
    def finest(self) -> NDArray[np.float32]:
        """Return the finest codebook, from its own seed."""
        return topics_of(self.readers, FINEST, self.starts)

    def run(self, job: CodebookJob) -> CodebookRun:
        """Learn in rounds, and measure recall by the result."""
        (spec, cohort), seed = PLANS[job[0]], job[1]
        start, readers = self.topics[seed], self.readers
        end = learn(spec, start, self.finest, readers.trained, cohort=cohort, rounds=self.rounds, seed=seed)
        published = found_by(readers, end.published, end.published_shares)
        return CodebookRun(end.noise, end.published is not start, published, found_by(readers, end.draft, end.shares))

    def line(self, job: CodebookJob, run: CodebookRun) -> str:
        (spec, cohort), seed = PLANS[job[0]], job[1]
        found = 100 * run.drafts.mean(axis=0)[AT_400]
        return f"{spec.name} of {cohort}, seed {seed}: R@400 of the draft {found:.1f} %, noise {run.noise:.2f}"

    def tables(self, runs: Mapping[CodebookJob, CodebookRun]) -> list[Table]:
        study = self.readers
        topics = np.mean([found_by(study, start) for start in self.topics], axis=0)
        common = recall(study.popular(), study.split.measured.targets, study.split.news)
        rows: list[tuple[Cell, ...]] = [
            _row("popularity", None, None, None, None, None, common, None, None),
            _row("topics", None, None, None, None, None, topics, None, None),
        ]
        for place, (spec, cohort) in enumerate(PLANS):
            mine = [runs[place, seed] for seed in self.seeds]
            rows.append(
                _row(
                    spec.name,
                    cohort,
                    _epsilon(spec, cohort),
                    self.rounds,
                    float(np.mean([run.noise for run in mine])),
                    f"{sum(run.adopted for run in mine)} of {len(mine)}",
                    np.mean([run.published for run in mine], axis=0),
                    topics,
                    np.mean([run.drafts for run in mine], axis=0),
                )
            )
        notes = (
            f"{len(study.trained):,} readers train, {len(study.readers)} others are tested; codes of {CODEBOOK_SIZE} "
            f"at epsilon {EPSILON:g}; means of {self.starts} starts and draws. Differences in points, paired by "
            f"reader, with 95 % intervals. A draft is published if at most {NOISE_MOST:g} of the differences between "
            "its groups is noise; otherwise readers keep the topics.",
        )
        return [Table("Learned codebooks, MIND subset", COLUMNS, rows, notes)]


def topics_of(study: EmbeddedSplit, size: int, seed: int) -> NDArray[np.float32]:
    """Return topic centroids of the pool, unit vectors [size, D]."""
    return unit_rows(topic_centroids(study.news, basis_size=size, seed=seed)[0])


def warm_readers(data: Path) -> EmbeddedSplit:
    """Return the test readers of the warm protocol, and the articles. Raises DataMissing and MalformedRow."""
    mind = load_mind(data / FOLDER)
    news = product_vectors(title_vectors(mind.news.titles), NEWS_DIM)
    histories = mind.train.longest_histories()
    _, test = splits([histories[user] for user in sorted(histories)], len(mind.news))
    return EmbeddedSplit(test, news, test.recent_clicks())


def found_by(
    study: EmbeddedSplit,
    prototypes: NDArray[np.float32],
    shares: NDArray[np.float64] | None = None,
    sharpness: float = SHARPNESS,
) -> NDArray[np.float64]:
    """Return R@K of each reader [u, depths] by reports of one of these prototypes [K, D]; equal shares by default."""
    size = len(prototypes)
    book = ReportCodebook(prototypes, np.full(size, 1 / size) if shares is None else shares, np.eye(size))
    lists = Mixtures(study, book, sharpness).code(EPSILON)
    return recall(lists, study.split.measured.targets, study.split.news)


def _epsilon(spec: SystemSpec, cohort: int) -> float | None:
    """Return the epsilon of a round with this many survivors; None for an exact sum."""
    mechanism = secure_sum_of(spec.protection)
    return mechanism.epsilon(cohort, coordinates=CODEBOOK_SIZE * (NEWS_DIM + 1)) if mechanism.sigma else None


def _row(
    name: str,
    cohort: int | None,
    epsilon: float | None,
    rounds: int | None,
    noise: float | None,
    published: str | None,
    found: NDArray[np.float64],
    topics: NDArray[np.float64] | None,
    drafts: NDArray[np.float64] | None,
) -> tuple[Cell, ...]:
    means = 100 * found.mean(axis=0)
    gains: list[Cell] = [None] * 4
    if topics is not None and drafts is not None:
        both = [paired(each, topics) for each in (found, drafts)]
        gains = [
            f"{each[at].mean:+.1f} ({each[at].low:+.1f} .. {each[at].high:+.1f})"
            for each in both
            for at in (AT_100, AT_400)
        ]
    shown = None if epsilon is None else round(epsilon, 2)
    return (
        name,
        cohort,
        shown,
        rounds,
        None if noise is None else f"{noise:.2f}",
        published,
        f"{means[AT_100]:.1f}",
        f"{means[AT_400]:.1f}",
        *gains,
    )
