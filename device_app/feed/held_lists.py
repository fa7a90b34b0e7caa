"""Lists that stay as shown until the reader asks for a new one.

These are Fresh, Explore, Popular, Following, Saved, the lists of a topic, section or publisher, and search results.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import RLock
from typing import Any, Literal, get_args

from device_app.store.news import NewsStore
from device_app.store.searches import WORDS_LIMIT_CHARS
from device_app.stores import DeviceStores
from protocol.news import NewsCard

NAME_FORM = r"fresh|explore|popular|following|saved|(?:topic|section|publisher)/[\s\S]{1,120}"
"""Names of stored lists: a page's, or all articles of a topic, section or publisher."""
FOUND = "search/"
RENEWED_FORM = rf"{NAME_FORM}|{FOUND}[\s\S]{{1,{WORDS_LIMIT_CHARS}}}"
"""Names of lists that can be renewed; these include search results."""
FoundPart = Literal["found", "near"]
FOUND_KEPT = 16
"""Number of search results held at once: what eight searches found, and what is near it."""
PREFERENCE = "list/"


@dataclass(frozen=True)
class HeldList:
    """A list in the order in which it was made.

    new: how many stories would be added if it were made now. came: ids of its stories that reached this device after
    the previous list was made; empty for a first list.
    """

    made_at: datetime
    cards: tuple[NewsCard, ...]
    new: int = 0
    came: frozenset[str] = frozenset()


@dataclass(frozen=True)
class HeldIds:
    """The ids of a list in the order in which it was made.

    new: how many stories a list made now would add. before: when the previous list was made.
    """

    made_at: datetime
    ids: tuple[str, ...]
    new: int
    before: datetime | None


@dataclass(frozen=True)
class HeldResults:
    """The ids of all results of a search, in order. new: how many more a search made now would find."""

    made_at: datetime
    ids: tuple[str, ...]
    new: int = 0


