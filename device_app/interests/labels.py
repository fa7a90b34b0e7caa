"""What an interest is called where its reader gave it no name: by what is read in it, and no two alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import count

from device_app.interests.proper_names import proper_names
from device_app.wire.news import NewsCard

NAME_CHARS = 40
"""Of a person's or place's name in a label, at most."""
LEAST_SHARE = 0.25
"""Of an interest's news must have what tells it apart."""


def label_of(cards: Sequence[NewsCard]) -> str:
    """The one or two topics most of the clicked news are on: 'elections', 'elections and courts'."""
    topics = Counter(card.topic for card in cards).most_common(2)
    first, times = topics[0]
    if len(topics) == 2 and topics[1][1] * 2 >= times and times < len(cards):
        return f"{first} and {topics[1][0]}"
    return first


def distinct_labels(groups: Sequence[Sequence[NewsCard]], given: Mapping[int, str]) -> tuple[str, ...]:
    """A label for each group of clicked news, the larger first; those that are given by the reader stand as they are.

    Where labels would be the same, whatever is read more in one group than in all the others of that label tells them
    apart: another topic ('football and rugby'), else a name in the headlines ('football: Leeds'); else a number. The
    same groups have the same labels, and no label is one that is given.
    """
    found = [given.get(at) or label_of(group) for at, group in enumerate(groups)]
    same = [name.casefold() for name in found]
    used = {name.casefold() for name in given.values()}
    for at, group in enumerate(groups):
        if at not in given:
            rivals = [groups[other] for other, name in enumerate(same) if name == same[at] and other != at]
            found[at] = next(name for name in _names(found[at], group, rivals) if name.casefold() not in used)
            used.add(found[at].casefold())
    return tuple(found)


def _names(label: str, group: Sequence[NewsCard], rivals: Sequence[Sequence[NewsCard]]) -> Iterator[str]:
    """What a group may be called, the most telling first. rivals: the others that would have the same label."""
    if rivals:
        said = label.casefold().split(" and ")
        topics = {card.topic for card in group if card.topic.casefold() not in said}
        told = _telling(topics, group, rivals, lambda topic, card: card.topic == topic)
        yield from (f"{label}{', ' if len(said) > 1 else ' and '}{topic}" for topic in told)
        names = {name for card in group for name in _names_within(card) if name.casefold() not in label.casefold()}
        yield from (f"{label}: {name}" for name in _telling(names, group, rivals, _mentions))
    yield label
    yield from (f"{label} {number}" for number in count(2))


def _telling(
    terms: Collection[str],
    group: Sequence[NewsCard],
    rivals: Sequence[Sequence[NewsCard]],
    holds: Callable[[str, NewsCard], bool],
) -> list[str]:
    """Terms that a quarter of the group's news hold, and a greater share than of any rival's, by how much greater."""

    def share(term: str, cards: Sequence[NewsCard]) -> float:
        return sum(holds(term, card) for card in cards) / len(cards)

    ahead = {}
    for term in terms:
        own = share(term, group)
        by = own - max(share(term, rival) for rival in rivals) if own >= LEAST_SHARE else 0.0
        if by > 0:
            ahead[term] = by
    return sorted(ahead, key=lambda term: (-ahead[term], term))


def _names_within(card: NewsCard) -> list[str]:
    """Names in a card that don't begin its title or abstract, as "How Leeds" may."""
    begun = (card.title, card.abstract)
    return [one for one in proper_names(card) if len(one) <= NAME_CHARS and not any(t.startswith(one) for t in begun)]


def _mentions(name: str, card: NewsCard) -> bool:
    text = f"{card.title} {card.abstract}"
    return name in text and re.search(rf"\b{re.escape(name)}\b", text) is not None
