"""Opening a story: the click, its text, why it was there, what lies near it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import numpy as np

from device_app.feed.bodies import Bodies
from device_app.feed.candidates import Candidates, unit
from device_app.feed.exclusions import allowed, one_of_each
from device_app.feed.item import Article, text_of
from device_app.feed.kinship import Kinship, floor_of
from device_app.feed.preference_reader import named
from device_app.feed.preferences import UserPreferences
from device_app.feed.serving import Serving
from device_app.feed.viewing import Viewing
from device_app.interests.searched import SearchedInterests
from device_app.store.pool_codes import PoolBlock
from device_app.stores import DeviceStores
from device_app.wire.news import NewsCard

RELATED = 4
LOOKED_AT = 60
"""News that are looked at for those, nearest first."""


class Stories:
    """Opens stories. Everything comes from the device; nothing is asked of the backend for one story.

    Where the reader chose that this device finds news by itself, they have no text yet: that of the whole block of the
    pool is asked for then.
    """

    def __init__(
        self,
        stores: DeviceStores,
        serving: Serving,
        bodies: Bodies,
        searched: SearchedInterests,
        viewing: Viewing,
        wait_sec: float,
        clock: Callable[[], datetime],
    ) -> None:
        self._stores = stores
        self._serving = serving
        self._bodies = bodies
        self._searched = searched
        self._viewing = viewing
        self._wait_sec = wait_sec
        self._clock = clock

    def open(self, news_id: str, feed_id: str | None, *, found: bool = False, clicked: bool = True) -> Article:
        """Commit the click, then return the story. Raises UnknownNews, and then there is no click.

        found: it was opened from the results of a search, which that view remembers as well. clicked: whether the
        reader followed a link to it; if not, nothing is recorded, and no text is asked for.

        Waits for its text only while the list it came with is being fetched, and at most `wait_sec`.
        """
        card = self._stores.news.card(news_id)
        if feed_id and not self._stores.impressions.served(feed_id):
            feed_id = None  # never made here, or erased while its page stood open: it was opened outside of any feed
        if clicked:
            self._stores.clicks.add(news_id, feed_id, self._clock())
            if feed_id:
                self._viewing.opened(feed_id, news_id)
            if found:
                self._remember_found(news_id)
        item = self._serving.item(feed_id, news_id)
        body = self._stores.news.body(news_id)
        if body is None and clicked:
            block = self._block(news_id)
            if block is not None:
                self._bodies.want_block(block)
            self._bodies.wait_for(news_id, self._wait_sec)
            body = self._stores.news.body(news_id)
        reactions = self._stores.feedback.reactions()
        paragraphs, ending = text_of(body)
        return Article(
            card=card,
            paragraphs=paragraphs,
            reason=item.reason if item else None,
            related=self.related(news_id),
            reactions=frozenset(one.kind for one in reactions if one.news_id == news_id),
            feed_id=feed_id,
            ending=ending,
        )

    def _block(self, news_id: str) -> PoolBlock | None:
        """What to ask the text of an opened story among; None where it may not be asked for.

        Only a reader who chose that news is found on the device has been told that opening one may ask for a block. The
        text of news on the default list comes with that list, or doesn't: the server decides which it gives.
        """
        listed = self._stores.default_list.current()
        if not self._serving.feed_context.recall.finds_here() or (listed and news_id in listed.news_ids):
            return None
        return self._stores.pool.block(news_id)

    def _remember_found(self, news_id: str) -> None:
        self._stores.searches.opened(news_id, self._clock())
        models = self._serving.loaded()
        if models is not None:
            self._searched.keep_opened(news_id, models.encoder)

    def related(self, news_id: str) -> tuple[NewsCard, ...]:
        """The nearest news of the default list and the last answer by cosine, one a story, none ruled out.

        Only what is close enough to say so (`feed.kinship`): of some news nothing is related.
        """
        models = self._serving.loaded()
        if models is None:
            return ()
        present, vectors = self._stores.news.vectors([news_id], models.encoder)
        if not present.any():
            return ()
        feed_context = self._serving.feed_context
        default_list = feed_context.default_list.candidates(models.encoder, models.dimensions)
        near = feed_context.recall.known(default_list)
        kinship = Kinship(near, floor_of(models.manifest, default_list))
        near = near.only(allowed(near, self._ruled_out(near, news_id)))
        scores = (near.unit_vectors @ unit(vectors)[0]).astype(np.float64)
        best = np.argsort(-scores, kind="stable")[:LOOKED_AT]
        nearest, nearest_scores = near.only(best), scores[best]
        single = nearest.only(one_of_each(nearest, nearest_scores))
        kin = kinship.of(self._stores.news.card(news_id), vectors[0], single.cards, single.vectors)
        return tuple(single.cards[one.row] for one in kin[:RELATED])

    def _ruled_out(self, near: Candidates, news_id: str) -> UserPreferences:
        """Only what the reader blocked or waved away, and the story itself."""
        empty = near.vectors[:0]
        return UserPreferences(
            clicks=(),
            click_vectors=empty,
            click_interests=(),
            liked_cards=(),
            liked=empty,
            disliked=empty,
            opened=frozenset({news_id}),
            disliked_ids=frozenset(one.news_id for one in self._stores.feedback.reactions("less")),
            blocked=named(self._stores.stances.blocked()),
        )
