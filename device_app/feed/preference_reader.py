"""Reads from the store what ranking needs to know about the reader.

These are clicks, reactions, stances and choices.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from device_app.reading.interest_profile import ClickedNews, InterestChoice, InterestNames, without_muted
from device_app.store.clicks import Click
from device_app.store.preferences import CHOSEN_SECTIONS
from device_app.stores import DeviceStores
from protocol.news import NewsCard
from protocol.recall import CLICKS_LIMIT


@dataclass(frozen=True)
class Named:
    """Topics, sections and publishers by name."""

    topics: frozenset[str] = frozenset()
    sections: frozenset[str] = frozenset()
    publishers: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.topics or self.sections or self.publishers)


@dataclass(frozen=True)
class MutedInterest:
    """A muted interest, with the vectors of its clicks, [n, D]."""

    label: str
    vectors: NDArray[np.float32]


@dataclass(frozen=True)
class UserPreferences:
    """What ranking knows about the reader. Sensitive: it is only ever read on the device.

    clicks are the recent clicked articles, oldest first, with click_vectors [H, D] in the same order and
    click_interests [H], the label of each click's interest ('' if none). liked_cards with liked [n, D], and disliked
    [n, D], are articles the reader reacted to. read, disliked_ids and hidden_ids (by mute rules) are in no new page.
    read_events: as `ReadMarks.events`. unwanted lists the topics of disliked articles, one entry per article.
    """

    clicks: tuple[NewsCard, ...]
    click_vectors: NDArray[np.float32]
    click_interests: tuple[str, ...]
    liked_cards: tuple[NewsCard, ...]
    liked: NDArray[np.float32]
    disliked: NDArray[np.float32]
    read: frozenset[str] = frozenset()
    read_events: frozenset[str] = frozenset()
    disliked_ids: frozenset[str] = frozenset()
    hidden_ids: frozenset[str] = frozenset()
    unwanted: tuple[str, ...] = ()
    followed: Named = field(default_factory=Named)
    blocked: Named = field(default_factory=Named)
    chosen_sections: frozenset[str] = frozenset()
    muted: tuple[MutedInterest, ...] = ()


MUTED_CLICKS_LIMIT = 1_000
REACTIONS_LIMIT = 50
_Edition = tuple[str, int | None, int]
_NO_EDITION: _Edition = ("", None, 0)


@dataclass(frozen=True)
class PreferenceInputs:
    """The recent clicks that count, those of muted interests, and the settings of each interest."""

    active: tuple[ClickedNews, ...]
    muted: tuple[tuple[InterestChoice, tuple[ClickedNews, ...]], ...]
    kept: tuple[InterestChoice, ...]


class PreferenceReader:
    """Reads clicks, reactions, stances and choices from the stores."""

    def __init__(self, stores: DeviceStores, names: InterestNames) -> None:
        self._stores, self._names = stores, names
        self._clicked: tuple[_Edition, dict[int, ClickedNews]] = (_NO_EDITION, {})

    def forget(self) -> None:
        """Drop the clicked articles that are cached between feeds."""
        self._clicked = (_NO_EDITION, {})

    def reading(self, encoder: str) -> PreferenceInputs:
        """Return the newest 50 clicks outside muted interests, oldest first.

        Clicks without a card or vector are left out.
        """
        kept = self._names.kept()
        any_muted = any(interest.muted for interest in kept)
        clicks = self._stores.clicks.recent(MUTED_CLICKS_LIMIT if any_muted else CLICKS_LIMIT)
        active, muted = without_muted(self._stored(clicks, encoder), kept)
        return PreferenceInputs(active[-CLICKS_LIMIT:], muted, kept)

    def user_preferences(self, reading: PreferenceInputs, encoder: str, dimensions: int) -> UserPreferences:
        """Return everything about the reader that ranking uses; the interests of clicks are not labelled yet."""
        reactions = self._stores.feedback.reactions()
        disliked = [one.news_id for one in reactions if one.kind == "less"]
        liked = [one.news_id for one in reactions if one.kind == "like"][:REACTIONS_LIMIT]
        liked_cards, liked_vectors = self._known(liked, encoder, dimensions)
        disliked_cards, disliked_vectors = self._known(disliked[:REACTIONS_LIMIT], encoder, dimensions)
        return UserPreferences(
            clicks=tuple(click.card for click in reading.active),
            click_vectors=_stacked(reading.active, dimensions),
            click_interests=("",) * len(reading.active),
            liked_cards=liked_cards,
            liked=liked_vectors,
            disliked=disliked_vectors,
            read=self._stores.read_marks.ids(),
            read_events=self._stores.read_marks.events(),
            disliked_ids=frozenset(disliked),
            hidden_ids=self._stores.mute_rules.hidden(),
            unwanted=tuple(card.topic for card in disliked_cards if card.topic),
            followed=named(self._stores.stances.followed()),
            blocked=named(self._stores.stances.blocked()),
            chosen_sections=frozenset(self.chosen_sections() or ()),
            muted=tuple(
                MutedInterest(interest.name or "", _stacked(clicks, dimensions))
                for interest, clicks in reading.muted
                if clicks
            ),
        )

    def chosen_sections(self) -> tuple[str, ...] | None:
        """Return the sections picked at the first visit, or None before it."""
        chosen = self._stores.preferences.get(CHOSEN_SECTIONS)
        return None if chosen is None else tuple(chosen)

    def _stored(self, clicks: Sequence[Click], encoder: str) -> list[ClickedNews]:
        """Return clicked articles with card and vector, reading only new clicks.

        Drops deleted ones from the cache.
        """
        edition = (encoder, self._stores.news.width(encoder), self._stores.news.edition)
        known_of, known = self._clicked
        if known_of != edition:
            known = {}
        new = self._read([click for click in clicks if click.id not in known], encoder)
        found = {click.id: news for click in clicks if (news := known.get(click.id) or new.get(click.id))}
        self._clicked = (edition, found)
        return list(found.values())

    def _read(self, clicks: Sequence[Click], encoder: str) -> dict[int, ClickedNews]:
        if not clicks:
            return {}
        ids = [click.news_id for click in clicks]
        cards = {card.id: card for card in self._stores.news.cards(list(dict.fromkeys(ids)))}
        present, vectors = self._stores.news.vectors(ids, encoder)
        return {
            click.id: ClickedNews(click.id, click.at, cards[click.news_id], vector)
            for click, here, vector in zip(clicks, present, vectors, strict=True)
            if here and click.news_id in cards
        }

    def _known(
        self, ids: Sequence[str], encoder: str, dimensions: int
    ) -> tuple[tuple[NewsCard, ...], NDArray[np.float32]]:
        if not ids:
            return (), np.zeros((0, dimensions), dtype=np.float32)
        cards = self._stores.news.cards(ids)
        present, vectors = self._stores.news.vectors([card.id for card in cards], encoder)
        if not present.any():
            return (), np.zeros((0, dimensions), dtype=np.float32)
        return tuple(card for card, here in zip(cards, present, strict=True) if here), vectors[present]


def named(names: Iterable[tuple[str, str]]) -> Named:
    """Return (kind, name) pairs grouped by kind."""
    pairs = list(names)

    def of(kind: str) -> frozenset[str]:
        return frozenset(name for one, name in pairs if one == kind)

    return Named(topics=of("topic"), sections=of("section"), publishers=of("publisher"))


def _stacked(clicks: Sequence[ClickedNews], dimensions: int) -> NDArray[np.float32]:
    if not clicks:
        return np.zeros((0, dimensions), dtype=np.float32)
    return np.stack([click.vector for click in clicks])
