"""The reader's interests: which clicks form one, its label, and whether it is muted.

Names and mutes that the reader sets are stored together with the clicked articles they were set for.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from device_app.reading.interest_labels import distinct_labels
from device_app.store.preferences import Preferences
from protocol.news import NewsCard


@dataclass(frozen=True)
class InterestCluster:
    """One interest of the reader, found by clustering recent clicks.

    Its label never leaves the device. key is stable while the interest keeps some of its clicks. weight is its share of
    the recent clicks (0 to 1, and 0 if muted). headlines are its clicked articles nearest to its centre, best first.
    """

    key: int
    label: str
    named_by_reader: bool
    muted: bool
    weight: float
    clicks: int
    topics: tuple[str, ...]
    headlines: tuple[NewsCard, ...]
    last_click_at: datetime


HEADLINES = 4
TOPICS = 3


@dataclass(frozen=True)
class ClickedNews:
    """A recent click whose card and vector are on the device."""

    click_id: int
    at: datetime
    card: NewsCard
    vector: NDArray[np.float32]


@dataclass(frozen=True)
class InterestChoice:
    """What the reader set for an interest: a name or None, and whether it is muted.

    news_ids are the clicked articles it was set for.
    """

    interest_id: int
    name: str | None
    muted: bool
    news_ids: frozenset[str]


@dataclass(frozen=True)
class Profile:
    """Recent clicks, oldest first, as the feed uses them; muted clicks are separate.

    Muted clicks never enter reports or ranking. labels is [H], the channel of each active click; names has one entry
    per channel.
    """

    active: tuple[ClickedNews, ...]
    muted: tuple[tuple[InterestChoice, tuple[ClickedNews, ...]], ...]
    labels: NDArray[np.int64]
    names: tuple[str, ...]

    @property
    def click_names(self) -> tuple[str, ...]:
        """The label of each active click's interest."""
        return tuple(self.names[label] for label in self.labels)


def without_muted(
    clicks: Sequence[ClickedNews], kept: Sequence[InterestChoice]
) -> tuple[tuple[ClickedNews, ...], tuple[tuple[InterestChoice, tuple[ClickedNews, ...]], ...]]:
    """Split clicks into those that count and those of each muted interest."""
    silent = {news_id for interest in kept if interest.muted for news_id in interest.news_ids}
    groups = tuple(
        (interest, tuple(click for click in clicks if click.card.id in interest.news_ids))
        for interest in kept
        if interest.muted
    )
    return tuple(click for click in clicks if click.card.id not in silent), groups


def named_profile(
    active: Sequence[ClickedNews],
    muted: tuple[tuple[InterestChoice, tuple[ClickedNews, ...]], ...],
    labels: NDArray[np.int64],
    kept: Sequence[InterestChoice],
) -> Profile:
    """Return a profile with a label per channel.

    A channel that matches a named interest gets the reader's name, any other gets a label from its articles.
    """
    groups = _groups(active, labels)
    chosen_names = {channel: interest.name or "" for channel, interest in matched(groups, kept).items()}
    return Profile(tuple(active), muted, labels, distinct_labels([_cards(group) for group in groups], chosen_names))


def matched(groups: Sequence[Sequence[ClickedNews]], kept: Sequence[InterestChoice]) -> Mapping[int, InterestChoice]:
    """Return the named interest of each channel.

    The matching is one to one, by the most shared articles; ties go to the larger channel.
    """
    shared = [
        (len(interest.news_ids & {click.card.id for click in group}), -channel, interest)
        for channel, group in enumerate(groups)
        for interest in kept
        if not interest.muted and interest.name is not None
    ]
    found: dict[int, InterestChoice] = {}
    for overlap, minus_channel, interest in sorted(shared, key=lambda row: row[:2], reverse=True):
        taken = interest.interest_id in {one.interest_id for one in found.values()}
        if overlap and -minus_channel not in found and not taken:
            found[-minus_channel] = interest
    return found


def interest_cards(profile: Profile, kept: Sequence[InterestChoice]) -> tuple[InterestCluster, ...]:
    """Return every interest for the Interests page, heaviest first, muted ones last."""
    groups = _groups(profile.active, profile.labels)
    named_interests = matched(groups, kept)
    total = max(1, len(profile.active))
    cards = [
        _card(group, name, named=channel in named_interests, muted=False, weight=len(group) / total)
        for channel, (group, name) in enumerate(zip(groups, profile.names, strict=True))
    ]
    muted = [(interest.name, clicks) for interest, clicks in profile.muted if clicks]
    names = dict(enumerate(profile.names)) | {len(groups) + at: name for at, (name, _) in enumerate(muted) if name}
    shown = distinct_labels([*map(_cards, groups), *(_cards(clicks) for _, clicks in muted)], names)[len(groups) :]
    cards += [
        _card(clicks, label, named=name is not None, muted=True, weight=0.0)
        for (name, clicks), label in zip(muted, shown, strict=True)
    ]
    return tuple(cards)


