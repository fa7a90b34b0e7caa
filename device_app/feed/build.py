"""Builds a feed: the whole path from the reader's clicks to the stored page."""

from __future__ import annotations

import logging
import random
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidate_search import Found, Recall
from device_app.feed.candidates import Candidates
from device_app.feed.exclusions import allowed
from device_app.feed.feature_context import ViewsOfReader, feature_context
from device_app.feed.item import Feed, FeedItem, PageSlot
from device_app.feed.lists import DefaultList, Popular
from device_app.feed.model_cache import LocalRanker, ServingModels
from device_app.feed.page_order import placed
from device_app.feed.preference_reader import PreferenceReader, UserPreferences
from device_app.feed.rare import RareFeeds
from device_app.feed.reasons import reasons
from device_app.feed.recent_feeds import RecentFeeds
from device_app.feed.scores import ScoreTerms, adjusted, age_hours
from device_app.feed.similarity import SimilarityRule, floor_of
from device_app.process import kind_of
from device_app.ranking.ranker import FeatureContext
from device_app.ranking.session import usable
from device_app.reading.interest_profile import named_profile
from device_app.settings import FeedSettings, PerformanceSettings
from device_app.store.impressions import ImpressionStore
from device_app.store.preferences import PrivateParameters
from protocol.server_timing import Stopwatch
from protocol.text_catalogue import TextCatalogue

_log = logging.getLogger(__name__)
NOTICES = TextCatalogue("device_app.feed", "notices.toml")


@dataclass(frozen=True)
class FeedContext:
    """Everything needed to build a feed."""

    user_preferences: PreferenceReader
    impressions: ImpressionStore
    default_list: DefaultList
    recall: Recall
    views: ViewsOfReader
    own: PrivateParameters
    popular: Popular
    rare: RareFeeds
    kept: RecentFeeds
    performance: PerformanceSettings
    weights: FeedSettings
    chance: random.Random
    clock: Callable[[], datetime]


@dataclass(frozen=True)
class Promise:
    """The new stories that a draft of the next page shows, as the page before offers them.

    known: ids of all stories that were new then. placed: those that the page will show, with their slots.
    """

    known: frozenset[str]
    placed: Mapping[str, PageSlot]


def promised(feed_context: FeedContext, models: ServingModels, new: frozenset[str]) -> Promise:
    """Return which of the stories `new` the next page will show.

    Its random draws don't affect those of the pages.
    """
    aside = replace(feed_context, chance=random.Random(0))
    drafted = _drafted(aside, models, None, feed_context.clock(), Stopwatch())
    return Promise(new, {item.card.id: item.slot for item in drafted.page.items if item.card.id in new})


def build_feed(feed_context: FeedContext, models: ServingModels, promise: Promise | None = None) -> Feed:
    """Build, save and return a feed; every story it shows is recorded as served.

    clicks -> interest clusters -> last answer to a report -> filters -> local ranking -> variety -> slots. Building a
    feed sends no request, so the server doesn't learn when a page is made. promise: the page shows these new stories
    and no others that were known when they were offered, except what the reader has opened or hidden since.
    """
    now, watch = feed_context.clock(), Stopwatch()
    drafted = _drafted(feed_context, models, promise, now, watch)
    page, found = drafted.page, drafted.found
    feed = Feed(
        feed_id=secrets.token_urlsafe(9),
        made_at=now,
        release=models.release,
        items=page.items,
        mode=found.mode,
        notice=found.notice or _of_the_page(page, drafted.left_out),
        device_ms=watch.stages_ms,
        recalled=len(found.candidates),
        fresh=int(np.count_nonzero(age_hours(page.shown, now) <= feed_context.weights.fresh_hours)),
        fresh_hours=feed_context.weights.fresh_hours,
        left_out=drafted.left_out,
    )
    return feed_context.kept.save(feed, page.shown, page.popularity, watch)


@dataclass(frozen=True)
class _Drafted:
    """A page that isn't saved, what it was chosen from, and how many stories filters left out."""

    page: RankedPage
    found: Found
    left_out: int


def _drafted(
    feed_context: FeedContext, models: ServingModels, promise: Promise | None, now: datetime, watch: Stopwatch
) -> _Drafted:
    """Return the next page from all candidates and the default list; sends and stores nothing."""

    with watch.stage("store"):  # what the reader did is read here and stays in these variables
        reading = feed_context.user_preferences.reading(models.encoder)
        user_preferences = feed_context.user_preferences.user_preferences(reading, models.encoder, models.dimensions)
        default_list = feed_context.default_list.candidates(models.encoder, models.dimensions)

    with watch.stage("cluster"):  # Uni-FedRec, "Interest Modeling"
        contexts = models.recall.contexts(user_preferences.click_vectors)
        labels = models.recall.clusters(contexts)
        profile = named_profile(reading.active, reading.muted, labels, reading.kept)
        user_preferences = replace(user_preferences, click_interests=profile.click_names)

    found = feed_context.recall.find(models, user_preferences.click_vectors, watch)
    with watch.stage("rank"):
        offered = feed_context.recall.joined(found.candidates, default_list)
        candidates = offered.only(allowed(offered, user_preferences))
    left_out = len(offered) - len(candidates)
    if promise is not None:
        withheld = promise.known.difference(promise.placed)
        candidates = candidates.only(~candidates.named(candidates.ids, withheld))
    size = feed_context.performance.feed_size
    page = ranked_page(
        feed_context, models, candidates, default_list, user_preferences, now, watch, size, promise=promise
    )
    return _Drafted(page, found, left_out)


