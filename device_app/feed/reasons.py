"""Explains in one sentence why a story is in the feed.

The sentence is made on the device from the terms of the story's own score.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates
from device_app.feed.item import Reason
from device_app.feed.page_order import SlottedRow
from device_app.feed.preference_reader import Named, UserPreferences
from device_app.feed.scores import ScoreTerms, TermName
from device_app.feed.similarity import SimilarityRule, SimilarStory
from protocol.news import NewsCard
from protocol.text_catalogue import TextCatalogue

CLICKS_NAMED = 3
READ_OFTEN = 2
"""Minimum number of stories read on a topic or in a section for a reason to state the count."""

WHYS = TextCatalogue("device_app.feed", "whys.toml")
"""The sentences shown to readers, by the deciding term."""


def reasons(
    candidates: Candidates,
    page: Sequence[SlottedRow],
    user_preferences: UserPreferences,
    score: ScoreTerms,
    similarity: SimilarityRule,
    recent: NDArray[np.bool_],
) -> list[Reason]:
    """Return one reason per place of the page, in order.

    The reason for a personal place is the term that raised its score most above the average, among terms that can be
    named. Similarity to an article that was read or liked is named only if it passes `feed.similarity`. If no such term
    raises a story, the reason says whether it is recent or its editors rated it above average; otherwise it is empty,
    since nothing specific to this story or reader can be said. recent [n]: whether each was published in the last
    `fresh_hours`.
    """
    read = _Read(user_preferences)
    stories = Counter(candidates.cards[place.row].story for place in page if place.slot == "developing")
    page_reasons = []
    for place in page:
        card = candidates.cards[place.row]
        if place.slot == "developing":
            page_reasons.append(Reason("developing", WHYS("developing", reports=stories[card.story])))
        elif place.slot == "fresh":
            page_reasons.append(Reason("recent", WHYS("fresh")))
        elif place.slot == "explore":
            rare = bool(user_preferences.clicks) and read.sections[card.section] <= READ_OFTEN
            page_reasons.append(Reason("explore", WHYS("outside" if rare else "drawn", section=card.section)))
        else:
            is_recent = bool(recent[place.row])
            page_reasons.append(
                _personal(candidates, place.row, user_preferences, read, score, similarity, is_recent=is_recent)
            )
    return page_reasons


class _Read:
    """Counts the stories recently opened, each once, by topic and by section."""

    def __init__(self, user_preferences: UserPreferences) -> None:
        cards = {card.id: card for card in user_preferences.clicks}.values()
        self.topics = Counter((card.section, card.topic) for card in cards)
        self.sections = Counter(card.section for card in cards)


def _personal(
    candidates: Candidates,
    row: int,
    user_preferences: UserPreferences,
    read: _Read,
    score: ScoreTerms,
    similarity: SimilarityRule,
    *,
    is_recent: bool,
) -> Reason:
    lifts = score.lifts(row)
    weights = sorted(_weights(lifts), key=lambda pair: -pair[1])
    for what, weight in weights:
        if weight <= 0.0:
            break
        if what == "editors":
            return _editors(lifts, user_preferences, is_recent=is_recent)
        reason = _named(what, candidates, row, user_preferences, read, similarity)
        if reason is not None:
            return reason
    return _editors(lifts, user_preferences, is_recent=is_recent)


def _weights(lifts: Mapping[TermName, float]) -> Iterator[tuple[str, float]]:
    """Yield each possible reason and its lift.

    Terms that a reader would call one thing are added up.
    """
    yield "read", lifts["content"] + lifts["topic_affinity"]
    yield "section", lifts["section_affinity"]
    yield "liked", lifts["reactions"]
    yield "following", lifts["followed"]
    yield "chosen", lifts["chosen"]
    yield "popular", lifts["popularity"]
    yield "rare", lifts["rare"]
    yield "editors", lifts["recency"] + lifts["editorial"]


def _named(
    what: str,
    candidates: Candidates,
    row: int,
    user_preferences: UserPreferences,
    read: _Read,
    similarity: SimilarityRule,
) -> Reason | None:
    """Return the reason in words, or None if it would claim more about this story than is true."""
    card, vector = candidates.cards[row], candidates.vectors[row]
    if what == "read":
        similar = similarity.of(card, vector, user_preferences.clicks, user_preferences.click_vectors)
        return _read_reason(card, similar, user_preferences, read) if similar else None
    if what == "section":
        count = read.sections[card.section]
        words = WHYS("section", count=count, section=card.section)
        return Reason("interest", words) if count >= READ_OFTEN else None
    if what == "liked":
        liked = similarity.of(card, vector, user_preferences.liked_cards, user_preferences.liked)
        if not liked:
            return None
        example = user_preferences.liked_cards[liked[0].row]
        return Reason("liked", WHYS("liked", title=example.title), clicks=(example,))
    if what == "following":
        return follow_reason(card, user_preferences.followed)
    if what == "chosen":
        picked = card.section in user_preferences.chosen_sections
        return Reason("chosen", WHYS("chosen", section=card.section)) if picked else None
    if what == "rare":
        return Reason("rare", WHYS("rare", publisher=card.publisher)) if card.publisher else None
    return Reason("popular", WHYS("popular"))


def _read_reason(
    card: NewsCard, similar: Sequence[SimilarStory], user_preferences: UserPreferences, read: _Read
) -> Reason:
    clicks = user_preferences.clicks
    close = tuple({clicks[one.row].id: clicks[one.row] for one in similar}.values())[:CLICKS_NAMED]
    count = read.topics[card.section, card.topic]
    if card.topic and count >= READ_OFTEN:
        words = WHYS("topic", count=count, topic=card.topic)
    elif similar[0].tie == "name":
        words = WHYS("name", name=similar[0].name, title=close[0].title)
    else:
        words = WHYS("close", title=close[0].title)
    return Reason("interest", words, interest=user_preferences.click_interests[similar[0].row] or None, clicks=close)


def _editors(lifts: Mapping[TermName, float], user_preferences: UserPreferences, *, is_recent: bool) -> Reason:
    """Return a reason that is a fact about the story: it is recent, or its editors rated it above average.

    It has no words if neither is true.
    """
    recent, weighty = is_recent and lifts["recency"] > 0.0, lifts["editorial"] > 0.0
    if not (recent or weighty):
        return Reason("editors", "")
    description = WHYS("recent_and_weighty" if recent and weighty else "recent" if recent else "weighty")
    known = user_preferences.clicks or user_preferences.chosen_sections or user_preferences.followed
    return Reason("editors", description if known else WHYS("unused", said=description))


def follow_reason(card: NewsCard, followed: Named) -> Reason | None:
    """Return a reason that names the narrowest followed name; None if none is followed."""
    for name, names in (
        (card.topic, followed.topics),
        (card.section, followed.sections),
        (card.publisher, followed.publishers),
    ):
        if name in names:
            return Reason("following", WHYS("following", name=name))
    return None
