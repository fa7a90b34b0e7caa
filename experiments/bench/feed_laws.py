"""Measures what a feed promises its reader: true reasons, and learning that is damped and lasts.

Measured on the generated newspaper, whose topics and names are known, with simulated readers (`bench.newspaper_pages`).
`ownfeed bench feed` prints the results; tests compare them with the required limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from device_app.ranking.ranker import Ranker
from device_app.settings import FeedSettings
from experiments.bench.newspaper_pages import PAGE, NewspaperPool, PageCard, Reader
from protocol.similarity import random_cosines

COMMON_SHARE = 0.01
"""A name in a greater share of the newspaper doesn't make stories related."""
RANDOM_PAIRS = 200_000
PICKED = ("food", "film")
READS = 5
REFRESHES = 2
TOPICS, TOPIC_EVENTS = 40, 20
"""Number of topics read, and minimum number of different events of each: enough for two fifths of a page besides what
was read.
"""
WITHIN = (0.30, 0.45)
"""Allowed shares of a topic that was read five times."""
BLEND_READS = 20


@dataclass(frozen=True)
class SimilarityFigures:
    """Number of reasons that name a story the reader has read, and the share of these with a common topic or name.

    random_pairs: share of random pairs of the pool above the floor, a cosine.
    """

    whys: int
    related: float
    random_pairs: float
    floor: float


@dataclass(frozen=True)
class LearningFigures:
    """The pages of one reader after five reads of one topic, as shares of each page.

    of_topic: share of that topic. in_column: its share of the personal places, which a reader sees as one column.
    greatest, greatest_in_column: largest share of any section. of_picked: share of all picked sections together.
    """

    topic: str
    picked: bool
    of_topic: tuple[float, ...]
    in_column: tuple[float, ...]
    greatest: tuple[float, ...]
    greatest_in_column: tuple[float, ...]
    of_picked: tuple[float, ...]

    @property
    def is_steady(self) -> bool:
        """Whether the topic keeps its share on every page, and no section has more than half."""
        least, most = WITHIN
        return min(self.of_topic) >= least and max(self.of_topic) <= most and max(self.greatest) <= 0.5


@dataclass(frozen=True)
class FirstPageFigures:
    """A first page: its number of sections, and the greatest share of a section that was not picked."""

    picked: tuple[str, ...]
    sections: int
    greatest: float


