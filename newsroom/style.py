"""House style: numbers, days, possessives, articles, capitals and signs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime

from newsroom.forms import Slot

_UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_ORDINALS = ("zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_SPOKEN_AN = re.compile(r"(?:[aeiou]|8|11\b|11,|18\b|18,|hour|honest|honou?r|heir)", re.IGNORECASE)
_SPOKEN_A = re.compile(r"(?:eu|uni(?!n|mp|d)|us(?:e|ual|ur)|util|one\b|one-|once|ubiq|ufo|ukulele)", re.IGNORECASE)
_INITIALS = re.compile(r"[FHLMNRSX](?=[A-Z0-9])")
_ARTICLE = re.compile(r"\b([Aa])n? (?=[“‘(]*([A-Za-z0-9][\w,’-]*))")
_SENTENCE_START = re.compile(r"((?:^|[.?!]\s+|\.[”’)]+\s+)[“‘(]*)([a-zà-ÿ])")
_QUOTED = re.compile(r"“([^”]+)”")
_QUOTE_WORDS = 4


def number(value: int) -> str:
    """Write a number in house style: words to nine, figures with thousands commas from 10."""
    return _UNITS[value] if 0 <= value < len(_UNITS) else f"{value:,}"


def ordinal(value: int) -> str:
    if 0 < value < len(_ORDINALS):
        return _ORDINALS[value]
    ending = "th" if 10 <= value % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value:,}{ending}"


def plural(noun: str) -> str:
    if noun.endswith("works"):
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def possessive(name: str) -> str:
    return name + ("’" if name.endswith("s") else "’s")


def listed(words: Sequence[str]) -> str:
    """Write a list: 'a', 'a and b', 'a, b and c'."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def spoken(value: object) -> str:
    """Write a fact in house style: small numbers in words, floats without trailing zeros, things by their name."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        raise TypeError("a boolean can't be written in a text; use an optional string")
    if isinstance(value, int):
        return number(value)
    if isinstance(value, float):
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else str(value)


def on_day(day: date, today: date) -> str:
    """Write a day: 'on Tuesday' within six days either way, 'on 12 March' beyond."""
    if abs((day - today).days) <= 6:
        return f"on {day:%A}"
    return f"on {day.day} {day:%B}"


def filtered(value: object, slot: Slot, today: date) -> str:
    match slot.filter:
        case "":
            return spoken(value)
        case "s":
            return possessive(spoken(value))
        case "fig" if isinstance(value, int):
            return f"{value:,}"
        case "fig" if isinstance(value, float):
            return spoken(value)
        case "year" if isinstance(value, int):
            return str(value)
        case "ord" if isinstance(value, int):
            return ordinal(value)
        case "count" if isinstance(value, int):
            one, _, many = slot.argument.partition("/")
            return f"{number(value)} {one if value == 1 else many or plural(one)}"
        case "adj":
            return re.sub(r" ([a-z]+)s$", r"-\1", spoken(value))
        case "pct" if isinstance(value, (int, float)):
            return f"{value:g}%"
        case "lower" if isinstance(value, str):
            return value[:1].lower() + value[1:]
        case "cap" if isinstance(value, str):
            return value[:1].upper() + value[1:]
        case "on" if isinstance(value, date):
            return on_day(_day(value), today)
        case "since" if isinstance(value, date):
            return on_day(_day(value), today).removeprefix("on ")
        case "ago" if isinstance(value, date):
            days = (today - _day(value)).days
            return ("earlier the same day", "a day earlier")[days] if 0 <= days < 2 else f"{number(days)} days earlier"
        case "plural" if isinstance(value, str):
            return plural(value)
        case "day" if isinstance(value, date):
            return f"{value:%A}"
        case "date" if isinstance(value, date):
            return f"{value.day} {value:%B}"
        case _:
            raise ValueError(f"filter {slot.filter!r} does not fit {value!r} in slot {'.'.join(slot.path)}")


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _with_article(match: re.Match[str]) -> str:
    letter, word = match.groups()
    if word.isupper() and len(word) > 1 and not word[0].isdigit():
        needs_an = bool(_INITIALS.match(word)) or word[0] in "AEIO"
    else:
        needs_an = bool(_SPOKEN_AN.match(word)) and not _SPOKEN_A.match(word)
    return letter + ("n " if needs_an else " ")


_SPACES = re.compile(r"\s{2,}")
_SPACE_BEFORE_SIGN = re.compile(r" (?=[,.;:?!](?:\s|$|”))")
_SIGNS = re.compile(r",(?=[,.;:])|([.?!]”?)\.|([?!]),(?=”)")


def tidied(text: str) -> str:
    """Put one text into house style: single spaces, right articles, capitals at sentence starts, curly apostrophes."""
    text = _SPACES.sub(" ", text.replace("'", "’")).strip()
    text = _SPACE_BEFORE_SIGN.sub("", text)
    text = _SIGNS.sub(lambda match: match[1] or match[2] or "", text)
    text = _ARTICLE.sub(_with_article, text)
    return _SENTENCE_START.sub(lambda match: match[1] + match[2].upper(), text)


def quotes(text: str) -> set[str]:
    """Return the sentences that a text quotes, without short fragments, in a normalised form."""
    sentences = (part for quote in _QUOTED.findall(text) for part in re.split(r"[.?!,;] ", quote))
    plain = (" ".join(re.findall(r"[\w’]+", sentence.casefold())) for sentence in sentences)
    return {words for words in plain if words.count(" ") >= _QUOTE_WORDS - 1}
