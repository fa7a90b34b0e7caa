"""Expands a search into words with a related meaning, from a list of English words made for news.

The list is `related_words.toml` (25 kB), the same in both devices. Words that it doesn't have are searched as written.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from device_app.store.searches import QUERY_WORDS_LIMIT, folded, words_of

PHRASE_WORDS = 4
"""Longest phrase of the list, in words."""
BASE_LENGTH = 3
"""Shortest base form of a word, in letters."""
VOWELS = "aeiou"


@dataclass(frozen=True)
class SearchTerm:
    """A word or phrase of a search as FTS5 expressions: itself in all its forms, and related words ('' if none)."""

    own: str
    related: str


def terms_of(text: str) -> list[SearchTerm]:
    """Return the search's terms: the longest known phrases, then single words, without words like "the"."""
    skipped, _ = _lists()
    words = [part for word in folded(text).split()[:QUERY_WORDS_LIMIT] for part in _plain(word)]
    terms: list[SearchTerm] = []
    at = 0
    while at < len(words):
        for size in range(min(PHRASE_WORDS, len(words) - at), 0, -1):
            phrase = words[at : at + size]
            related = related_to(phrase)
            if size > 1 and not related:
                continue
            if size > 1 or phrase[0] not in skipped:
                terms.append(_term(phrase, related, skipped))
            at += size
            break
    return terms


def related_to(phrase: Sequence[str]) -> list[str]:
    """Return the phrases that the list relates to this one, in any form of its first and last word."""
    _, related = _lists()
    for first in base_forms(phrase[0]) if len(phrase) > 1 else [""]:
        for last in base_forms(phrase[-1]):
            found = related.get(" ".join([first, *phrase[1:-1], last]) if len(phrase) > 1 else last)
            if found:
                return found
    return []


def base_forms(word: str) -> list[str]:
    """Return the word and the words that it may be a plural, a past or an -ing form of."""
    forms = [word]
    if word.endswith("s") and not word.endswith("ss"):
        if word.endswith("ies"):
            forms.append(word[:-3] + "y")
        forms.append(word[:-1])
        if word.endswith("es"):
            forms.append(word[:-2])
    for ending in ("ed", "ing"):
        rest = word.removesuffix(ending)
        if rest == word or len(rest) < BASE_LENGTH:
            continue
        if ending == "ed" and rest.endswith("i"):
            forms.append(rest[:-1] + "y")
        if rest[-1] == rest[-2]:
            forms.append(rest[:-1])
        forms += [rest, rest + "e"]
    return list(dict.fromkeys(form for form in forms if form == word or len(form) >= BASE_LENGTH))


def all_forms(word: str) -> list[str]:
    """Return every form in which a word may stand in a text, in alphabetical order; only itself if not ASCII."""
    if not (word.isascii() and word.isalpha()):
        return [word]
    forms: set[str] = set()
    for base in base_forms(word):
        forms |= {base, base + "s", base + "ed", base + "ing"}
        if base.endswith("e"):
            forms |= {base + "d", base[:-1] + "ing"}
        elif base.endswith("y"):
            forms |= {base[:-1] + "ies", base[:-1] + "ied"}
        else:
            forms.add(base + "es")
        if len(base) > 2 and base[-1] not in VOWELS + "wxy" and base[-2] in VOWELS:
            forms |= {base + base[-1] + "ed", base + base[-1] + "ing"}
    return sorted(forms)


def _term(phrase: Sequence[str], related: Sequence[str], skipped: frozenset[str]) -> SearchTerm:
    alternatives = [_expression(other.split()) for other in related]
    meaningful = [word for word in phrase if word not in skipped]
    if len(phrase) > 1 and meaningful:  # all of a phrase's words, though not side by side, are as good as a related one
        alternatives.append("(" + " AND ".join(f"({_expression([word])})" for word in meaningful) + ")")
    return SearchTerm(_expression(phrase), " OR ".join(alternatives))


def _expression(phrase: Sequence[str]) -> str:
    return " OR ".join(f'"{" ".join([*phrase[:-1], last])}"' for last in all_forms(phrase[-1]))


def _plain(word: str) -> list[str]:
    parts = re.findall(r"\w+", words_of(word).replace("_", " "))
    return parts if "".join(parts).isascii() else [" ".join(parts)] * bool(parts)  # unspaced scripts stay one phrase


@cache
def _lists() -> tuple[frozenset[str], dict[str, list[str]]]:
    """Return the words that are ignored on their own, and the related phrases of each phrase."""
    text = (resources.files("device_app.feed") / "related_words.toml").read_text("utf-8")
    table = tomllib.loads(text)
    keys: dict[str, list[str]] = {key: others.split(", ") for key, others in table["related"].items()}
    beside: dict[str, dict[str, None]] = {}
    for key, others in keys.items():
        for other in others:
            if other not in keys:
                beside.setdefault(other, {}).update(dict.fromkeys(one for one in (key, *others) if one != other))
    return frozenset(table["skipped"].split()), {key: list(each) for key, each in beside.items()} | keys
