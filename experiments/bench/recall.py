"""R@K on MIND: what recall finds of the next click of real readers, by the very code that serves.

Leave-last-out: a reader's last click is the target, the up to 50 before it are the history. A fifth of the readers is
tested (seed 7); popularity is counted on the others' last three clicks, so it never sees a tested reader.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.recall.compose import compose
from backend.recall.exact_index import ExactIndex
from backend.recall.merge import merge
from backend.recall.served import ServedRelease, ServedReleases
from device_app.interests.decomposition import RecallModel
from device_app.privacy.mechanisms.basis_laplace import BasisLaplace
from device_app.privacy.noise import SeededNoise
from device_app.ranking.session import GraphSession
from device_app.wire.recall import CLICKS_LIMIT, BasisLaplaceReport
from experiments.bench.mind import Reader, readers, titles
from experiments.bench.table import Table
from experiments.bench.workshop import Workshop, open_workshop

LEAST_CLICKS = 6
RECENT_CLICKS = 3
TEST_SHARE = 0.2
SEED = 7
DEPTHS = (100, 200, 400)
NOISE_DRAWS = 5

Ranking = Callable[[NDArray[np.int64]], NDArray[np.int64]]
"""History rows, oldest first -> recalled rows, best first."""


def run(data: Path) -> list[Table]:
    """The table. Raises DataMissing."""
    folder = data / "mind-subset" / "train"
    news = titles(folder)
    row_of = {news_id: row for row, news_id in enumerate(news)}
    train, test = _split([_known(reader, row_of) for reader in readers(folder, least_clicks=LEAST_CLICKS)])
    shop = open_workshop("mind", list(news.values()))

    popular = _popularity(train, len(news))
    interests = InterestRecall(shop)
    dice = np.random.default_rng(SEED)
    mean_vector = ExactIndex.over(np.arange(len(news)), shop.vectors)
    scorers: dict[str, list[Ranking]] = {
        "random": [lambda history: dice.permutation(len(news))[: max(DEPTHS)]],
        "popularity (others' last 3 clicks)": [lambda history: popular[: max(DEPTHS)]],
        "mean vector, not private": [
            lambda history: mean_vector.search(shop.vectors[history].mean(0, keepdims=True), max(DEPTHS))[1][0]
        ],
        "Uni-FedRec without noise": [partial(interests.recall, noise=None)],
        "Uni-FedRec, paper's noise (epsilon 50)": [
            partial(interests.recall, noise=SeededNoise(seed)) for seed in range(NOISE_DRAWS)
        ],
    }
    hits = {name: np.mean([_hits(one, test) for one in rankings], axis=0) for name, rankings in scorers.items()}
    baseline = hits["popularity (others' last 3 clicks)"]
    rows = [_row(name, found, found - baseline) for name, found in hits.items()]
    columns = ("recall", *(f"R@{depth} %" for depth in DEPTHS), "R@400 against popularity, points")
    notes = (
        f"{len(test)} tested readers with {LEAST_CLICKS} clicks or more, {len(news):,} news, one target each; "
        f"+- is one standard error, paired for the difference.",
        f"Uni-FedRec: cosine start, B = {interests.protocol.basis_size}, clip {interests.protocol.score_clip:g}, "
        f"Laplace {interests.protocol.score_noise:g}, mean {interests.mean_channels:.1f} channels; "
        f"noise: mean of {NOISE_DRAWS} draws.",
    )
    return [Table("Recall of the next click, MIND subset", columns, rows, notes)]


class InterestRecall:
    """Uni-FedRec end to end in one process: the device's interests and mechanism, the server's decoder and merge."""

    def __init__(self, shop: Workshop) -> None:
        manifest = shop.releases.current_manifest()
        if manifest is None:
            raise RuntimeError("the workshop has no release")
        weights = shop.releases.weights(manifest, "recall")
        graphs = {
            purpose: GraphSession(shop.releases.read_blob(ref.sha256), weights)
            for purpose, ref in manifest.models["recall"].graphs.items()
        }
        self.protocol = manifest.recall
        self._model = RecallModel(graphs["context"], graphs["decompose"], manifest.recall)
        self._mechanism = BasisLaplace.under(manifest.recall)
        served = ServedReleases(shop.releases, answered=1)
        served.refresh()
        self._release: ServedRelease = served.current
        self._vectors = shop.vectors
        self._index = ExactIndex.over(np.arange(len(shop.vectors)), shop.vectors)
        self._channels: list[int] = []

    @property
    def mean_channels(self) -> float:
        """Channels a report had on the average so far."""
        return float(np.mean(self._channels))

    def recall(self, history: NDArray[np.int64], noise: SeededNoise | None) -> NDArray[np.int64]:
        """The recalled rows for these clicks; without noise the scores are clipped only."""
        contexts = self._model.contexts(self._vectors[history])
        found = self._model.decompose(contexts, self._model.clusters(contexts))
        self._channels.append(len(found.counts))
        scores = (
            self._mechanism.clipped(found.scores) if noise is None else self._mechanism.release(found.scores, noise)
        )
        report = BasisLaplaceReport(scores=tuple(map(tuple, scores.tolist())), counts=found.counts)
        wanted = compose(report, self._release)
        _, lists = self._index.search(wanted.vectors, max(DEPTHS))
        return np.array(merge(lists.tolist(), wanted.counts, max(DEPTHS)), dtype=np.int64)


@dataclass(frozen=True)
class _Rows:
    """A reader's clicks as rows of the news."""

    clicks: NDArray[np.int64]


def _known(reader: Reader, row_of: dict[str, int]) -> _Rows:
    return _Rows(np.array([row_of[news] for news in reader.clicks if news in row_of], dtype=np.int64))


def _split(people: list[_Rows]) -> tuple[list[_Rows], list[_Rows]]:
    order = np.random.default_rng(SEED).permutation(len(people))
    cut = int(len(people) * TEST_SHARE)
    return [people[at] for at in order[cut:]], [people[at] for at in order[:cut]]


def _popularity(train: list[_Rows], count: int) -> NDArray[np.int64]:
    clicks = np.bincount(np.concatenate([one.clicks[-RECENT_CLICKS:] for one in train]), minlength=count)
    return np.argsort(-clicks, kind="stable")


def _hits(ranking: Ranking, test: list[_Rows]) -> NDArray[np.float64]:
    """[readers, depths]: 1 where the target is among the first K."""
    found = np.zeros((len(test), len(DEPTHS)))
    for line, reader in enumerate(test):
        place = np.flatnonzero(ranking(reader.clicks[:-1][-CLICKS_LIMIT:]) == reader.clicks[-1])
        if len(place):
            found[line] = [place[0] < depth for depth in DEPTHS]
    return found


def _row(name: str, found: NDArray[np.float64], gain: NDArray[np.float64]) -> tuple[str, ...]:
    shares = (f"{_mean(column)}" for column in found.T)
    return (name, *shares, _mean(gain[:, -1], sign="+") if gain.any() else "0")


def _mean(values: NDArray[np.float64], sign: str = "") -> str:
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{100 * values.mean():{sign}.1f} +- {100 * error:.1f}"
