"""The Explore page: every section of the default list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from device_app.feed.candidates import Candidates
from device_app.feed.preferences import Named
from device_app.feed.scores import recency
from device_app.wire.news import NewsCard


@dataclass(frozen=True)
class ExploreSection:
    """One section with its best news, newest and weightiest first. stance is the reader's: 'follow', 'block', None."""

    section: str
    cards: tuple[NewsCard, ...]
    stance: str | None


def explore_sections(
    default_list: Candidates,
    blocked: Named,
    unwanted: frozenset[str],
    stances: Mapping[tuple[str, str], str],
    now: datetime,
    half_life_hours: float,
) -> tuple[ExploreSection, ...]:
    """The default list by section, the fullest first; inside one by editorial weight plus recency.

    Blocked topics and publishers and unwanted news are left out; a blocked section stays, marked, to be let in again.
    """
    hidden = default_list.named(default_list.topics, blocked.topics) | default_list.named(
        default_list.publishers, blocked.publishers
    )
    shown = default_list.only(~(hidden | default_list.named(default_list.ids, unwanted)))
    sections: dict[str, list[NewsCard]] = {}
    for row in np.argsort(-(shown.weights + recency(shown, now, half_life_hours)), kind="stable"):
        sections.setdefault(shown.cards[row].section, []).append(shown.cards[row])
    return tuple(
        ExploreSection(section, tuple(cards), stances.get(("section", section)))
        for section, cards in sorted(sections.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    )
