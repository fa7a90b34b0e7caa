"""How well releases meet the tastes of a fleet's simulated readers, which this process alone knows.

Readers stand still for it: what each had clicked, which other news it had on its device and when, is kept from the
first release on, and every later one ranks the same news for the same clicks. What differs then is the release.
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
from device_app.feed.preferences import UserPreferences
from device_app.fleet.fleet import Member
from device_app.fleet.simulated_interests import SimulatedInterests
from device_app.fleet_figures import TasteCurve, TastePoint
from device_app.wire.news import NewsCard

Floats = NDArray[np.float64]

NEWS_MOST = 300
NEWS_LEAST = 50
"""A reader with fewer to be ranked isn't asked."""
READERS_LEAST = 8
"""Of fewer readers no interval could be told."""
PAGE = 20
TRIES = 3
"""A release that so few readers can be asked of is given up after so many."""
INTERVAL = 1.96


@dataclass(frozen=True)
class StandingReader:
    """One reader as it stood when it was first asked.

    Args:
        preferences: clicks and choices; its vectors are of the release of then.
        news: n cards that it had and had not opened.
        popularity: [n], as its device knew it then.
        chances: [n], how likely it opens each at the head of a page: its known taste.
        at: the time of then, by which news are recent.
    """

    preferences: UserPreferences
    news: tuple[NewsCard, ...]
    popularity: Floats
    chances: Floats
    at: datetime

    @classmethod
    def of(cls, device: Device, interests: SimulatedInterests) -> StandingReader | None:
        """Now; None for a reader without clicks, or with too few news beside them. Raises NoRelease,
        ReleaseRefused."""
        serving, stores = device.parts.serving, device.parts.stores
        known, preferences = serving.known_news()
        here, _ = stores.news.vectors([card.id for card in known.cards], known.encoder)
        rows = np.flatnonzero(allowed(known, preferences) & here)
        # Evenly over the whole list: the head of a list is what the release of then thought best.
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(NEWS_MOST, len(rows))).astype(np.int64))]
        asked = known.only(rows)
        if len(asked) < NEWS_LEAST or not preferences.clicks:
            return None
        chances = np.array([interests.chance_at_head(card) for card in asked.cards])
        popularity = serving.feed_context.popular.of(asked)
        return cls(preferences, asked.cards, popularity, chances, serving.feed_context.clock())

    def marks(self, device: Device) -> Mapping[str, float] | None:
        """By measure, under the release that the device holds; None where that one's vectors of the same clicks and
        news are not all here. Raises NoRelease, ReleaseRefused."""
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
class KnownTastes:
    """Asks a fleet's readers once for every release. Used from one thread.

    Args:
        clock: for when it began.
    """

    clock: Callable[[], datetime]
    since: datetime | None = None
    _standing: dict[str, StandingReader] = field(default_factory=dict)
    _marks: dict[str, dict[str, Mapping[str, float]]] = field(default_factory=dict)
    """By release, in their order, by reader."""
    _tries: Counter[str] = field(default_factory=Counter)

    def ask(self, members: Sequence[Member]) -> bool:
        """Of the release that most of the readers hold; whether there is anything new to tell.

        A reader that holds another, or can't be asked under both this one and the first, is left out. Where too few
        are left, since the news of then are gone, all begins anew with this release.
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

    def curves(self) -> tuple[TasteCurve, ...]:
        """One a measure; empty before the first release was measured."""
        if not self._marks:
            return ()
        first = next(iter(self._marks.values()))
        news = float(np.mean([len(self._standing[reader].news) for reader in first]))
        return tuple(
            TasteCurve(
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
        reader, begun = member.device.settings.profile, bool(self._marks)
        try:
            if not begun and member.interests is not None:
                standing = StandingReader.of(member.device, member.interests)
                if standing is not None:
                    self._standing[reader] = standing
            asked = self._standing.get(reader)
            if asked is None or (begun and reader not in next(iter(self._marks.values()))):
                return None
            return asked.marks(member.device)
        except DeviceError:
            return None  # it has no release that it can use: it is asked under the next


def point(release: str, pairs: Sequence[tuple[float, float]]) -> TastePoint:
    """pairs: one measure of each reader under this release, and under the first. At least two."""
    values = np.array(pairs)
    gains = values[:, 0] - values[:, 1]
    within = INTERVAL * float(gains.std(ddof=1)) / len(gains) ** 0.5
    gain = float(gains.mean())
    return TastePoint(
        release=release,
        readers=len(gains),
        value=float(values[:, 0].mean()),
        gain=gain,
        low=gain - within,
        high=gain + within,
    )


def expected_auc(chances: Floats, scores: Floats) -> float:
    """The chance that of two different news, of which the reader would open the one and not the other, the former
    scores higher; an expectation over what it opens, so that nothing is drawn. Ties count half."""
    order = np.argsort(scores, kind="stable")
    opened, left = chances[order], 1 - chances[order]
    _, group = np.unique(scores[order], return_inverse=True)
    left_at, opened_at = np.bincount(group, left), np.bincount(group, opened)
    below = np.cumsum(left_at) - left_at
    itself = float((opened * left).sum())
    won = float((opened_at * (below + left_at / 2)).sum()) - itself / 2
    return won / (float(opened.sum() * left.sum()) - itself)


def ndcg(gains: Floats, scores: Floats, depth: int) -> float:
    """Normalised discounted cumulative gain of the best `depth`: 1 where the reader's likeliest stand first."""
    fade = 1 / np.log2(np.arange(2, depth + 2))
    best, found = np.sort(gains)[::-1][:depth], gains[np.argsort(-scores, kind="stable")[:depth]]
    return float((found * fade[: len(found)]).sum() / (best * fade[: len(best)]).sum())


def _release(device: Device) -> str | None:
    held = device.release()
    return None if held is None else held.manifest.release
