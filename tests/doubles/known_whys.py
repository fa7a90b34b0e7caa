"""Judges a page's reasons by what the reader did and by the newspaper, which knows each story's topic and names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from device_app.feed.item import FeedItem
from device_app.feed.reasons import CLICKS_NAMED, WHYS
from experiments.bench.feed_laws import Newspaper
from protocol.news import NewsCard
from protocol.recall import CLICKS_LIMIT
from tests.doubles.days_of_reading import Visit

WEEKS = 2.0
"""Of the generated newspaper."""
OFTEN_A_WEEK = 16
"""From so many stories a week on, a publisher isn't rare."""
UNUSED = WHYS("unused", said="").strip()


@dataclass(frozen=True)
class WhyJudge:
    """Says of every sentence whether it is true; one it doesn't know is false."""

    newspaper: Newspaper

    def is_true(self, item: FeedItem, visit: Visit) -> bool:
        """Return whether a reason of a visit's page is true of its story and of the reader."""
        feed, opened = visit.feed, visit.opened
        words, card = item.reason.words.removesuffix(UNUSED).strip(), item.card
        is_recent = card.counted_at >= feed.made_at - timedelta(hours=feed.fresh_hours)
        cards = self.newspaper.pool.cards
        weighs = card.weight > sum(one.weight for one in cards) / len(cards)
        read = {one.id: one for one in opened}.values()
        if item.reason.words.endswith(UNUSED) and opened:
            return False
        if not words:
            return True
        if item.slot == "developing":
            reports = [one.card for one in feed.in_slot("developing") if one.card.story == card.story]
            return words == WHYS("developing", reports=len(reports)) and len(reports) > 1
        if item.slot == "explore":
            rare = sum(one.section == card.section for one in opened[-CLICKS_LIMIT:]) <= 2
            of_this = [WHYS(name, section=card.section) for name in (("outside", "drawn") if rare else ("drawn",))]
            return words in of_this
        plain = {
            WHYS("weighty"): weighs,
            WHYS("recent"): is_recent,
            WHYS("fresh"): is_recent,
            WHYS("recent_and_weighty"): is_recent and weighs,
            WHYS("rare", publisher=card.publisher): self._a_week(card.publisher) < OFTEN_A_WEEK,
        }
        if words in plain:
            return plain[words]
        if item.reason.kind == "liked":
            (like,) = item.reason.clicks
            return words == WHYS("liked", title=like.title) and like.id in visit.liked and self._akin(card, like)
        return self._is_of_reading(words, item, list(read), all_count=len(opened) <= CLICKS_LIMIT)

    def _akin(self, one: NewsCard, other: NewsCard) -> bool:
        return self.newspaper.related(self.newspaper.row[one.id], self.newspaper.row[other.id])

    def _a_week(self, publisher: str) -> float:
        return Counter(one.publisher for one in self.newspaper.pool.cards)[publisher] / WEEKS

    def _is_of_reading(self, words: str, item: FeedItem, opened: Sequence[NewsCard], *, all_count: bool) -> bool:
        card, clicks = item.card, item.reason.clicks
        topics = sum((one.section, one.topic) == (card.section, card.topic) for one in opened)
        sections = sum(one.section == card.section for one in opened)
        read = {one.id for one in opened}
        if not {one.id for one in clicks} <= read or len(clicks) > CLICKS_NAMED:
            return False
        for kind, most, name in (("topic", topics, card.topic), ("section", sections, card.section)):
            # a story opened from several places counts once, and takes a place of each among the recent clicks
            counts = range(max(most, 2) if all_count else 2, most + 1)
            if words in [WHYS(kind, count=count, **{kind: name}) for count in counts]:
                return True
        for one in clicks:
            if words == WHYS("close", title=one.title):
                return self._akin(card, one)
            name = words.removeprefix(_MENTIONS).removesuffix(WHYS("name", name="", title=one.title)[len(_MENTIONS) :])
            if words == WHYS("name", name=name, title=one.title):
                return mentions(card, name) and mentions(one, name)
        return False


_MENTIONS = WHYS("name", name="", title="").partition(",")[0]


def mentions(card: NewsCard, name: str) -> bool:
    """Return whether a card has the whole name: not as a part of a longer one ("Anna Maria" of "Anna Maria Berg")."""
    return name[-1:].isalnum() and any(
        not _is_capital(text[found.end() :], first=True) and not _is_capital(text[: found.start()], first=False)
        for text in (card.title, card.abstract)
        for found in re.finditer(rf"(?<![\w’'-]){re.escape(name)}(?!\w)", text)
    )


def _is_capital(text: str, *, first: bool) -> bool:
    """Return whether the next word, or the last one, continues a name; a word that begins a sentence doesn't."""
    found = re.match(r" ([A-Z])", text) if first else re.search(r"[\w,;)’'] ([A-Z][\w’'-]*) $", text)
    return found is not None
