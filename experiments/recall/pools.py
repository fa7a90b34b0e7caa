"""Measures recall by pool size and list length: what a list finds, its bytes, and what it reveals.

Larger pools add real headlines that no reader clicked to MIND's articles. Each gets the clicks of a random MIND
article, so that the popular list has to compete as it would in a pool of that size.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.measurements.frontier import PairedGain
from backend.recall.pool_codes import train_book
from backend.recall.service import compress
from experiments.bench.headlines import Headline, headlines
from experiments.datasets.mind import NewsTable
from experiments.datasets.titles import title_vectors, unit_rows
from experiments.recall.measure import PossibleLists, WarmSplit, paired, recall
from experiments.recall.modes import EmbeddedSplit, Mixtures, ReportCodebook, learned_book
from experiments.recall.tower import Vectors, train_tower
from protocol.broadcast import pack_book, pack_cards, pack_codes, pack_priors
from protocol.news import NewsCard
from protocol.recall import RecallAnswer
from protocol.tensors import pack, quantise

PLACES = (200, 400, 600, 800, 1_000)
"""Lengths of lists; no report may ask for more (`protocol/recall.py:CANDIDATES_LIMIT`)."""
HEADLINES_BESIDE = (0, 29_000, 87_000)
REPORTS = {4: 2.0, 16: 4.0, 64: 8.0}
"""K -> epsilon; a release offers the last two."""
CONTROL = 16
"""K of the control: the list by the mixture of all prototypes, the same for everyone, which needs no report. What it
finds beyond the popular list shows how well content separates MIND's articles from the headlines.
"""
EPOCH = 2
"""The tower's epoch, as `ownfeed bench recall` chooses it."""
SHARPNESSES = (0.35, 0.5, 0.65, 0.8, 1.0, 1.25, 1.6, 2.0, 2.5, 3.2)
BOOK_SEEDS = (7, 8)
DISTRACTORS_SEED = 7
SUBSPACES = 16
AT_ONCE = 3_000
"""Titles per cache file, so that an interrupted run can resume."""
CARDS_A_DAY = 500
HEX = 64

Lists = Callable[[float, int], PossibleLists]


@dataclass(frozen=True)
class RecallMethod:
    """One method of finding articles at one pool size.

    found [places] in percent; gain [places] over the popular list of the same length; weight [places] in bytes;
    epsilon: infinite if the exact vector is revealed.
    """

    name: str
    epsilon: float
    found: tuple[float, ...]
    gain: tuple[PairedGain, ...]
    weight: tuple[int, ...]
    sharpness: float | None = None


@dataclass(frozen=True)
class PoolPart:
    """A pool of `news` articles, and what every method found in it."""

    news: int
    ways: tuple[RecallMethod, ...]
    readers: int


def distractors(data: Path, mind: NewsTable, count: int) -> list[Headline]:
    """Return real headlines that are not titles of MIND, in a fixed random order. Raises DataMissing."""
    known = set(mind.titles)
    found = [each for each in headlines(data, 10**9) if each.title not in known]
    order = np.random.default_rng(DISTRACTORS_SEED).permutation(len(found))[:count]
    return [found[at] for at in order]


def vectors_of(titles: Sequence[str]) -> Vectors:
    """Return pooled states [n, 384], AT_ONCE titles per file of the cache."""
    parts = [title_vectors(titles[start : start + AT_ONCE]) for start in range(0, len(titles), AT_ONCE)]
    return np.concatenate([np.empty((0, 384), np.float32), *parts])


def measure(
    mind: NewsTable,
    pooled: Vectors,
    beside: Sequence[Headline],
    beside_pooled: Vectors,
    validation: WarmSplit,
    test: WarmSplit,
) -> list[PoolPart]:
    """Measure every pool for which there are enough headlines.

    Sharpness is chosen for each on the validation readers.
    """
    titles, others = unit_rows(pooled), unit_rows(beside_pooled)
    towers = [train_tower(titles, split.train, kept=(EPOCH,))[EPOCH] for split in (validation, test)]
    cards = _cards(mind, beside)
    parts = []
    for count in HEADLINES_BESIDE:
        if count > len(others):
            continue
        tuned, tested = (
            _pool(titles, others[:count], split, tower) for split, tower in zip((validation, test), towers, strict=True)
        )
        parts.append(PoolPart(len(tested.news), tuple(_ways(tuned, tested, cards)), len(test.measured)))
    return parts


def _pool(titles: Vectors, beside: Vectors, split: WarmSplit, tower: Vectors) -> EmbeddedSplit:
    """Return one split over MIND's articles and the added headlines, in the tower's vectors."""
    own = split.recent_clicks()
    drawn = np.random.default_rng(DISTRACTORS_SEED).choice(own, size=len(beside))
    news = np.concatenate([titles, beside]) @ tower.T
    return EmbeddedSplit(replace(split, news=len(news)), news, np.concatenate([own, drawn]))


