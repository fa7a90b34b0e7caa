"""Opens stories, and records which stories of a feed the reader saw.

Opening a story records the click and gives its text, its reason and related stories. A story that was seen is ranked
lower in later feeds, and only then. With script, the page reports which cards had half their area in view for a second.
Without script, an opened story counts as seen, and so do the cards above it in its column.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Lock

import numpy as np

from device_app.feed.bodies import Bodies
from device_app.feed.candidates import Candidates, unit
from device_app.feed.exclusions import allowed, one_of_each
from device_app.feed.item import Article, Feed, PageSlot, text_of
from device_app.feed.preference_reader import UserPreferences, named
from device_app.feed.serving import Serving
from device_app.feed.similarity import SimilarityRule, floor_of, is_by_meaning
from device_app.reading.searched_interests import SearchedInterests
from device_app.store.impressions import ImpressionStore
from device_app.store.pool_codes import PoolBlock
from device_app.stores import DeviceStores
from protocol.news import NewsCard

MAIN_COLUMN: tuple[PageSlot, ...] = ("lead", "for_you", "more")
"""The slots of the main column; the others are in a second column on a wide page.

A reader who goes down one column doesn't pass the stories of the other.
"""
WATCHED_KEPT = 100


class Viewing:
    """Records which stories of feeds were seen; thread-safe."""

    def __init__(
        self,
        impressions: ImpressionStore,
        feed: Callable[[str], Feed | None],
        clock: Callable[[], datetime],
    ) -> None:
        """Create it. feed: returns a feed by its id, or None if it isn't stored."""
        self._impressions, self._feed, self._clock = impressions, feed, clock
        self._watched: dict[str, None] = {}
        self._lock = Lock()

    def report(self, feed_id: str, news_ids: Sequence[str]) -> int:
        """Record stories that a page's script saw in view; return how many weren't recorded before.

        news_ids may be empty: the script then only announces itself.
        """
        if not self._impressions.served(feed_id):  # not served here, or erased while its page was open
            return 0
        with self._lock:
            self._watched[feed_id] = None
            for oldest in list(self._watched)[:-WATCHED_KEPT]:
                del self._watched[oldest]
        return self._impressions.view(feed_id, news_ids, self._clock()) if news_ids else 0

    def forget(self) -> None:
        """Forget which pages' scripts reported, because the reader erases everything."""
        with self._lock:
            self._watched.clear()

    def opened(self, feed_id: str, news_id: str) -> None:
        """Record an opened story as seen, and the stories above it if no script watches the page."""
        with self._lock:
            watched = feed_id in self._watched
        passed = () if watched else self._above(feed_id, news_id)
        self._impressions.view(feed_id, (*passed, news_id), self._clock())

    def _above(self, feed_id: str, news_id: str) -> tuple[str, ...]:
        feed = self._feed(feed_id)
        items = feed.items if feed else ()
        at = next((item for item in items if item.card.id == news_id), None)
        if at is None:
            return ()
        in_main = at.slot in MAIN_COLUMN
        column = (item for item in items if (item.slot in MAIN_COLUMN) == in_main)
        return tuple(item.card.id for item in column if item.position < at.position)


RELATED = 4
LOOKED_AT = 60
"""Number of nearest articles from which the related ones are chosen."""


class Stories:
    """Opens stories. Everything comes from the device; no request asks the server for one story.

    If this device searches the pool itself, the articles it finds have no text yet; then the texts of the whole block
    of the pool are requested.
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
        self._stores, self._serving, self._bodies, self._searched = stores, serving, bodies, searched
        self._viewing, self._wait_sec, self._clock = viewing, wait_sec, clock

    def open(self, news_id: str, feed_id: str | None, *, found: bool = False, clicked: bool = True) -> Article:
        """Record the click, then return the story. Raises NewsNotHere; then no click is recorded.

        found: it was opened from search results, so it is also recorded in the view of searches. clicked: whether the
        reader followed a link to it; if not, nothing is recorded and no text is requested. Waits for its text only
        while its list is being fetched, at most `wait_sec`.
        """
        if clicked:
            self.click(news_id, feed_id, found=found)
        card, feed_id = self._stores.news.card(news_id), self._served(feed_id)
        item = self._serving.item(feed_id, news_id)
        body = self._stores.news.body(news_id)
        if body is None:
            self._bodies.wait_for(news_id, self._wait_sec)
            body = self._stores.news.body(news_id)
        reactions = self._stores.feedback.reactions()
        pieces, ending = text_of(body, card.abstract)
        return Article(
            card=card,
            pieces=pieces,
            reason=item.reason if item else None,
            related=self.related(news_id),
            reactions=frozenset(one.kind for one in reactions if one.news_id == news_id),
            feed_id=feed_id,
            ending=ending,
        )

    def click(self, news_id: str, feed_id: str | None, *, found: bool = False) -> None:
        """Record the click, and request the story's text if allowed.

        Raises NewsNotHere; then no click is recorded.
        """
        self._stores.news.card(news_id)
        feed_id = self._served(feed_id)
        with self._stores.database.transaction():
            self._stores.clicks.add(news_id, feed_id, self._clock())
            self._stores.read_marks.opened(news_id, self._clock())
        if feed_id:
            self._viewing.opened(feed_id, news_id)
        if found:
            self._remember_found(news_id)
        block = self._block(news_id) if self._stores.news.body(news_id) is None else None
        if block is not None:
            self._bodies.want_block(block)

    def _served(self, feed_id: str | None) -> str | None:
        """Return the feed's id; None for a feed never served here or erased while its page was open."""
        return feed_id if feed_id and self._stores.impressions.served(feed_id) else None

    def _block(self, news_id: str) -> PoolBlock | None:
        """Return the block to fetch an opened story's text with; None if no request is allowed.

        Only a reader who chose to find articles on the device was informed that opening one may request a block. The
        texts of articles on the default list come with that list or not at all: the server decides.
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
        """Return the nearest articles of the default list and last answer, one per story.

        Includes only articles that are similar enough (`feed.similarity`), by more than a name, and not excluded by the
        reader, so there may be none.
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
        floor = floor_of(models.manifest, default_list)
        similarity = SimilarityRule(near, floor)
        near = near.only(allowed(near, self._ruled_out(near, news_id)))
        scores = (near.unit_vectors @ unit(vectors)[0]).astype(np.float64)
        best = np.argsort(-scores, kind="stable")[:LOOKED_AT]
        nearest, nearest_scores = near.only(best), scores[best]
        single = nearest.only(one_of_each(nearest, nearest_scores))
        similar = similarity.of(self._stores.news.card(news_id), vectors[0], single.cards, single.vectors)
        return tuple(single.cards[one.row] for one in [one for one in similar if is_by_meaning(one, floor)][:RELATED])

    def _ruled_out(self, near: Candidates, news_id: str) -> UserPreferences:
        """Return preferences with only what the reader blocked or dismissed, and the story itself."""
        empty = near.vectors[:0]
        return UserPreferences(
            clicks=(),
            click_vectors=empty,
            click_interests=(),
            liked_cards=(),
            liked=empty,
            disliked=empty,
            read=frozenset({news_id}),
            disliked_ids=frozenset(one.news_id for one in self._stores.feedback.reactions("less")),
            blocked=named(self._stores.stances.blocked()),
            hidden_ids=frozenset(self._stores.mute_rules.hidden_among(card.id for card in near.cards)),
        )
