"""The reader's interests with names: which clicks form one, what it is called, whether it is muted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.interests.labels import distinct_labels
from device_app.wire.news import NewsCard


@dataclass(frozen=True)
class InterestCluster:
    """One interest of the reader, found by clustering the recent clicks; nothing of it leaves the device by name.

    key is stable while the interest keeps some of its clicks; weight is its share of the recent clicks (0 to 1, and 0
    when muted); headlines are its clicked news nearest to its centre, best first.
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
class KeptInterest:
    """What the reader said of an interest: a name or None, muted or not, and the clicked news it was said of."""

    interest_id: int
    name: str | None
    muted: bool
    news_ids: frozenset[str]


@dataclass(frozen=True)
class Profile:
    """Recent clicks, oldest first, as the feed uses them; muted clicks are kept apart and never reported or ranked by.

    labels is [H], the channel of each active click; names has one entry a channel.
    """

    active: tuple[ClickedNews, ...]
    muted: tuple[tuple[KeptInterest, tuple[ClickedNews, ...]], ...]
    labels: NDArray[np.int64]
    names: tuple[str, ...]

    @property
    def click_names(self) -> tuple[str, ...]:
        """The name of each active click's interest."""
        return tuple(self.names[label] for label in self.labels)


def without_muted(
    clicks: Sequence[ClickedNews], kept: Sequence[KeptInterest]
) -> tuple[tuple[ClickedNews, ...], tuple[tuple[KeptInterest, tuple[ClickedNews, ...]], ...]]:
    """Split clicks into those that count and those of muted interests."""
    silent = {news_id for interest in kept if interest.muted for news_id in interest.news_ids}
    groups = tuple(
        (interest, tuple(click for click in clicks if click.card.id in interest.news_ids))
        for interest in kept
        if interest.muted
    )
    return tuple(click for click in clicks if click.card.id not in silent), groups


def named_profile(
    active: Sequence[ClickedNews],
    muted: tuple[tuple[KeptInterest, tuple[ClickedNews, ...]], ...],
    labels: NDArray[np.int64],
    kept: Sequence[KeptInterest],
) -> Profile:
    """Name every channel: by the reader if it holds most of a named interest's news, else by what it is about."""
    groups = _groups(active, labels)
    given = {channel: interest.name or "" for channel, interest in matched(groups, kept).items()}
    return Profile(tuple(active), muted, labels, distinct_labels([_cards(group) for group in groups], given))


def matched(groups: Sequence[Sequence[ClickedNews]], kept: Sequence[KeptInterest]) -> Mapping[int, KeptInterest]:
    """Which channel each named interest is now: greatest number of shared news, one to one, ties to the larger."""
    shared = [
        (len(interest.news_ids & {click.card.id for click in group}), -channel, interest)
        for channel, group in enumerate(groups)
        for interest in kept
        if not interest.muted and interest.name is not None
    ]
    found: dict[int, KeptInterest] = {}
    for overlap, minus_channel, interest in sorted(shared, key=lambda row: row[:2], reverse=True):
        taken = interest.interest_id in {one.interest_id for one in found.values()}
        if overlap and -minus_channel not in found and not taken:
            found[-minus_channel] = interest
    return found


def interest_cards(profile: Profile, kept: Sequence[KeptInterest]) -> tuple[InterestCluster, ...]:
    """Every interest for the Interests page, heaviest first, muted ones last."""
    groups = _groups(profile.active, profile.labels)
    given = matched(groups, kept)
    total = max(1, len(profile.active))
    cards = [
        _card(group, name, named=channel in given, muted=False, weight=len(group) / total)
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
    """The clicks of the interest that `key` (a click's id) belongs to; none if that click is not a recent one."""
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
