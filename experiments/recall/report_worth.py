"""`ownfeed evaluate reports`: what a report is worth in pools of 12,312 and 51,282 real articles.

Each mechanism reports one of K = 16 basic interests or a set of them; the server aggregates the prototypes by the
posterior weights and answers with the articles near that vector (`backend/recall/code_lists.py`). Beside them stand
lists that need no report. Sharpness is chosen for each on the validation readers; books of two seeds are averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.recall.posterior import code_weights
from experiments.datasets.mind import FOLDER, Impressions, NewsTable, load_behaviors, load_mind, load_news
from experiments.datasets.titles import unit_rows
from experiments.recall.interests import channels
from experiments.recall.measure import PossibleLists, WarmSplit, paired, recall, splits
from experiments.recall.modes import EmbeddedSplit, Mixtures, ReportCodebook, learned_book, nearest
from experiments.recall.pools import vectors_of
from experiments.recall.tower import Vectors, train_tower
from experiments.records import Cell, Table
from experiments.study import Study

K = 16
EPSILONS = (1.0, 2.0, 4.0, 8.0)
SMOKE_EPSILONS = (4.0,)
BOOK_SEEDS = (7, 8)
EPOCH = 2
"""The tower's epoch, as `ownfeed bench recall` chooses it."""
SHARPNESSES = (0.35, 0.5, 0.65, 0.8, 1.0, 1.25, 1.6, 2.0)
DRAW_SHARPNESS = 8.0
"""Sharpness of the softmax by which one basic interest is drawn from a reader's weights."""
DEPTH = 400
SEVERAL = 3
"""Number of lists in an answer with several."""
LONGER = (600, 1_000)
SUBSPACES = 16
POOLS = {"12,312": "mind-subset", "51,282": "mind-train"}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Readers:
    """One split's readers, and what each would report; titles [n, 384] are clustered, as on a device."""

    study: EmbeddedSplit
    titles: Vectors

    @cached_property
    def books(self) -> list[ReportCodebook]:
        """Return codebooks of two seeds."""
        return [learned_book(self.study, K, seed) for seed in BOOK_SEEDS]

    def clusters(self, book: ReportCodebook) -> Floats:
        """Return the shares [u, K] of the clusters whose largest weight is at each basic interest, by their clicks."""
        histories = self.study.split.measured.histories
        found = channels(self.titles, self.study.news, histories)
        owners = np.repeat(np.arange(len(histories)), [len(counts) for counts in found.counts])
        shares = np.zeros((len(histories), K))
        clicks = np.concatenate([np.asarray(counts, dtype=float) for counts in found.counts])
        np.add.at(shares, (owners, nearest(found.vectors, book.prototypes)), clicks)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def drawn(self, book: ReportCodebook) -> Floats:
        """Return the softmax [u, K] of the reader's weights."""
        scores = DRAW_SHARPNESS * (self.study.readers @ book.prototypes.T).astype(np.float64)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def largest(self, book: ReportCodebook) -> Floats:
        """Return 1 at the largest weight over all clusters, [u, K]."""
        return np.asarray(np.eye(K)[nearest(self.study.readers, book.prototypes)])


def randomised(true: Floats, epsilon: float) -> Floats:
    """Return the distribution [u, K] of the number sent, by randomised response on a number drawn from `true`
    [u, K].
    """
    kept = 1 / (1 + (K - 1) * np.exp(-epsilon))
    return np.asarray(true * (kept - (1 - kept) / (K - 1)) + (1 - kept) / (K - 1))


def one_number(values: Callable[[Readers, ReportCodebook], Floats]) -> Mechanism:
    """Return a mechanism that draws a basic interest by these shares and sends it by randomised response."""

    def lists(readers: Readers, sharpness: float, epsilon: float) -> PossibleLists:
        parts = []
        for book in readers.books:
            weights = np.stack([code_weights(book.shares, epsilon, code) for code in range(K)])
            found = Mixtures(readers.study, book, sharpness).lists(weights, DEPTH)
            chance = randomised(values(readers, book), epsilon)
            parts.append(PossibleLists(found, np.tile(np.arange(K), (len(chance), 1)), chance))
        return PossibleLists.either(parts)

    return lists


def several_lists(readers: Readers, sharpness: float, epsilon: float) -> PossibleLists:
    """Return lists for answers with several lists: those of the SEVERAL likeliest numbers, given the one that was sent.

    The lists are those of exact numbers. The device keeps the list of its own number if it is among them, else that of
    the nearest. Each answer has the size of SEVERAL lists of 400.
    """
    parts = []
    for book in readers.books:
        found = Mixtures(readers.study, book, sharpness).lists(np.eye(K), DEPTH)
        likeness = readers.study.readers @ book.prototypes.T  # [u, K]
        order = np.argsort(-(book.prototypes @ book.prototypes.T), axis=1)[:, :SEVERAL]  # a number and its nearest
        kept = order[np.arange(K)[None], np.argmax(likeness[:, order], axis=2)]  # [u, K]: the list kept of each answer
        chance = randomised(readers.largest(book), epsilon)
        parts.append(PossibleLists(found, kept, chance))
    return PossibleLists.either(parts)


