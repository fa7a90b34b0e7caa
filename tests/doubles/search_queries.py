"""Searches of the generated newspaper whose answers are marked by hand, in `search_queries.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from protocol.news import NewsCard

SHOWN = 10
"""Stories at the top of a page of results that a reader looks at."""


@dataclass(frozen=True)
class MarkedQuery:
    """A search, and the topics and the expression that its answers have."""

    words: str
    topics: frozenset[str]
    about: str

    def answers(self, cards: Sequence[NewsCard]) -> set[str]:
        """The ids of the articles that answer it."""
        return {
            card.id
            for card in cards
            if f"{card.section}/{card.topic}" in self.topics
            and re.search(self.about, f"{card.title} {card.abstract}", re.IGNORECASE)
        }

    def recall(self, found: Sequence[str], cards: Sequence[NewsCard]) -> float:
        """Share of the events that answer it among the first ten results; of ten events if there are more.

        The limit is that of BEIR's R_cap@k (Thakur et al. 2021). Events, since a page shows one report of each.
        """
        events = {card.id: card.story or card.id for card in cards}
        answers = {events[news_id] for news_id in self.answers(cards)}
        return len(answers & {events[news_id] for news_id in found[:SHOWN]}) / min(SHOWN, len(answers))


def marked_queries() -> tuple[list[MarkedQuery], list[str]]:
    """Return the queries that the newspaper answers, and those that it doesn't."""
    table: dict[str, Any] = tomllib.loads((Path(__file__).parent / "search_queries.toml").read_text("utf-8"))
    answered = [MarkedQuery(one["words"], frozenset(one["topics"]), one.get("about", "")) for one in table["answered"]]
    return answered, list(table["unanswered"])


def figures(queries: Sequence[MarkedQuery], found: Sequence[Sequence[str]], cards: Sequence[NewsCard]) -> str:
    """Say the mean recall of some searches, and which found least."""
    recalls = [query.recall(each, cards) for query, each in zip(queries, found, strict=True)]
    worst = sorted(zip(recalls, (query.words for query in queries), strict=True))[:15]
    return f"recall@{SHOWN} {np.mean(recalls):.3f}; least: {worst}"
