"""The saved list: searches and followed topics, what is new in each, and what they are used for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from device_app.privacy.modes import MODES
from device_app.settings import PrivacySettings
from device_app.store.rows import to_us
from device_app.store.search_index import WordHit
from device_app.store.searches import SavedSearch
from device_app.stores import DeviceStores

COUNTED = 200


@dataclass(frozen=True)
class SearchLine:
    """A saved search: stories that have its words now, and how many came since the reader last looked."""

    search: SavedSearch
    stories: int
    new: int


@dataclass(frozen=True)
class TopicLine:
    """A followed topic, since when, and how many stories of it are here."""

    name: str
    since: datetime
    stories: int


@dataclass(frozen=True)
class SearchesView:
    """use is 'report', 'here' (recall on this device), or why neither: 'off' by the reader's switch, 'mode'."""

    searches: tuple[SearchLine, ...]
    topics: tuple[TopicLine, ...]
    use: str

    def saved(self, words: str) -> SavedSearch | None:
        """The saved search of these words."""
        plain = " ".join(words.split())
        return next((line.search for line in self.searches if line.search.words == plain), None)


def searches_view(
    stores: DeviceStores, settings: PrivacySettings, hits: Callable[[str], Sequence[WordHit]]
) -> SearchesView:
    """hits: what a search finds now. Of a topic at most two hundred stories are counted."""
    return SearchesView(
        searches=tuple(_line(one, hits(one.words)) for one in reversed(stores.searches.saved())),
        topics=tuple(
            TopicLine(name, since, len(stores.news.named("topic", name, COUNTED)))
            for name, since in stores.stances.followed_topics()
        ),
        use=use_of(settings),
    )


def use_of(settings: PrivacySettings) -> str:
    """What saved searches and followed topics are used for under these switches."""
    if not settings.searches_in_reports:
        return "off"
    mode = MODES[settings.mode]
    if mode.finds == "server" and mode.made_from == "vector":
        return "report"
    return "here" if mode.finds == "here" else "mode"


def _line(search: SavedSearch, hits: Sequence[WordHit]) -> SearchLine:
    looked_us = to_us(search.looked_at)
    return SearchLine(search, len(hits), sum(hit.published_us > looked_us for hit in hits))