class HeldLists:
    """Stores the ids of each list for some hours, across restarts. Thread-safe.

    An erase removes them. Search results are kept in memory only, under a keyed hash of the query whose key exists only
    in this process: a search that isn't saved never reaches the disk.

    Args:
        hours: lists older than this are rebuilt at the next visit, like a page of the feed.
    """

    def __init__(self, stores: DeviceStores, hours: float, clock: Callable[[], datetime]) -> None:
        self._preferences, self._news, self._pool = stores.preferences, stores.news, stores.pool
        self._longest, self._clock = timedelta(hours=hours), clock
        self._lock = RLock()
        self._found: dict[bytes, HeldResults] = {}
        self._key = secrets.token_bytes(32)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Hold the lock, so that finding and holding a list can't interleave with an erase.

        An erase either removes what was found before it or happens before the search, so nothing old survives it.
        """
        with self._lock:
            yield

    def hold_ids(self, name: str, ids: Sequence[str], *, whole: bool = True) -> HeldIds:
        """Return the stored list, or `ids` if there is none or it is empty or too old.

        ids: the list as it would be made now. whole: False if it lacks stories that are about to return; then it isn't
        stored. A list whose stories were erased meanwhile isn't stored either. Raises ValueError for an invalid name.
        """
        if not re.fullmatch(NAME_FORM, name):
            raise ValueError(f"name: {name[:40]!r} is not the name of a list")
        with self._lock:
            kept = _read(self._preferences.get(PREFERENCE + name))
            if kept is None or not kept.ids or not abs(self._clock() - kept.made_at) < self._longest:
                made_at, before = self._clock(), None if kept is None else kept.made_at
                if whole and self._are_here(ids):
                    self._keep(name, _StoredList(made_at, list(ids), before))
                return HeldIds(made_at, tuple(ids), 0, before)
        return HeldIds(kept.made_at, tuple(kept.ids), len(set(ids).difference(kept.ids)), kept.before)

    def came(self, held: HeldIds, cards: Sequence[NewsCard]) -> frozenset[str]:
        """Return ids of these cards that reached this device after the previous list was made."""
        return frozenset() if held.before is None else came_since(held.before, cards, self._news, self._longest)

    def hold(self, name: str, listed: Sequence[NewsCard], *, whole: bool = True) -> HeldList:
        """Return the stored list with its cards, like `hold_ids`; for short lists.

        listed: the list as it would be made now. A story that was hidden meanwhile keeps its place; one that is no
        longer on this device is left out.
        """
        held = self.hold_ids(name, [card.id for card in listed], whole=whole)
        here = {card.id: card for card in listed}
        here |= {card.id: card for card in self._news.cards([one for one in held.ids if one not in here])}
        places = self._pool.places([one for one in held.ids if one not in here])
        here |= {card.id: card for card in self._pool.cards(places.values())}
        shown = tuple(here[one] for one in held.ids if one in here)
        return HeldList(held.made_at, shown, held.new, self.came(held, shown))

    def hold_found(
        self, words: str, found: Sequence[str], part: FoundPart = "found", *, whole: bool = True
    ) -> HeldResults:
        """Return the stored results, or `found` if there are none or they are too old.

        found: the current results of the query. whole: see `hold`.
        """
        key = self._hash(words, part)
        with self._lock:
            held = self._found.pop(key, None)
            if held is None or not held.ids or not abs(self._clock() - held.made_at) < self._longest:
                held = HeldResults(self._clock(), tuple(found))
                if not whole:
                    return held
            while len(self._found) >= FOUND_KEPT:
                del self._found[next(iter(self._found))]
            self._found[key] = held
        return replace(held, new=len(set(found).difference(held.ids)))

    def shown(self, name: str) -> list[str]:
        """Return the ids of a stored list as they are, or of a search's results; none if it isn't stored."""
        with self._lock:
            if not name.startswith(FOUND):
                kept = _read(self._preferences.get(PREFERENCE + name))
                return [] if kept is None else kept.ids
            parts = [self._found.get(self._hash(name.removeprefix(FOUND), part)) for part in get_args(FoundPart)]
            return [news_id for part in parts if part is not None for news_id in part.ids]

    def forget(self) -> None:
        """Drop all search results, because the reader erases everything."""
        with self._lock:
            self._found.clear()

    def renew(self, name: str) -> None:
        """Mark a list for renewal at the next visit. Raises ValueError for an invalid name."""
        if not re.fullmatch(RENEWED_FORM, name):
            raise ValueError(f"name: {name[:40]!r} is not the name of a list")
        with self._lock:
            if name.startswith(FOUND):
                for part in get_args(FoundPart):
                    self._found.pop(self._hash(name.removeprefix(FOUND), part), None)
                return
            kept = _read(self._preferences.get(PREFERENCE + name))
            if kept is not None:
                self._keep(name, _StoredList(kept.made_at, [], None))

    def _hash(self, words: str, part: FoundPart) -> bytes:
        return hashlib.blake2b(" ".join(words.split()).encode(), key=self._key, person=part.encode()).digest()

    def _are_here(self, ids: Sequence[str]) -> bool:
        first = ids[:1]
        return bool(self._news.cards(first) or self._pool.places(first))

    def _keep(self, name: str, kept: _StoredList) -> None:
        before = None if kept.before is None else kept.before.isoformat()
        value = {"made_at": kept.made_at.isoformat(), "ids": kept.ids, "before": before}
        self._preferences.set(PREFERENCE + name, value)


def came_since(moment: datetime, cards: Sequence[NewsCard], news: NewsStore, older: timedelta) -> frozenset[str]:
    """Return ids of cards that reached this device after a moment.

    Only cards published at most `older` before that moment count.
    """
    recent = [card.id for card in cards if card.counted_at > moment - older]
    return frozenset(news.arrived_since(moment, recent))


@dataclass(frozen=True)
class _StoredList:
    """ids: empty if the reader asked for a new list. before: when the previous list was made."""

    made_at: datetime
    ids: list[str]
    before: datetime | None


def _read(kept: Any) -> _StoredList | None:
    """Return the stored list.

    None if it is unreadable, since a new list is better than a failing page.
    """
    try:
        times = [datetime.fromisoformat(kept["made_at"])]
        if kept.get("before"):
            times.append(datetime.fromisoformat(kept["before"]))
        ids = [str(one) for one in kept["ids"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return None if any(at.tzinfo is None for at in times) else _StoredList(times[0], ids, dict(enumerate(times)).get(1))
