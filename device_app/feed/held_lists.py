"""Lists that hold still: Fresh, Explore, Popular, Following, Saved and what a search found stay as they were shown
until another is asked for."""

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
from device_app.wire.news import NewsCard

NAME_FORM = r"fresh|explore|popular|following|saved|(?:topic|section|publisher)/[\s\S]{1,120}"
"""Names of lists: of a page, or of all that has a topic, a section or a publisher."""
FOUND = "search/"
RENEWED_FORM = rf"{NAME_FORM}|{FOUND}[\s\S]{{1,{WORDS_LIMIT_CHARS}}}"
"""Names of lists of which another may be asked for: what a search found is one, too."""
FoundPart = Literal["found", "near"]
FOUND_KEPT = 16
"""Results that are held at once, of eight searches and what is near them."""
PREFERENCE = "list/"


@dataclass(frozen=True)
class HeldList:
    """A list as it was made, in its order.

    new: how many stories it would have now that are not in it. came: ids of those in it that came to this device since
    its reader was shown the list before it; none in a first list.
    """

    made_at: datetime
    cards: tuple[NewsCard, ...]
    new: int = 0
    came: frozenset[str] = frozenset()


@dataclass(frozen=True)
class HeldResults:
    """Ids of all that a search found, in their order. new: how many it would find now besides."""

    made_at: datetime
    ids: tuple[str, ...]
    new: int = 0


class HeldLists:
    """Keeps the ids of each list for so many hours, over restarts too. An erase takes them. Safe for several threads.

    What a search found is kept in memory alone, under a hash of its words by a key of this process: a search that is
    not saved is on no disk.

    Args:
        hours: older lists are made afresh at the next visit, as a page of the feed is.
    """

    def __init__(self, stores: DeviceStores, hours: float, clock: Callable[[], datetime]) -> None:
        self._preferences, self._news, self._pool = stores.preferences, stores.news, stores.pool
        self._longest, self._clock = timedelta(hours=hours), clock
        self._lock = RLock()
        self._found: dict[bytes, HeldResults] = {}
        self._key = secrets.token_bytes(32)

    @contextmanager
    def still(self) -> Iterator[None]:
        """What is found in the block is kept in it, in memory or on the disk, or else everything is erased in it: an
        erase takes what was found before it, and what is found after it knows nothing of before."""
        with self._lock:
            yield

    def hold(self, name: str, listed: Sequence[NewsCard], *, whole: bool = True) -> HeldList:
        """The list in use; `listed`, which is what it would be now, where there is none, an empty or an old one.

        A story that is hidden meanwhile keeps its place; one that has left this device doesn't. whole: False where
        `listed` lacks what will be back in a moment, so that it is not kept; nor is one whose stories everything was
        erased with meanwhile. Raises ValueError for a name of another form.
        """
        if not re.fullmatch(NAME_FORM, name):
            raise ValueError(f"name: {name[:40]!r} is no list's")
        with self._lock:
            kept = _read(self._preferences.get(PREFERENCE + name))
            if kept is None or not kept.ids or not abs(self._clock() - kept.made_at) < self._longest:
                made_at, before = self._clock(), None if kept is None else kept.made_at
                if whole and self._are_here(listed):
                    self._keep(name, _StoredList(made_at, [card.id for card in listed], before))
                return HeldList(made_at, tuple(listed), came=self._came(listed, before))
        here = {card.id: card for card in listed}
        here |= {card.id: card for card in self._news.cards([one for one in kept.ids if one not in here])}
        places = self._pool.places([one for one in kept.ids if one not in here])
        here |= {card.id: card for card in self._pool.cards(places.values())}
        shown = tuple(here[one] for one in kept.ids if one in here)
        new = len({card.id for card in listed}.difference(kept.ids))
        return HeldList(kept.made_at, shown, new, self._came(shown, kept.before))

    def hold_found(
        self, words: str, found: Sequence[str], part: FoundPart = "found", *, whole: bool = True
    ) -> HeldResults:
        """The results in use; `found`, which is what these words find now, where there are none or old ones. whole: see
        `hold`."""
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

    def forget(self) -> None:
        """Drop what searches found: the reader erases what there is."""
        with self._lock:
            self._found.clear()

    def renew(self, name: str) -> None:
        """The reader asks for another: the next visit makes it. Raises ValueError for a name of another form."""
        if not re.fullmatch(RENEWED_FORM, name):
            raise ValueError(f"name: {name[:40]!r} is no list's")
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

    def _are_here(self, listed: Sequence[NewsCard]) -> bool:
        first = [card.id for card in listed[:1]]
        return bool(self._news.cards(first) or self._pool.places(first))

    def _keep(self, name: str, kept: _StoredList) -> None:
        before = None if kept.before is None else kept.before.isoformat()
        value = {"made_at": kept.made_at.isoformat(), "ids": kept.ids, "before": before}
        self._preferences.set(PREFERENCE + name, value)

    def _came(self, cards: Sequence[NewsCard], before: datetime | None) -> frozenset[str]:
        if before is None:
            return frozenset()
        return came_since(before, cards, self._news, self._longest)


def came_since(moment: datetime, cards: Sequence[NewsCard], news: NewsStore, older: timedelta) -> frozenset[str]:
    """Ids of the cards that first came to this device after a moment, and were published at most so long before it."""
    recent = [card.id for card in cards if card.published_at > moment - older]
    return frozenset(news.arrived_since(moment, recent))


@dataclass(frozen=True)
class _StoredList:
    """ids: none where another list was asked for. before: when the list before it was made."""

    made_at: datetime
    ids: list[str]
    before: datetime | None


def _read(kept: Any) -> _StoredList | None:
    """What is kept of a list; None for what can't be read, since another list beats a page that fails."""
    try:
        times = [datetime.fromisoformat(kept["made_at"])]
        if kept.get("before"):
            times.append(datetime.fromisoformat(kept["before"]))
        ids = [str(one) for one in kept["ids"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return None if any(at.tzinfo is None for at in times) else _StoredList(times[0], ids, dict(enumerate(times)).get(1))
