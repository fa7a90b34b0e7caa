"""More at the end of a page of the feed: it grows in its place, and what was added belongs to it from then on."""

from __future__ import annotations

from dataclasses import replace

from device_app.feed.build import FeedContext, ranked_page
from device_app.feed.exclusions import allowed
from device_app.feed.item import Feed
from device_app.feed.model_cache import ServingModels
from device_app.interests.profile import named_profile
from device_app.wire.server_timing import Stopwatch

ADDED = 12
LONGEST = 150
"""Items of a page that has grown; its reader asks for a new one then."""


def grown(feed_context: FeedContext, models: ServingModels, feed: Feed) -> Feed:
    """The feed with the next best stories below what it has, kept so; complete where there are no more.

    They are ranked as a page is, out of the last answer and the default list: nothing is asked of anybody.
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
    known = feed_context.recall.known(default_list)
    ids = frozenset(item.card.id for item in feed.items)
    left = known.only(allowed(known, preferences) & ~known.named(known.ids, ids))
    size = min(ADDED, LONGEST - len(feed.items))
    page = ranked_page(feed_context, models, left, default_list, preferences, now, watch, size)
    first = len(feed.items)
    added = tuple(replace(item, slot="more", position=first + at) for at, item in enumerate(page.items))
    items = (*feed.items, *added)
    longer = replace(feed, items=items, complete=len(added) < ADDED or len(items) >= LONGEST)
    return feed_context.kept.grow(longer, page.shown, page.popularity, now)
