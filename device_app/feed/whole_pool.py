"""All news that is on this device: what its lists brought, and the copy of the pool where one is kept. Nothing is asked
of anybody for it, so that nobody learns which topic was opened or what was searched for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from device_app.feed.broadcast import PoolBroken
from device_app.feed.preference_reader import named
from device_app.feed.serving import Serving
from device_app.store.news import Naming
from device_app.stores import DeviceStores
from device_app.wire.news import NewsCard

SEARCH_LIMIT = 50
LISTED = 300
"""Most stories of one topic, section or publisher, the newest."""


class WholePool:
    """Lists news by what names it. Safe for several threads."""

    def __init__(self, stores: DeviceStores, serving: Serving, clock: Callable[[], datetime]) -> None:
        self._stores, self._serving, self._clock = stores, serving, clock

    def size(self) -> int | None:
        """How many news the copy of the pool holds; None where none is kept that the release in use can read."""
        models, kept = self._serving.loaded(), self._stores.pool.current()
        ready = models is not None and self._serving.feed_context.recall.broadcast.ready(models.encoder)
        return kept.listing.count if ready and kept is not None else None

    def named(self, kind: Naming, name: str) -> list[NewsCard]:
        """The newest news of a topic, section or publisher, newest first, without what the reader hides otherwise."""
        blocked = named(self._stores.stances.blocked())
        found = {card.id: card for card in self._pool_named(kind, name)}
        found |= {card.id: card for card in self._stores.news.cards(self._stores.news.named(kind, name, LISTED))}
        shown = [
            card
            for card in found.values()
            if (kind == "topic" or card.topic not in blocked.topics)
            and (kind == "section" or card.section not in blocked.sections)
            and (kind == "publisher" or card.publisher not in blocked.publishers)
        ]
        return sorted(shown, key=lambda card: (card.published_at, card.id), reverse=True)[:LISTED]

    def search(self, text: str) -> list[NewsCard]:
        """News that has every word of `text`, best first."""
        self._stores.searches.looked(text, self._clock())
        return self._stores.news.cards(self._stores.search_index.find(text, SEARCH_LIMIT))

    def show(self, cards: Sequence[NewsCard]) -> None:
        """These are laid out: what of them only the pool's copy has goes to the other news, with its vector as coded,
        so that it can be opened and reacted to as any."""
        models = self._serving.loaded()
        missing = set(self._stores.news.missing([card.id for card in cards]))
        if models is None or not missing:
            return
        taken = [card for card in cards if card.id in missing]
        broadcast = self._serving.feed_context.recall.broadcast
        try:
            vectors = broadcast.coded([card.id for card in taken], models.encoder, models.dimensions)
        except PoolBroken:
            broadcast.discard()
            return
        self._stores.news.put(taken, vectors, models.encoder, self._clock())

    def _pool_named(self, kind: Naming, name: str) -> list[NewsCard]:
        return [] if self.size() is None else self._stores.pool.named(kind, name, LISTED)
