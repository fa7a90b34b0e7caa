"""The parts of sections in Python: lasting casts, simulated seasons, and the verbs with which their facts draw."""

from __future__ import annotations

from newsroom.expressions import Verb
from newsroom.sections import (
    basketball,
    books,
    climate,
    cycling,
    film,
    food,
    football,
    games,
    health,
    markets,
    motoring,
    music,
    technology,
    travel,
    world,
)

_VERBS: dict[str, dict[str, Verb]] = {
    "basketball": basketball.VERBS,
    "books": books.VERBS,
    "climate": climate.VERBS,
    "cycling": cycling.VERBS,
    "film": film.VERBS,
    "food": food.VERBS,
    "football": football.VERBS,
    "games": games.VERBS,
    "health": health.VERBS,
    "markets": markets.VERBS,
    "motoring": motoring.VERBS,
    "music": music.VERBS,
    "technology": technology.VERBS,
    "travel": travel.VERBS,
    "world": world.VERBS,
}


def verbs_of(section: str) -> dict[str, Verb]:
    """Return the verbs that only this section's lists of facts have."""
    return _VERBS.get(section, {})
