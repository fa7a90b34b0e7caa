"""The saved list: searches and followed topics, what is new in each, and what they are used for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from device_app.privacy.modes import MODES
from device_app.settings import PrivacySettings
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


def searches_view(stores: DeviceStores, settings: PrivacySettings) -> SearchesView:
    """Counts at most two hundred stories each."""
    return SearchesView(
        searches=tuple(_line(stores, one) for one in reversed(stores.searches.saved())),
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


def _line(stores: DeviceStores, search: SavedSearch) -> SearchLine:
    found = stores.search_index.find(search.words, COUNTED)
    new = sum(card.published_at > search.looked_at for card in stores.news.cards(found))
    return SearchLine(search, len(found), new)
