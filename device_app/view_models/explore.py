"""The Explore page: every section of the default list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from device_app.feed.default_list import DefaultList
from device_app.feed.preference_reader import named
from device_app.feed.scores import recency
from device_app.settings import FeedSettings
from device_app.stores import DeviceStores
from device_app.wire.news import NewsCard


@dataclass(frozen=True)
class ExploreSection:
    """One section with its best news, newest and weightiest first. stance is the reader's: 'follow', 'block', None."""

    section: str
    cards: tuple[NewsCard, ...]
    stance: str | None


def explore_sections(
    stores: DeviceStores, default_list: DefaultList, now: datetime, weights: FeedSettings
) -> tuple[ExploreSection, ...]:
    """The default list by section, the fullest first; inside one by editorial weight plus recency. Empty before the
    first sync.

    Blocked topics and publishers are left out; a blocked section stays, marked, to be let in again.
    """
    kept = stores.default_list.current()
    if kept is None:
        return ()
    listed = default_list.candidates(kept.encoder, 0)
    blocked, stances = named(stores.stances.blocked()), stores.stances.all()
    hidden = listed.named(listed.topics, blocked.topics) | listed.named(listed.publishers, blocked.publishers)
    shown = listed.only(~hidden)
    sections: dict[str, list[NewsCard]] = {}
    for row in np.argsort(-(shown.weights + recency(shown, now, weights.half_life_hours)), kind="stable"):
        sections.setdefault(shown.cards[row].section, []).append(shown.cards[row])
    return tuple(
        ExploreSection(section, tuple(cards), stances.get(("section", section)))
        for section, cards in sorted(sections.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    )


def regrouped(cards: Iterable[NewsCard], stances: Mapping[tuple[str, str], str]) -> tuple[ExploreSection, ...]:
    """Cards of a list that is held, by section again, in the order in which they stand there."""
    sections: dict[str, list[NewsCard]] = {}
    for card in cards:
        sections.setdefault(card.section, []).append(card)
    return tuple(
        ExploreSection(section, tuple(found), stances.get(("section", section))) for section, found in sections.items()
    )