def _ways(tuned: EmbeddedSplit, tested: EmbeddedSplit, cards: Sequence[NewsCard]) -> Iterator[RecallMethod]:
    deepest = max(PLACES)
    popular = tested.popular(deepest)
    baseline, answers = _shares(tested, popular), _answers(tested, cards, popular.lists[0])
    plain, packed = (tuple(map(len, each)) for each in (answers, map(compress, answers)))

    def way(name: str, epsilon: float, lists: PossibleLists, weight: tuple[int, ...], s: float | None) -> RecallMethod:
        found = _shares(tested, lists)
        means = tuple(float(each) for each in 100 * found.mean(axis=0))
        return RecallMethod(name, epsilon, means, tuple(paired(found, baseline)), weight, s)

    yield way("popular", 0.0, popular, packed, None)
    for size, epsilon in REPORTS.items():
        mine, theirs = ([learned_book(study, size, seed) for seed in BOOK_SEEDS] for study in (tuned, tested))
        s = _sharpest(tuned, lambda s, depth: _coded(tuned, mine, s, epsilon, depth))  # noqa: B023
        yield way(f"code K={size}", epsilon, _coded(tested, theirs, s, epsilon, deepest), packed, s)
        if size == CONTROL:
            s = _sharpest(tuned, lambda s, depth: _coded(tuned, mine, s, 0.0, depth))  # noqa: B023
            yield way(f"mixture K={size}", 0.0, _coded(tested, theirs, s, 0.0, deepest), packed, s)
    s = _sharpest(tuned, tuned.exact)
    copy = _copy_bytes(tested, cards)
    lists = tested.broadcast(s, SUBSPACES, deepest)
    yield way(f"broadcast {SUBSPACES} B", 0.0, lists, (copy,) * len(PLACES), s)
    yield way("exact vector", np.inf, tested.exact(s, deepest), plain, s)


def _coded(
    study: EmbeddedSplit, books: Sequence[ReportCodebook], sharpness: float, epsilon: float, depth: int
) -> PossibleLists:
    return PossibleLists.either([Mixtures(study, book, sharpness).code(epsilon, depth) for book in books])


def _sharpest(study: EmbeddedSplit, lists: Lists) -> float:
    """Return the s with the greatest share found, averaged over all lengths."""
    return max(SHARPNESSES, key=lambda s: float(_shares(study, lists(s, max(PLACES))).mean()))


def _shares(study: EmbeddedSplit, lists: PossibleLists) -> NDArray[np.float64]:
    return recall(lists, study.split.measured.targets, study.split.news, PLACES)


def _cards(mind: NewsTable, beside: Sequence[Headline]) -> list[NewsCard]:
    """Return cards as in a publisher's feed: real titles and abstracts, addresses of usual length."""
    articles = [(*each, "MSN") for each in zip(mind.titles, mind.abstracts, mind.categories, strict=True)]
    articles += [(each.title, each.abstract, each.section, each.publisher) for each in beside]
    published = datetime(2019, 11, 14, tzinfo=UTC)
    return [
        NewsCard(
            id=f"n{row}",
            title=title[:1_000],
            abstract=abstract[:5_000],
            url=f"https://news.example/{section}/{row}",
            publisher=publisher,
            section=section,
            topic=section,
            published_at=published,
            weight=0.5,
        )
        for row, (title, abstract, section, publisher) in enumerate(articles)
    ]


def _answers(study: EmbeddedSplit, cards: Sequence[NewsCard], rows: NDArray[np.int64]) -> list[bytes]:
    """Return complete answers of each length, as the server writes them."""
    return [
        RecallAnswer(
            release="r1",
            encoder="0" * HEX,
            candidates=tuple(cards[row] for row in rows[:places]),
            vectors=pack(quantise(study.news[rows[:places]])),
        )
        .model_dump_json()
        .encode()
        for places in PLACES
    ]


def _copy_bytes(study: EmbeddedSplit, cards: Sequence[NewsCard]) -> int:
    """Return the bytes of a device's first full copy of the pool: codes, centroids, popularity and cards by day."""
    count = len(study.news)
    days = [cards[start : min(start + CARDS_A_DAY, count)] for start in range(0, count, CARDS_A_DAY)]
    packed = sum(len(pack_cards([card.model_dump_json().encode() for card in day])) for day in days)
    codes = len(pack_codes(np.zeros((count, SUBSPACES), np.uint8)))
    book = len(pack_book(train_book(study.news[:256], SUBSPACES)))  # its size doesn't depend on the training data
    return packed + codes + book + len(pack_priors(study.log_popularity))
