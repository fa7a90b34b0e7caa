"""News already shown, and news that tells the same again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates


def unseen(candidates: Candidates, seen: Mapping[str, float] | set[str] | frozenset[str]) -> NDArray[np.bool_]:
    """[n]: True where the news was not shown before."""
    return ~candidates.named(candidates.ids, seen)


def one_of_each(candidates: Candidates, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """[n]: True for the best-scored news of every headline and every developing story.

    Two headlines are the same if they agree without regard to case and outer white space.
    """
    keep = np.zeros(len(candidates), dtype=bool)
    headlines: set[str] = set()
    stories: set[str] = set()
    for row in np.argsort(-scores, kind="stable"):
        card = candidates.cards[row]
        headline = card.title.strip().casefold()
        if headline in headlines or (card.story is not None and card.story in stories):
            continue
        headlines.add(headline)
        if card.story is not None:
            stories.add(card.story)
        keep[row] = True
    return keep
