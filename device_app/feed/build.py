"""The whole serve flow, from the reader's clicks to the page, in one function."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from device_app.errors import BackendRefused, BackendUnreachable
from device_app.feed.blocked import allowed
from device_app.feed.candidates import Candidates, nothing
from device_app.feed.freshness import age_hours
from device_app.feed.front import FrontList
from device_app.feed.item import Feed, FeedItem
from device_app.feed.kept import KeptFeeds
from device_app.feed.models import ServingModels
from device_app.feed.popular import Popular
from device_app.feed.reasons import reasons
from device_app.feed.recall import Found, Recall
from device_app.feed.scores import adjusted
from device_app.feed.seen import unseen
from device_app.feed.situation import situation
from device_app.feed.slots import placed
from device_app.feed.taste_reader import TasteReader
from device_app.feed.tastes import Tastes
from device_app.feed.views import ViewsOfReader
from device_app.interests.profile import named_profile
from device_app.settings import FeedSettings, PerformanceSettings
from device_app.store.impressions import Impressions
from device_app.store.private_parameters import PrivateParameters
from device_app.wire.timing import Stopwatch

ALL_SEEN = "You have seen all there is now; older items come back."
EMPTY = "There is no news on this device yet."


@dataclass(frozen=True)
class FeedDesk:
    """What a feed is built with."""

    tastes: TasteReader
    impressions: Impressions
    front: FrontList
    recall: Recall
    views: ViewsOfReader
    own: PrivateParameters
    popular: Popular
    kept: KeptFeeds
    performance: PerformanceSettings
    weights: FeedSettings
    chance: random.Random
    clock: Callable[[], datetime]


def build_feed(desk: FeedDesk, models: ServingModels) -> Feed:
    """Build, save and return a feed: nothing is shown that was not recorded as shown.

    clicks -> interest clusters -> report (the one in use, or a fresh one) -> recall -> filters -> local ranking ->
    variety -> slots. When the backend does not answer or has too much to do, the last feed comes back, mode 'offline'.
    """
    now, watch = desk.clock(), Stopwatch()

    with watch.stage("store"):  # what the reader did; all of it stays in these variables
        reading = desk.tastes.reading(models.encoder)
        tastes = desk.tastes.tastes(reading, models.encoder, models.dimensions)
        front = desk.front.candidates(models.encoder, models.dimensions)

    with watch.stage("cluster"):  # ALGORITHMS 2.3, steps 1 and 2
        contexts = models.recall.contexts(tastes.click_vectors)
        labels = models.recall.clusters(contexts)
        profile = named_profile(reading.active, reading.muted, labels, reading.kept)
        tastes = replace(tastes, click_interests=profile.click_names)

    try:  # steps 3 to 5 and the request; the only lines that may cause anything to be sent
        found = desk.recall.find(models, tastes.click_vectors, contexts, labels, watch)
    except BackendUnreachable as unreachable:
        return desk.kept.offline(unreachable)
    except BackendRefused as busy:
        if desk.kept.last() is not None:
            return desk.kept.offline(busy)
        words = f"{busy} This feed was ranked from the common list."
        found = Found(nothing(models.encoder, models.dimensions), "front", words)

    with watch.stage("rank"):
        offered = desk.recall.joined(found.candidates, front)
        seen_since = now - timedelta(days=desk.performance.seen_days)
        seen = desk.impressions.seen_among((card.id for card in offered.cards), seen_since)
        candidates, seen_all = _showable(offered, tastes, seen, desk.performance.feed_size)
        popular = desk.popular.of(candidates)
        beside = situation(candidates, tastes, now, desk.weights, popular)
        ranker = models.ranker.with_views(lambda model: desk.views.given(model, models.encoder))
        ranker = ranker.with_own(lambda model: desk.own.get(model, models.encoder))
        fit = ranker.score(tastes.click_vectors, candidates.vectors, beside)
        scores = adjusted(
            fit, candidates, tastes, now, desk.weights, weighed=models.ranker.features, popularity=popular
        )

    with watch.stage("build"):
        page = placed(
            candidates, scores, tastes, now, desk.weights, size=desk.performance.feed_size, chance=desk.chance
        )
        items = tuple(
            FeedItem(candidates.cards[place.row], position, place.slot, reason, float(scores[place.row]))
            for position, (place, reason) in enumerate(zip(page, reasons(candidates, page, tastes), strict=True))
        )

    rows = np.array([place.row for place in page], dtype=np.intp)
    shown = candidates.only(rows)
    feed = Feed(
        feed_id=secrets.token_urlsafe(9),
        made_at=now,
        release=models.release,
        items=items,
        mode=found.mode,
        notice=found.notice or (EMPTY if not items else ALL_SEEN if seen_all else None),
        device_ms=watch.stages_ms,
        server_ms=found.server_ms,
        recalled=len(found.candidates),
        fresh=int(np.count_nonzero(age_hours(shown, now) <= desk.weights.fresh_hours)),
        fresh_hours=desk.weights.fresh_hours,
    )
    feed = desk.kept.save(feed, shown, popular[rows], watch)
    desk.recall.fetch_texts()
    return feed


def _showable(candidates: Candidates, tastes: Tastes, seen: set[str], size: int) -> tuple[Candidates, bool]:
    """What may be shown: nothing ruled out and nothing seen; seen news comes back only where a feed can't be filled."""
    may = allowed(candidates, tastes)
    new = may & unseen(candidates, seen)
    if new.sum() >= size or new.sum() == may.sum():
        return candidates.only(new), False
    return candidates.only(may), True