def clicks_of(profile: Profile, key: int) -> tuple[ClickedNews, ...]:
    """Return the clicks of the interest that contains click `key`; empty if it isn't recent."""
    groups = [*_groups(profile.active, profile.labels), *(clicks for _, clicks in profile.muted)]
    return next((tuple(group) for group in groups if any(click.click_id == key for click in group)), ())


def _groups(clicks: Sequence[ClickedNews], labels: NDArray[np.int64]) -> list[list[ClickedNews]]:
    groups: list[list[ClickedNews]] = [[] for _ in range(int(labels.max(initial=-1)) + 1)]
    for click, label in zip(clicks, labels, strict=True):
        groups[label].append(click)
    return groups


def _cards(clicks: Sequence[ClickedNews]) -> list[NewsCard]:
    return [click.card for click in clicks]


def _card(clicks: Sequence[ClickedNews], name: str, *, named: bool, muted: bool, weight: float) -> InterestCluster:
    vectors = np.stack([click.vector for click in clicks])
    central = np.argsort(-(vectors @ vectors.mean(axis=0)), kind="stable")
    headlines = {clicks[row].card.id: clicks[row].card for row in central}
    topics = Counter(click.card.topic for click in clicks).most_common(TOPICS)
    return InterestCluster(
        key=min(click.click_id for click in clicks),
        label=name,
        named_by_reader=named,
        muted=muted,
        weight=weight,
        clicks=len(clicks),
        topics=tuple(topic for topic, _ in topics),
        headlines=tuple(headlines.values())[:HEADLINES],
        last_click_at=max(click.at for click in clicks),
    )


PREFERENCE = "interests"
NAME_LIMIT_CHARS = 60


class InterestNames:
    """Stores this reader's named and muted interests; they are few enough to be one preference."""

    def __init__(self, preferences: Preferences) -> None:
        self._preferences = preferences
        self._lock = RLock()

    def kept(self) -> tuple[InterestChoice, ...]:
        """Return all of them, oldest first."""
        return tuple(
            InterestChoice(row["id"], row["name"], row["muted"], frozenset(row["news"]))
            for row in self._preferences.get(PREFERENCE) or []
        )

    def muted(self) -> frozenset[str]:
        """Return the ids of clicked articles in muted interests."""
        return frozenset(news_id for one in self.kept() if one.muted for news_id in one.news_ids)

    def name(self, news_ids: Iterable[str], name: str) -> None:
        """Name the interest that contains these articles; a blank name restores its own label.

        Raises ValueError if the name is longer than 60 characters.
        """
        plain = " ".join(name.split())
        if len(plain) > NAME_LIMIT_CHARS:
            raise ValueError(f"name: {len(plain)} characters, limit {NAME_LIMIT_CHARS}")
        self._say(frozenset(news_ids), name=plain or None)

    def mute(self, news_ids: Iterable[str], muted: bool) -> None:
        """Exclude these articles from reports and ranking, or include them again."""
        self._say(frozenset(news_ids), muted=muted)

    def forget(self, news_ids: Iterable[str]) -> None:
        """Delete the settings for these articles."""
        deleted_ids = frozenset(news_ids)
        with self._lock:
            self._keep([_replaced(one, news_ids=one.news_ids - deleted_ids) for one in self.kept()])

    def _say(self, news: frozenset[str], *, name: str | None = None, muted: bool | None = None) -> None:
        """Store one interest for these articles; they are removed from every other."""
        if not news:
            return
        with self._lock:
            kept = self.kept()
            held = max(kept, key=lambda one: len(one.news_ids & news), default=None)
            known = held is not None and bool(held.news_ids & news)
            choice = InterestChoice(
                interest_id=held.interest_id if known and held else max((k.interest_id for k in kept), default=0) + 1,
                name=(held.name if known and held else None) if muted is not None else name,
                muted=muted if muted is not None else bool(known and held and held.muted),
                news_ids=news,
            )
            others = [
                _replaced(one, news_ids=one.news_ids - news) for one in kept if one.interest_id != choice.interest_id
            ]
            self._keep([*others, choice])

    def _keep(self, interests: Sequence[InterestChoice]) -> None:
        worth = [one for one in interests if one.news_ids and (one.muted or one.name)]
        rows = [
            {"id": one.interest_id, "name": one.name, "muted": one.muted, "news": sorted(one.news_ids)}
            for one in sorted(worth, key=lambda one: one.interest_id)
        ]
        self._preferences.set(PREFERENCE, rows or None)


def _replaced(interest: InterestChoice, *, news_ids: frozenset[str]) -> InterestChoice:
    return InterestChoice(interest.interest_id, interest.name, interest.muted, news_ids)
