"""Why a story is in the feed, said in one sentence; made on the device from the reader's own clicks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates, unit
from device_app.feed.item import Reason
from device_app.feed.preferences import UserPreferences
from device_app.feed.slots import Placed
from device_app.wire.news import NewsCard

CLICKS_NAMED = 3
NEAR_COSINE = 0.2
"""Below this cosine to every click, a story is not said to be close to any."""


def reasons(candidates: Candidates, page: Sequence[Placed], user_preferences: UserPreferences) -> list[Reason]:
    """One reason for each place of the page, in its order."""
    units = unit(candidates.vectors[[place.row for place in page]])
    clicks, liked = _nearest(units, user_preferences.click_vectors), _nearest(units, user_preferences.liked)
    read = Counter(card.topic for card in user_preferences.clicks)
    stories = Counter(candidates.cards[place.row].story for place in page if place.slot == "developing")
    said = []
    for n, place in enumerate(page):
        card = candidates.cards[place.row]
        if place.slot == "developing":
            said.append(Reason("developing", f"One of {stories[card.story]} reports on a story that is developing."))
        elif place.slot == "fresh":
            said.append(Reason("recent", "New in the last hours; drawn at random, whatever you read."))
        elif place.slot == "explore":
            said.append(Reason("explore", f"A look outside: you rarely read {card.section}."))
        else:
            said.append(_personal(card, clicks[n], liked[n], user_preferences, read))
    return said


@dataclass(frozen=True)
class _Near:
    """The rows nearest to a story, nearest first, and the cosine of the first (0 where there is none)."""

    rows: list[int]
    cosine: float


def _nearest(units: NDArray[np.float32], others: NDArray[np.float32]) -> list[_Near]:
    """For each of units [n, D], the CLICKS_NAMED nearest of others [m, D]."""
    cosines = units @ unit(others).T
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :CLICKS_NAMED].tolist()
    return [_Near(rows, cosine) for rows, cosine in zip(order, cosines.max(axis=1, initial=0.0).tolist(), strict=True)]


def _personal(
    card: NewsCard, clicks: _Near, liked: _Near, user_preferences: UserPreferences, read: Counter[str]
) -> Reason:
    """The strongest of: a followed name, more of a liked story, clicks close by, a chosen section, the editors."""
    follows = follow_reason(card, user_preferences)
    if follows is not None:
        return follows
    if liked.cosine > max(clicks.cosine, NEAR_COSINE):
        example = user_preferences.liked_cards[liked.rows[0]]
        return Reason("liked", f"You asked for more like “{example.title}”.", clicks=(example,))
    if clicks.cosine >= NEAR_COSINE:
        close = tuple({user_preferences.clicks[row].id: user_preferences.clicks[row] for row in clicks.rows}.values())
        interest = user_preferences.click_interests[clicks.rows[0]] or None
        words = (
            f"You read {read[card.topic]} stories on {card.topic}."
            if read[card.topic] >= 2
            else f"Close to “{close[0].title}”, which you read."
        )
        return Reason("interest", words, interest=interest, clicks=close)
    if card.section in user_preferences.chosen_sections:
        return Reason("chosen", f"You picked {card.section} on your first visit.")
    if user_preferences.clicks:
        return Reason("editors", "Recent, and given weight by its editors.")
    return Reason("editors", "Recent, and given weight by its editors; nothing about you is used yet.")


def follow_reason(card: NewsCard, user_preferences: UserPreferences) -> Reason | None:
    """Named after the narrowest name that is followed; None if none is."""
    for name, names in (
        (card.topic, user_preferences.followed.topics),
        (card.section, user_preferences.followed.sections),
        (card.publisher, user_preferences.followed.publishers),
    ):
        if name in names:
            return Reason("following", f"You follow {name}.")
    return None
