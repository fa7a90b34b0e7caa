"""Measures how well releases match the interests of a fleet's simulated readers.

Only this process knows these interests. Readers are frozen for this: their clicks, the other articles on their device
and the time are stored at the first release, and every later release ranks the same articles for the same clicks. Only
the release differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.device import Device
from device_app.errors import DeviceError
from device_app.feed.build import scored
from device_app.feed.candidates import Candidates
from device_app.feed.exclusions import allowed
from device_app.feed.preference_reader import UserPreferences
from device_app.fleet.fleet import Member
from device_app.fleet.simulated_interests import SimulatedInterests
from protocol.fleet_figures import InterestCurve, InterestPoint
from protocol.news import NewsCard

Floats = NDArray[np.float64]

NEWS_MOST = 300
NEWS_LEAST = 50
"""A reader with fewer articles to rank is left out."""
READERS_LEAST = 8
"""With fewer readers there is no meaningful interval."""
PAGE = 20
TRIES = 3
"""A release with too few readers to measure is given up after this many tries."""
INTERVAL = 1.96


@dataclass(frozen=True)
class FrozenReader:
    """One reader's state when first measured.

    Args:
        preferences: clicks and choices, with the vectors of the release that was in use.
        news: the n cards on its device that it had not opened.
        popularity: [n], as known to its device at that time.
        chances: [n], the probability of opening each at the head of a page: its known interest.
        at: the time of measurement, from which recency is computed.
    """

    preferences: UserPreferences
    news: tuple[NewsCard, ...]
    popularity: Floats
    chances: Floats
    at: datetime

    @classmethod
    def of(cls, device: Device, interests: SimulatedInterests) -> FrozenReader | None:
        """Return the reader's current state; None without clicks or with too few other articles.

        Raises NoRelease or ReleaseRefused.
        """
        serving, stores = device.parts.serving, device.parts.stores
        known, preferences = serving.known_news()
        here, _ = stores.news.vectors([card.id for card in known.cards], known.encoder)
        rows = np.flatnonzero(allowed(known, preferences) & here)
        # Sample evenly over the whole list: its head is what the release in use then considered best.
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(NEWS_MOST, len(rows))).astype(np.int64))]
        sample = known.only(rows)
        if len(sample) < NEWS_LEAST or not preferences.clicks:
            return None
        chances = np.array([interests.chance_at_head(card) for card in sample.cards])
        popularity = serving.feed_context.popular.of(sample)
        return cls(preferences, sample.cards, popularity, chances, serving.feed_context.clock())

    def marks(self, device: Device) -> Mapping[str, float] | None:
        """Return each measure under the device's release; None if some of its vectors are missing.

        It needs vectors of the same clicks and articles. Raises NoRelease or ReleaseRefused.
        """
        serving, news = device.parts.serving, device.parts.stores.news
        models, context = serving.models(), serving.feed_context
        clicked, clicks = news.vectors([card.id for card in self.preferences.clicks], models.encoder)
        here, vectors = news.vectors([card.id for card in self.news], models.encoder)
        if not (clicked.all() and here.all()):
            return None
        ranker = models.ranker.with_views(lambda model: context.views.given(model, models.encoder))
        ranker = ranker.with_own(lambda model: context.own.get(model, models.encoder))
        found = scored(
            ranker,
            Candidates(self.news, vectors, models.encoder),
            replace(self.preferences, click_vectors=clicks),
            self.at,
            context.weights,
            self.popularity,
        ).total
        return {"auc": expected_auc(self.chances, found), "ndcg": ndcg(self.chances, found, PAGE)}


@dataclass
class InterestMatch:
    """Measures a fleet's readers once per release. Use from one thread.

    Args:
        clock: returns the time that `since` records.
    """

    clock: Callable[[], datetime]
    since: datetime | None = None
    _standing: dict[str, FrozenReader] = field(default_factory=dict)
    _marks: dict[str, dict[str, Mapping[str, float]]] = field(default_factory=dict)
    """By release in order, then by reader."""
    _tries: Counter[str] = field(default_factory=Counter)

    def ask(self, members: Sequence[Member]) -> bool:
        """Measure the release that most readers hold; return whether there is a new result.

        A reader with another release, or one that can't be measured under both this and the first release, is left out.
        If too few remain because the stored articles are gone, everything starts over with this release.
        """
        held = [(member, _release(member.device)) for member in members if member.interests is not None]
        names = [name for _, name in held if name is not None]
        newest = max(names, key=names.count, default=None)
        if newest is None or newest in self._marks or self._tries[newest] == TRIES:
            return False
        self._tries[newest] += 1
        holders = [member for member, name in held if name == newest]
        found = self._found(holders)
        if len(found) < READERS_LEAST and self._marks:
            self._standing, self._marks = {}, {}
            found = self._found(holders)
        if len(found) < READERS_LEAST:
            return False
        self.since = self.since if self._marks else self.clock()
        self._marks[newest] = found
        return True

    def _found(self, members: Sequence[Member]) -> dict[str, Mapping[str, float]]:
        marks = {member.device.settings.profile: self._of(member) for member in members}
        return {reader: each for reader, each in marks.items() if each is not None}

    def curves(self) -> tuple[InterestCurve, ...]:
        """Return one curve per measure; empty before the first release was measured."""
        if not self._marks:
            return ()
        first = next(iter(self._marks.values()))
        news = float(np.mean([len(self._standing[reader].news) for reader in first]))
        return tuple(
            InterestCurve(
                measure=measure,
                news=news,
                points=tuple(
                    point(release, [(marks[reader][measure], first[reader][measure]) for reader in marks])
                    for release, marks in self._marks.items()
                ),
            )
            for measure in next(iter(first.values()))
        )

    def _of(self, member: Member) -> Mapping[str, float] | None:
        reader, has_marks = member.device.settings.profile, bool(self._marks)
        try:
            if not has_marks and member.interests is not None:
                standing = FrozenReader.of(member.device, member.interests)
                if standing is not None:
                    self._standing[reader] = standing
            standing_interests = self._standing.get(reader)
            if standing_interests is None or (has_marks and reader not in next(iter(self._marks.values()))):
                return None
            return standing_interests.marks(member.device)
        except DeviceError:
            return None  # it has no usable release: it is measured under the next


def point(release: str, pairs: Sequence[tuple[float, float]]) -> InterestPoint:
    """Return one release's point of a curve: mean value, and mean gain with its interval.

    pairs: one measure of each reader under this release and under the first; at least two.
    """
    values = np.array(pairs)
    gains = values[:, 0] - values[:, 1]
    within = INTERVAL * float(gains.std(ddof=1)) / len(gains) ** 0.5
    gain = float(gains.mean())
    return InterestPoint(
        release=release,
        readers=len(gains),
        value=float(values[:, 0].mean()),
        gain=gain,
        low=gain - within,
        high=gain + within,
    )


def expected_auc(chances: Floats, scores: Floats) -> float:
    """Return the expected AUC: how often an article that would be opened scores higher.

    It is an expectation over what is opened, so nothing is drawn. Ties count half.
    """
    order = np.argsort(scores, kind="stable")
    opened, left = chances[order], 1 - chances[order]
    _, group = np.unique(scores[order], return_inverse=True)
    left_at, opened_at = np.bincount(group, left), np.bincount(group, opened)
    below = np.cumsum(left_at) - left_at
    itself = float((opened * left).sum())
    won = float((opened_at * (below + left_at / 2)).sum()) - itself / 2
    return won / (float(opened.sum() * left.sum()) - itself)


def ndcg(gains: Floats, scores: Floats, depth: int) -> float:
    """Return the normalised discounted cumulative gain of the best `depth`.

    1 means that the articles most likely to be opened come first.
    """
    fade = 1 / np.log2(np.arange(2, depth + 2))
    best, found = np.sort(gains)[::-1][:depth], gains[np.argsort(-scores, kind="stable")[:depth]]
    return float((found * fade[: len(found)]).sum() / (best * fade[: len(best)]).sum())


def _release(device: Device) -> str | None:
    held = device.release()
    return None if held is None else held.manifest.release
