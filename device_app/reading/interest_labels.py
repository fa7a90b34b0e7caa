"""Labels the reader's interests: by the reader's own name, else by topics and names.

The topics and names come from the articles read. No two labels are equal. Names of people, places and firms are
recognised by their capitals.
"""

import calendar
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count, pairwise

from protocol.news import NewsCard

TITLE_CASE_SHARE = 0.7
"""If this share of a headline's words is capitalised, capitals don't indicate names."""

CALENDAR = frozenset((*calendar.day_name, *calendar.month_name))
"""Capitalised words that aren't names."""

SMALL_WORDS = frozenset({
    "of", "the", "de", "del", "della", "di", "da", "do", "dos", "das", "du", "des", "la", "le", "van", "von", "der",
    "den", "ter", "al", "el", "bin", "ibn", "y", "e",
})  # fmt: skip
"""Lower-case words that occur within names: "University of Leeds", "Maria de la Cruz"."""

NAMED_CARDS_KEPT = 4_096
"""Number of cards whose names are cached; each page needs those of the same clicks."""

_WORD = re.compile(r"[^\W\d_][\w’'-]*")
_BEFORE_SENTENCE = tuple('.!?:…“‘"(—–')


def proper_names(card: NewsCard) -> frozenset[str]:
    """Return names of people, places and firms in title and abstract, recognised by capitals.

    None in scripts without capitals. A name of several words yields itself and each pair of neighbours ("Anna Maria
    Berg": "Anna Maria", "Maria Berg"), including small words between them ("Bank of Torgan" is one name, not two). A
    word that begins a sentence counts only next to another capitalised word, and none ends in a genitive ("Towns’").
    """
    return _names_of(card.title, card.abstract)


def forget_names() -> None:
    """Empty the cache of names found in cards."""
    _names_of.cache_clear()


@lru_cache(maxsize=NAMED_CARDS_KEPT)
def _names_of(title: str, abstract: str) -> frozenset[str]:
    return frozenset(name for name in _names_in(title) | _names_in(abstract) if name[-1] != "’") - CALENDAR


def _names_in(text: str) -> set[str]:
    words = list(_WORD.finditer(text))
    capitals = [word.group()[0].isupper() for word in words]
    if len(words) >= 4 and sum(capitals) >= TITLE_CASE_SHARE * len(words):
        return set()
    found: set[str] = set()
    run: list[re.Match[str]] = []
    last = 0  # where the run's last word ends, including small words that may lead to a capital
    for word, capital in zip(words, capitals, strict=True):
        apart = text[last : word.start()] != " "
        if run and (apart or not (capital or word.group() in SMALL_WORDS)):
            found |= _named_by(run, text)
            run = []
        if capital:
            run.append(word)
        last = word.end()
    return found | _named_by(run, text)


def _named_by(run: Sequence[re.Match[str]], text: str) -> set[str]:
    if len(run) > 1:
        whole = run[1:] if _begins_sentence(text[: run[0].start()]) else run
        spans = [*pairwise(run), *([(whole[0], whole[-1])] if len(whole) > 1 else [])]
        return {text[first.start() : last.end()] for first, last in spans}
    return {word.group() for word in run if not _begins_sentence(text[: word.start()])}


def _begins_sentence(before: str) -> bool:
    """Return whether the text after `before` begins a sentence or quotation."""
    left = before.rstrip()
    return not left or left.endswith(_BEFORE_SENTENCE)


NAME_CHARS = 40
"""Maximum length of a person's or place's name in a label."""
LEAST_SHARE = 0.25
"""Minimum share of an interest's articles that must contain the term that distinguishes it."""


def label_of(cards: Sequence[NewsCard]) -> str:
    """Return the one or two topics of most clicked articles, such as 'elections and courts'."""
    topics = Counter(card.topic for card in cards).most_common(2)
    first, times = topics[0]
    if len(topics) == 2 and topics[1][1] * 2 >= times and times < len(cards):
        return f"{first} and {topics[1][0]}"
    return first


def distinct_labels(groups: Sequence[Sequence[NewsCard]], chosen_labels: Mapping[int, str]) -> tuple[str, ...]:
    """Return a distinct label for each group of clicked articles, larger groups first.

    Labels given by the reader stay as they are. Equal labels are distinguished by something that is more frequent in
    one group than in every other group with that label: another topic ('football and rugby'), else a name in the
    headlines ('football: Leeds'), else a number. The same groups get the same labels, and no label equals a given one.
    """
    found = [chosen_labels.get(at) or label_of(group) for at, group in enumerate(groups)]
    same = [name.casefold() for name in found]
    used = {name.casefold() for name in chosen_labels.values()}
    for at, group in enumerate(groups):
        if at not in chosen_labels:
            rivals = [groups[other] for other, name in enumerate(same) if name == same[at] and other != at]
            found[at] = next(name for name in _names(found[at], group, rivals) if name.casefold() not in used)
            used.add(found[at].casefold())
    return tuple(found)


def _names(label: str, group: Sequence[NewsCard], rivals: Sequence[Sequence[NewsCard]]) -> Iterator[str]:
    """Yield possible labels of a group, the most distinctive first.

    rivals: groups with the same label.
    """
    if rivals:
        named = label.casefold().split(" and ")
        topics = {card.topic for card in group if card.topic.casefold() not in named}
        distinctive = _telling(topics, group, rivals, lambda topic, card: card.topic == topic)
        yield from (f"{label}{', ' if len(named) > 1 else ' and '}{topic}" for topic in distinctive)
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
    """Return terms that occur in a quarter of the group's articles and in a larger share of them than in any rival's.

    Sorted by how much larger the share is.
    """

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
    """Return a card's names that don't begin its title or abstract, as "How Leeds" might."""
    texts = (card.title, card.abstract)
    return [one for one in proper_names(card) if len(one) <= NAME_CHARS and not any(t.startswith(one) for t in texts)]


def _mentions(name: str, card: NewsCard) -> bool:
    text = f"{card.title} {card.abstract}"
    return name in text and re.search(rf"\b{re.escape(name)}\b", text) is not None
