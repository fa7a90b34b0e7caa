"""Decides whether two articles are similar enough to say so to the reader.

They are if they share a topic or a rare name, or if random pairs rarely reach their cosine. A wrong "similar to" costs
more trust than saying nothing, and most pairs that a ranker considers similar have nothing in common that a reader
would see.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates, unit
from device_app.reading.interest_labels import proper_names
from protocol.news import NewsCard
from protocol.releases import ReleaseManifest

RARE_NAME_SHARE = 0.01
"""A name found in a larger share of articles doesn't make two of them close."""
SECTIONS_OF_A_NAME = 2
"""A name found in more sections than this is incidental: a country, a capital, a weekday."""

Tie = Literal["topic", "name", "likeness"]


@dataclass(frozen=True)
class SimilarStory:
    """A story that is similar to another: its row, what they share, and the shared name if any."""

    row: int
    tie: Tie
    cosine: float
    name: str = ""


class SimilarityRule:
    """Decides which of the offered articles count as similar.

    Args:
        news: the offered articles; a name is rare if few of them contain it.
        floor: the cosine that random pairs rarely reach (protocol.similarity); None: cosines don't count.
    """

    def __init__(self, news: Candidates, floor: float | None) -> None:
        self._news = news
        self._floor = math.inf if floor is None else floor
        self._rare: dict[str, bool] = {}
        self._texts: tuple[tuple[str, str], ...] | None = None
        # the last `vectors` asked about: as given, and scaled
        self._others: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None

    def of(
        self, card: NewsCard, vector: NDArray[np.float32], others: Sequence[NewsCard], vectors: NDArray[np.float32]
    ) -> list[SimilarStory]:
        """Return those of `others` that are similar to a story.

        vector is [D] and vectors [m, D], of any length. Those with shared topics and names come first, then the others;
        each by similarity.
        """
        if not len(others):
            return []
        if self._others is None or self._others[0] is not vectors:
            self._others = (vectors, unit(vectors))
        cosines = self._others[1] @ unit(vector[None])[0]
        names = proper_names(card)
        found = []
        for row in np.argsort(-cosines, kind="stable").tolist():
            tie, name = self._tie(card, names, others[row], float(cosines[row]))
            if tie is not None:
                found.append(SimilarStory(row, tie, float(cosines[row]), name))
        return sorted(found, key=lambda similar: similar.tie == "likeness")

    def among(self, lead: int, rows: Sequence[int]) -> list[int]:
        """Return those of `rows` that are similar to row `lead`, including itself, in order."""
        cards, vectors = self._news.cards, self._news.vectors
        similar = self.of(cards[lead], vectors[lead], [cards[row] for row in rows], vectors[list(rows)])
        close = {rows[one.row] for one in similar}
        return [row for row in rows if row == lead or row in close]

    def _tie(self, card: NewsCard, names: frozenset[str], other: NewsCard, cosine: float) -> tuple[Tie | None, str]:
        if card.topic and (card.section, card.topic) == (other.section, other.topic):
            return "topic", ""
        shared = sorted(name for name in names & proper_names(other) if self._is_rare(name)) if names else []
        if shared:
            return "name", max(shared, key=len)
        return ("likeness", "") if cosine > self._floor else (None, "")

    def _is_rare(self, name: str) -> bool:
        known = self._rare.get(name)
        if known is None:
            if self._texts is None:
                self._texts = tuple((f"{card.title} {card.abstract}", card.section) for card in self._news.cards)
            held = [section for text, section in self._texts if name in text]
            few = len(held) <= max(3, RARE_NAME_SHARE * len(self._texts))
            known = self._rare[name] = few and len(set(held)) <= SECTIONS_OF_A_NAME
        return known


def is_by_meaning(similar: SimilarStory, floor: float | None) -> bool:
    """Return whether a story is close by more than a name.

    Two people may share a name, and a town has all kinds of news.
    """
    return similar.tie != "name" or (floor is not None and similar.cosine > floor)


def floor_of(manifest: ReleaseManifest, default_list: Candidates) -> float | None:
    """Return the release's similarity floor, or the default list's if the release has none."""
    return default_list.similarity_floor if manifest.kinship_floor is None else manifest.kinship_floor
