"""How the food section writes prices."""

from __future__ import annotations

from newsroom.expressions import Verb
from newsroom.scene import Scene
from newsroom.world import Country, Money

_PLAIN_FROM = 90


def _shown(_: Scene, amount: float, country: Country) -> Money:
    """Write a price as shops do: '£2.39', '92 crowns'."""
    if country.currency.unit:
        return Money(round(amount), country.currency)
    return Money(round(amount, 1) + (0.09 if amount < _PLAIN_FROM else 0), country.currency)


VERBS: dict[str, Verb] = {"shown": _shown}