def _of_the_page(page: RankedPage, left_out: int) -> str | None:
    """Return the notice for this page.

    None if filters removed every story, since the page says so itself.
    """
    if page.items:
        return NOTICES("all_seen") if page.all_seen else None
    return None if left_out else NOTICES("empty")


@dataclass(frozen=True)
class RankedPage:
    """A page's items in order, with their cards and vectors (shown).

    popularity [n] is the known popularity of each. all_seen: whether the reader has seen all of them before.
    """

    items: tuple[FeedItem, ...]
    shown: Candidates
    popularity: NDArray[np.float64]
    all_seen: bool


def ranked_page(
    feed_context: FeedContext,
    models: ServingModels,
    candidates: Candidates,
    default_list: Candidates,
    user_preferences: UserPreferences,
    now: datetime,
    watch: Stopwatch,
    size: int,
    *,
    promise: Promise | None = None,
) -> RankedPage:
    """Return the best page of at most `size` of these candidates; sends and stores nothing.

    The candidates must already be filtered: all of them may be shown.
    """
    with watch.stage("rank"):
        times_seen = _times_seen(feed_context, candidates, now)
        popular = feed_context.popular.of(candidates)
        ranker = models.ranker.with_views(lambda model: feed_context.views.given(model, models.encoder))
        ranker = ranker.with_own(lambda model: feed_context.own.get(model, models.encoder))
        rare = feed_context.rare.of(candidates, now)
        score = scored(ranker, candidates, user_preferences, now, feed_context.weights, popular, times_seen, rare)
        scores = score.total

    with watch.stage("build"):
        similarity = SimilarityRule(candidates, floor_of(models.manifest, default_list))
        page = placed(
            candidates,
            scores,
            user_preferences,
            now,
            feed_context.weights,
            size=size,
            chance=feed_context.chance,
            seen=times_seen > 0,
            similarity=similarity,
            steady=score.total - score.terms["reactions"],
            promised=_rows_promised(candidates, promise),
        )
        recent = age_hours(candidates, now) <= feed_context.weights.fresh_hours
        items = tuple(
            FeedItem(candidates.cards[place.row], position, place.slot, reason, float(scores[place.row]))
            for position, (place, reason) in enumerate(
                zip(page, reasons(candidates, page, user_preferences, score, similarity, recent), strict=True)
            )
        )
    rows = np.array([place.row for place in page], dtype=np.intp)
    all_seen = bool(len(rows)) and bool((times_seen[rows] > 0).all())
    return RankedPage(items, candidates.only(rows), popular[rows], all_seen)


def _rows_promised(candidates: Candidates, promise: Promise | None) -> dict[int, PageSlot]:
    slots = {} if promise is None else promise.placed
    return {row: slots[card.id] for row, card in enumerate(candidates.cards) if card.id in slots} if slots else {}


def scored(
    ranker: LocalRanker,
    candidates: Candidates,
    user_preferences: UserPreferences,
    now: datetime,
    settings: FeedSettings,
    popularity: NDArray[np.float64] | None = None,
    times_seen: NDArray[np.float64] | None = None,
    rare: NDArray[np.float64] | None = None,
) -> ScoreTerms:
    """Return the candidates' scores, term by term, under one reader's ranker.

    popularity, times_seen and rare are as in `adjusted`. If the ranker returns no usable scores, every candidate fits
    equally.
    """
    beside = feature_context(candidates, user_preferences, now, settings, popularity)
    clicks, none = user_preferences.click_vectors, np.zeros(len(candidates), dtype=np.float32)
    fit = usable(lambda: ranker.score(clicks, candidates.vectors, beside), none, "scores of candidates")
    weighed = _weighed(ranker, clicks, candidates, beside)
    return adjusted(
        fit,
        candidates,
        user_preferences,
        now,
        settings,
        weighed=weighed,
        popularity=popularity,
        times_seen=times_seen,
        rare=rare,
    )


def _weighed(
    ranker: LocalRanker, clicks: NDArray[np.float32], candidates: Candidates, beside: FeatureContext
) -> dict[str, NDArray[np.float64]]:
    """Return `LocalRanker.contributions`, or nothing if they are unusable."""
    try:
        with np.errstate(all="ignore"):
            found = ranker.contributions(clicks, candidates.vectors, beside)
    except Exception as fault:  # as in `usable`
        _log.warning("weights of features: the release's model can't be used on what was read: %s", kind_of(fault))
        return {}
    fits = all(each.shape == (len(candidates),) and np.isfinite(each).all() for each in found.values())
    return found if fits else {}


def _times_seen(feed_context: FeedContext, candidates: Candidates, now: datetime) -> NDArray[np.float64]:
    """Return in how many recent feeds the reader saw each candidate, [n]."""
    since = now - timedelta(days=feed_context.performance.seen_days)
    found = feed_context.impressions.times_seen((card.id for card in candidates.cards), since)
    return np.fromiter((found.get(card.id, 0) for card in candidates.cards), dtype=np.float64, count=len(candidates))
