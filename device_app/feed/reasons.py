"""Why a story is in the feed, said in one sentence; made on the device from the reader's own clicks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from device_app.feed.candidates import Candidates, unit
from device_app.feed.item import Reason
from device_app.feed.slots import Placed
from device_app.feed.tastes import Tastes
from device_app.wire.news import NewsCard

CLICKS_NAMED = 3
NEAR_COSINE = 0.2
"""Below this cosine to every click, a story is not said to be close to any."""


def reasons(candidates: Candidates, page: Sequence[Placed], tastes: Tastes) -> list[Reason]:
    """One reason for each place of the page, in its order."""
    units = unit(candidates.vectors[[place.row for place in page]])
    to_clicks = units @ unit(tastes.click_vectors).T  # [n, H]
    to_liked = units @ unit(tastes.liked).T
    read = Counter(card.topic for card in tastes.clicks)
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
            said.append(_personal(card, to_clicks[n], to_liked[n], tastes, read))
    return said


def _personal(
    card: NewsCard,
    to_clicks: np.ndarray[tuple[int], np.dtype[np.float32]],
    to_liked: np.ndarray[tuple[int], np.dtype[np.float32]],
    tastes: Tastes,
    read: Counter[str],
) -> Reason:
    """The strongest of: a followed name, more of a liked story, clicks close by, a chosen section, the editors."""
    follows = follow_reason(card, tastes)
    if follows is not None:
        return follows
    nearest = float(to_clicks.max(initial=0.0))
    liked = float(to_liked.max(initial=0.0))
    if liked > max(nearest, NEAR_COSINE):
        example = tastes.liked_cards[int(np.argmax(to_liked))]
        return Reason("liked", f"You asked for more like “{example.title}”.", clicks=(example,))
    if nearest >= NEAR_COSINE:
        order = np.argsort(-to_clicks, kind="stable")
        close = tuple({tastes.clicks[j].id: tastes.clicks[j] for j in order[:CLICKS_NAMED]}.values())
        interest = tastes.click_interests[int(order[0])] or None
        words = (
            f"You read {read[card.topic]} stories on {card.topic}."
            if read[card.topic] >= 2
            else f"Close to “{close[0].title}”, which you read."
        )
        return Reason("interest", words, interest=interest, clicks=close)
    if card.section in tastes.chosen_sections:
        return Reason("chosen", f"You picked {card.section} on your first visit.")
    if tastes.clicks:
        return Reason("editors", "Recent, and given weight by its editors.")
    return Reason("editors", "Recent, and given weight by its editors; nothing about you is used yet.")


def follow_reason(card: NewsCard, tastes: Tastes) -> Reason | None:
    """Named after the narrowest name that is followed; None if none is."""
    for name, names in (
        (card.topic, tastes.followed.topics),
        (card.section, tastes.followed.sections),
        (card.publisher, tastes.followed.publishers),
    ):
        if name in names:
            return Reason("following", f"You follow {name}.")
    return None
