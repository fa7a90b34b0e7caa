"""`ownfeed evaluate codebook`: what prototypes learned in rounds find on MIND, against topics of the pool.

Rounds without devices: readers' unit vectors, the sum's noise from a seeded generator, the live strategy's filter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from backend.federation.grouping.drift import Drift
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.strategies.learned_codebook import NOISE_MOST, LearnedCodebook
from backend.federation.systems.codebook import CODEBOOK, CODEBOOK_EXACT
from backend.federation.systems.system import SystemSpec
from backend.releases.basis import topic_centroids
from device_app.wire.contributions import VECTOR_SHARE, member_share
from experiments.bench.table import Cell, Table
from experiments.datasets.mind import FOLDER, load_mind
from experiments.datasets.titles import product_vectors, title_vectors, unit_rows
from experiments.recall.measure import DEPTHS, paired, recall
from experiments.recall.modes import Book, EmbeddedSplit, Mixtures
from experiments.recall.warm import splits
from models.shapes import NEWS_DIM

EPSILON, CODEBOOK_SIZE, FINEST, SHARPNESS = 4.0, 16, 64, 2.0
"""Of the reports; K of the codebook that learns and of the finest; s as validation chose it for a first release."""
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
    """A draft after so many rounds, and the prototypes that were published last, which are the topics if none were."""

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
    """Rounds of the system from topics [K, D]; readers [u, D] are unit vectors, a cohort is drawn anew a round."""
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


def run_codebook(*, data: Path, seeds: int, rounds: int, console: Console) -> list[Table]:
    """The table. Raises DataMissing, MalformedRow and ValueError."""
    torch.set_num_threads(1)
    mind = load_mind(data / FOLDER)
    news = product_vectors(title_vectors(mind.news.titles), NEWS_DIM)
    histories = mind.train.longest_histories()
    _, test = splits([histories[user] for user in sorted(histories)], len(mind.news))
    study = EmbeddedSplit(test, news, test.recent_clicks())
    return [compare(study, PLANS, seeds, rounds, lambda line: console.print(f"  {line}"))]


def compare(
    study: EmbeddedSplit, plans: Sequence[tuple[SystemSpec, int]], seeds: int, rounds: int, tell: Callable[[str], None]
) -> Table:
    """Every plan over several starts, paired by reader with the topics that it starts from."""
    starts = [unit_rows(topic_centroids(study.news, basis_size=CODEBOOK_SIZE, seed=seed)[0]) for seed in range(seeds)]
    finest = unit_rows(topic_centroids(study.news, basis_size=FINEST, seed=seeds)[0])
    even = np.full(CODEBOOK_SIZE, 1 / CODEBOOK_SIZE)
    topics = np.mean([_found(study, start, even) for start in starts], axis=0)
    common = recall(study.popular(), study.split.measured.targets, study.split.news)
    rows: list[tuple[Cell, ...]] = [
        _row("popularity", None, None, None, None, None, common, None, None),
        _row("topics", None, None, None, None, None, topics, None, None),
    ]
    for spec, cohort in plans:
        runs = [
            learn(spec, start, finest, study.trained, cohort=cohort, rounds=rounds, seed=seed)
            for seed, start in enumerate(starts)
        ]
        published = np.mean([_found(study, each.published, each.published_shares) for each in runs], axis=0)
        drafts = np.mean([_found(study, each.draft, each.shares) for each in runs], axis=0)
        adopted = sum(each.published is not start for each, start in zip(runs, starts, strict=True))
        rows.append(
            _row(
                spec.name,
                cohort,
                _epsilon(spec, cohort),
                rounds,
                float(np.mean([each.noise for each in runs])),
                f"{adopted} of {seeds}",
                published,
                topics,
                drafts,
            )
        )
        tell(" | ".join(map(str, rows[-1])))
    notes = (
        f"{len(study.trained):,} readers teach, {len(study.readers)} others are recalled for; codes of "
        f"{CODEBOOK_SIZE} at epsilon {EPSILON:g}, popularity of the training readers' last clicks, {seeds} starts and "
        "draws each, topics of the pool as starts. Differences in points, paired by reader, 95 % intervals of a "
        "bootstrap over readers.",
        f"A draft is published where no more than {NOISE_MOST:g} of what sets its groups apart is noise; until then "
        "readers keep the topics. Readers are drawn again round for round: epsilons add up for who is drawn often.",
    )
    return Table("Learned codebooks, MIND subset", COLUMNS, rows, notes)


def _found(study: EmbeddedSplit, prototypes: NDArray[np.float32], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    book = Book(prototypes, shares, np.eye(len(prototypes)))
    answers = Mixtures(study, book, SHARPNESS).code(EPSILON)
    return recall(answers, study.split.measured.targets, study.split.news)


def _epsilon(spec: SystemSpec, cohort: int) -> float | None:
    """Of a round for each of so many survivors; None where the exact sum is opened."""
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
        told = [paired(each, topics) for each in (found, drafts)]
        gains = [
            f"{each[at].mean:+.1f} ({each[at].low:+.1f} .. {each[at].high:+.1f})"
            for each in told
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
