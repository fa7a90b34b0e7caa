"""Extends a feed page at its end; added stories belong to the page from then on."""

from dataclasses import replace

from device_app.feed.build import FeedContext, ranked_page
from device_app.feed.exclusions import allowed
from device_app.feed.item import Feed
from device_app.feed.model_cache import ServingModels
from device_app.reading.interest_profile import named_profile
from protocol.server_timing import Stopwatch

ADDED = 12
LONGEST = 150
"""A page grows to at most this many items; after that the reader asks for a new page."""


def grown(feed_context: FeedContext, models: ServingModels, feed: Feed) -> Feed:
    """Return the feed extended by the next best stories and stored.

    The feed is complete if there are no more. Stories are found and ranked like those of a page, also from the answer
    to a blank report; no request is sent.
    """
    if feed.complete:
        return feed
    now, watch = feed_context.clock(), Stopwatch()
    reading = feed_context.user_preferences.reading(models.encoder)
    preferences = feed_context.user_preferences.user_preferences(reading, models.encoder, models.dimensions)
    labels = models.recall.clusters(models.recall.contexts(preferences.click_vectors))
    names = named_profile(reading.active, reading.muted, labels, reading.kept).click_names
    preferences = replace(preferences, click_interests=names)
    default_list = feed_context.default_list.candidates(models.encoder, models.dimensions)
    found = feed_context.recall.find(models, preferences.click_vectors, watch)
    known = feed_context.recall.joined(found.candidates, feed_context.recall.known(default_list))
    ids = frozenset(item.card.id for item in feed.items)
    left = known.only(allowed(known, preferences) & ~known.named(known.ids, ids))
    size = min(ADDED, LONGEST - len(feed.items))
    page = ranked_page(feed_context, models, left, default_list, preferences, now, watch, size)
    first = len(feed.items)
    added = tuple(replace(item, slot="more", position=first + at) for at, item in enumerate(page.items))
    items = (*feed.items, *added)
    longer = replace(feed, items=items, complete=len(added) < ADDED or len(items) >= LONGEST)
    return feed_context.kept.grow(longer, page.shown, page.popularity, now)