def by_mode(mode: Callable[[Mixtures, float], PossibleLists]) -> Mechanism:
    """Return a mechanism measured by the frontier."""
    return lambda readers, sharpness, epsilon: PossibleLists.either(
        [mode(Mixtures(readers.study, book, sharpness), epsilon) for book in readers.books]
    )


Mechanism = Callable[[Readers, float, float], PossibleLists]
MECHANISMS: Mapping[str, Mechanism] = {
    "largest weight (`interest`)": one_number(Readers.largest),
    "one interest drawn by weight": one_number(Readers.drawn),
    "one cluster in turn": one_number(Readers.clusters),
    "subset (`subset`)": by_mode(Mixtures.subset),
    "blurred shares (`topics`)": by_mode(Mixtures.topics),
    f"{SEVERAL} lists an answer": several_lists,
}


@dataclass(frozen=True)
class ReportStudy(Study[str, Table]):
    """Both pools; each run returns the table of one."""

    data: Path
    smoke: bool = False

    @property
    def jobs(self) -> Sequence[str]:
        return tuple(POOLS)[:1] if self.smoke else tuple(POOLS)

    @property
    def seeds(self) -> tuple[int, ...]:
        return BOOK_SEEDS

    def run(self, job: str) -> Table:
        """Measure every mechanism in one pool. Raises DataMissing, MalformedRow."""
        news, impressions = pool_of(self.data, POOLS[job])
        histories = impressions.longest_histories()
        validation, test = splits([histories[user] for user in sorted(histories)], len(news))
        titles = unit_rows(vectors_of(news.titles))
        tuned, tested = (_readers(titles, split) for split in (validation, test))
        return compared(job, tuned, tested, SMOKE_EPSILONS if self.smoke else EPSILONS)

    def line(self, job: str, run: Table) -> str:
        return f"{job} articles: {len(run.rows)} rows"

    def tables(self, runs: Mapping[str, Table]) -> list[Table]:
        return list(runs.values())


def pool_of(data: Path, folder: str) -> tuple[NewsTable, Impressions]:
    """Return the catalogue and the training impressions of a folder. Raises DataMissing, MalformedRow."""
    if folder == FOLDER:
        mind = load_mind(data / folder)
        return mind.news, mind.train
    news = load_news(data / folder / "news.tsv")
    return news, load_behaviors(data / folder / "behaviors.tsv", news)


def compared(pool: str, tuned: Readers, tested: Readers, epsilons: Sequence[float]) -> Table:
    """Return R@400 of every mechanism at every epsilon, and of lists without a report."""
    baseline = _found(tested, tested.study.popular(DEPTH))
    rows: list[tuple[Cell, ...]] = []

    def add(name: str, epsilon: str, lists: PossibleLists) -> None:
        found = _found(tested, lists)
        (gain,) = paired(found, baseline)
        interval = f"{gain.mean:+.1f} ({gain.low:+.1f} .. {gain.high:+.1f})"
        rows.append((name, epsilon, f"{100 * found.mean():.2f}", interval))

    add("popular, no report", "0", tested.study.popular(DEPTH))
    for name, mechanism in MECHANISMS.items():
        for epsilon in epsilons:
            s = _sharpest(tuned, lambda s: mechanism(tuned, s, epsilon))  # noqa: B023
            add(name, f"{epsilon:g}", mechanism(tested, s, epsilon))
    everybody = MECHANISMS["largest weight (`interest`)"]
    add("mixture of all, no report", "0", everybody(tested, _sharpest(tuned, lambda s: everybody(tuned, s, 0.0)), 0.0))
    s = _sharpest(tuned, lambda s: tuned.study.exact(s, DEPTH))
    add("search on the device, no report", "0", tested.study.broadcast(s, SUBSPACES, DEPTH))
    add("exact vector", "none", tested.study.exact(s, DEPTH))
    longer = [
        f"{places} popular articles find {100 * _found(tested, tested.study.popular(places), places).mean():.1f} %"
        for places in LONGER
    ]
    notes = (
        f"{len(tested.study.split.measured)} test readers; differences from the popular list are paired by reader, in "
        f"points, 95 %. {'; '.join(longer)}. {SEVERAL} lists: three times the bytes for the same epsilon.",
    )
    return Table(f"What a report is worth, {pool} articles", ("report", "epsilon", "R@400 %", "gain"), rows, notes)


def _readers(titles: Vectors, split: WarmSplit) -> Readers:
    tower = train_tower(titles, split.train, kept=(EPOCH,))[EPOCH]
    return Readers(EmbeddedSplit(split, titles @ tower.T, split.recent_clicks()), titles)


def _found(readers: Readers, lists: PossibleLists, places: int = DEPTH) -> Floats:
    """Return R@places of each reader, [u, 1]."""
    split = readers.study.split
    return recall(lists, split.measured.targets, split.news, (places,))


def _sharpest(readers: Readers, lists: Callable[[float], PossibleLists]) -> float:
    return max(SHARPNESSES, key=lambda s: float(_found(readers, lists(s)).mean()))