@dataclass(frozen=True)
class Newspaper:
    """The pool with a ranker, and its known topics and names. has_pool: whether devices have a copy of the pool."""

    pool: NewspaperPool
    ranker: Ranker
    settings: FeedSettings = field(default_factory=FeedSettings)
    has_pool: bool = True

    @cached_property
    def _common(self) -> frozenset[str]:
        counts = Counter(name for names in self.pool.names for name in names)
        return frozenset(name for name, count in counts.items() if count > COMMON_SHARE * len(self.pool.cards))

    @cached_property
    def row(self) -> dict[str, int]:
        return {card.id: row for row, card in enumerate(self.pool.cards)}

    def related(self, one: int, other: int) -> bool:
        """Return whether two stories have the same topic or a name in common."""
        cards, names = self.pool.cards, self.pool.names
        same = (cards[one].section, cards[one].topic) == (cards[other].section, cards[other].topic)
        return same or bool((names[one] & names[other]) - self._common)

    def reader(self, *picked: str) -> Reader:
        """Return a reader who visits for the first time."""
        return Reader(self.pool, self.ranker, self.settings, picked=frozenset(picked), has_pool=self.has_pool)

    def topics(self, count: int, seed: int) -> list[tuple[str, str]]:
        """Draw topics, with their sections, that have at least TOPIC_EVENTS different events."""
        events: dict[tuple[str, str], set[str]] = {}
        for card in self.pool.cards:
            events.setdefault((card.section, card.topic), set()).add(card.story or card.id)
        large = sorted(name for name, of_topic in events.items() if len(of_topic) >= TOPIC_EVENTS)
        return [large[at] for at in np.random.default_rng(seed).permutation(len(large))[:count]]

    def mixed_reader(self, rng: np.random.Generator) -> Reader:
        """Return a reader with one to four reads of a few topics, and three other reads."""
        cards = self.pool.cards
        read: list[int] = []
        for row in rng.choice(len(cards), 3, replace=False):
            of_topic = self.pool.rows(section=cards[row].section, topic=cards[row].topic)
            read += rng.choice(of_topic, min(len(of_topic), int(rng.integers(1, 5))), replace=False).tolist()
        read += rng.choice(len(cards), 3, replace=False).tolist()
        return self.reader(*(PICKED if rng.random() < 0.5 else ())).reads(*dict.fromkeys(read))

    def similarity(self, whys: int, seed: int) -> SimilarityFigures:
        """Check at least `whys` reasons that name a story, on pages of readers drawn with `seed`."""
        rng = np.random.default_rng(seed)
        true: list[bool] = []
        while len(true) < whys:
            page = self.mixed_reader(rng).page(int(rng.integers(2**31)))
            named = [shown for shown in page if shown.reason.clicks]
            true += [self.related(shown.row, self.row[shown.reason.clicks[0].id]) for shown in named]
        assert self.pool.floor is not None
        above = random_cosines(self.pool.vectors, rng, RANDOM_PAIRS) > self.pool.floor
        return SimilarityFigures(len(true), float(np.mean(true)), float(above.mean()), self.pool.floor)

    def largest_topic(self, section: str) -> str:
        """Return the section's topic with the most articles."""
        topics = Counter(self.pool.cards[row].topic for row in self.pool.rows(section=section))
        return max(topics, key=lambda name: topics[name])

    def learning(self, section: str, topic: str, seed: int, *, picked: bool, reads: int = READS) -> LearningFigures:
        """Let a reader read a topic; measure the next page and those after REFRESHES more, each viewed from top to
        bottom.
        """
        rng = np.random.default_rng(seed)
        of_topic = self.pool.rows(section=section, topic=topic)
        reader = self.reader(*(PICKED if picked else ()))
        reader = reader.reads(*rng.choice(of_topic, reads, replace=False).tolist())
        pages: list[list[PageCard]] = []
        for number in range(1 + REFRESHES):
            pages.append(reader.page(seed + number))
            reader = reader.looks_at(pages[-1], PAGE)
        cards = self.pool.cards
        columns = [[shown for shown in page if shown.slot in ("lead", "for_you")] for page in pages]
        return LearningFigures(
            topic=f"{section}: {topic}",
            picked=picked,
            of_topic=tuple(_share(page, set(of_topic)) for page in pages),
            in_column=tuple(_share(column, set(of_topic)) for column in columns),
            greatest=tuple(map(self._greatest, pages)),
            greatest_in_column=tuple(map(self._greatest, columns)),
            of_picked=tuple(
                _share(page, {shown.row for shown in page if cards[shown.row].section in PICKED}) for page in pages
            ),
        )

    def _greatest(self, page: Sequence[PageCard]) -> float:
        return max(Counter(self.pool.cards[shown.row].section for shown in page).values()) / len(page)

    def cold(self, seed: int, picked: Sequence[str] = ()) -> FirstPageFigures:
        """Measure the first page of a reader who picked these sections."""
        page = self.reader(*picked).page(seed)
        sections = Counter(self.pool.cards[shown.row].section for shown in page)
        others = [count for name, count in sections.items() if name not in picked]
        return FirstPageFigures(tuple(picked), len(sections), max(others) / len(page))

    def moved(self, seed: int, kind: Literal["liked", "less"], *, position: int) -> int:
        """Count the cards of a page that change after one reaction to the card at a position."""
        rng = np.random.default_rng(seed)
        reader = self.mixed_reader(rng)
        before = [shown.row for shown in reader.page(seed)]
        pressed = before[min(position, len(before) - 1)]
        other = replace(reader, liked=(pressed,)) if kind == "liked" else replace(reader, less=(pressed,))
        return len(set(before) - {shown.row for shown in other.page(seed)})


def _share(page: Sequence[PageCard], rows: set[int]) -> float:
    return sum(shown.row in rows for shown in page) / len(page)


def measured(newspaper: Newspaper, *, sections: Sequence[str], seeds: Sequence[int], whys: int = 300) -> dict[str, Any]:
    """Return all results, for several seeds."""
    positions = (0, 1, 2, 5, 9, 14)
    return {
        "settings": newspaper.settings.model_dump(),
        "stories": len(newspaper.pool.cards),
        "similarity": [asdict(newspaper.similarity(whys, seed)) for seed in seeds],
        "learning": [
            newspaper.learning(section, newspaper.largest_topic(section), seed, picked=True)
            for section in sections
            for seed in seeds
        ],
        "topics": [
            newspaper.learning(section, topic, seed, picked=False)
            for section, topic in newspaper.topics(TOPICS, seeds[0])
            for seed in seeds
        ],
        "blend": [
            newspaper.learning(section, newspaper.largest_topic(section), seeds[0], picked=True, reads=BLEND_READS - 1)
            for section in sections
        ],
        "cold": [asdict(newspaper.cold(seed, picked)) for seed in seeds for picked in _picks()],
        "moved": {
            kind: sorted(newspaper.moved(seed, kind, position=at) for seed in range(12) for at in positions)
            for kind in _KINDS
        },
    }


_KINDS: tuple[Literal["liked", "less"], ...] = ("liked", "less")


def _picks() -> Iterator[tuple[str, ...]]:
    yield ()
    yield ("food",)
    yield ("football", "science")
    yield ("food", "film", "games")
