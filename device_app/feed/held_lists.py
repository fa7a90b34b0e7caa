"""Lists that hold still: Fresh, Explore, Popular and Following stay as they were shown until another is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Literal

from device_app.stores import DeviceStores
from device_app.wire.news import NewsCard

ListName = Literal["fresh", "explore", "popular", "following"]
PREFERENCE = "list/"


@dataclass(frozen=True)
class HeldList:
    """A list as it was made, in its order; new: how many stories it would have now that are not in it."""

    made_at: datetime
    cards: tuple[NewsCard, ...]
    new: int = 0


class HeldLists:
    """Keeps the ids of each list for so many hours, over restarts too. An erase takes them. Safe for several threads.

    Args:
        hours: older lists are made afresh at the next visit, as a page of the feed is.
    """

    def __init__(self, stores: DeviceStores, hours: float, clock: Callable[[], datetime]) -> None:
        self._preferences, self._news = stores.preferences, stores.news
        self._longest, self._clock = timedelta(hours=hours), clock
        self._lock = Lock()

    def hold(self, name: ListName, listed: Sequence[NewsCard]) -> HeldList:
        """The list in use; `listed`, which is what it would be now, where there is none, an empty or an old one.

        A story that is hidden meanwhile keeps its place; one that has left this device doesn't.
        """
        with self._lock:
            kept = _read(self._preferences.get(PREFERENCE + name))
            if kept is None or not abs(self._clock() - kept[0]) < self._longest:
                made_at = self._clock()
                if listed:
                    ids = [card.id for card in listed]
                    self._preferences.set(PREFERENCE + name, {"made_at": made_at.isoformat(), "ids": ids})
                return HeldList(made_at, tuple(listed))
        made_at, ids = kept
        here = {card.id: card for card in listed}
        here |= {card.id: card for card in self._news.cards([one for one in ids if one not in here])}
        shown = tuple(here[one] for one in ids if one in here)
        return HeldList(made_at, shown, len({card.id for card in listed}.difference(ids)))

    def renew(self, name: ListName) -> None:
        """The reader asks for another: the next visit makes it."""
        with self._lock:
            self._preferences.set(PREFERENCE + name, None)


def _read(kept: Any) -> tuple[datetime, list[str]] | None:
    """When a list was made, and its ids; None for what can't be read, since another list beats a page that fails."""
    try:
        made_at, ids = datetime.fromisoformat(kept["made_at"]), [str(one) for one in kept["ids"]]
    except (KeyError, TypeError, ValueError):
        return None
    return (made_at, ids) if ids and made_at.tzinfo is not None else None
