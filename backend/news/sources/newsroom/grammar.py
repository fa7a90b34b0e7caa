"""A small text engine: forms with slots and alternatives, agreement, house style, and little repetition.

A form is plain English with two marks. ``{club.coach.last}`` is a slot: attributes of the facts, formatted by
house style, optionally through a filter as in ``{seats:count seat}``. ``[held|kept|]`` is one of several
wordings, nested as deep as needed. A wording whose slot is None is never chosen, so optional facts need no code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from random import Random

_UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_ORDINALS = ("zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_SPOKEN_AN = re.compile(r"(?:[aeiou]|8|11\b|11,|18\b|18,|hour|honest|honou?r|heir|[FHLMNRSX](?=[A-Z]))", re.IGNORECASE)
_SPOKEN_A = re.compile(r"(?:eu|uni(?!n|mp|d)|us(?:e|ual|ur)|util|one\b|one-|once|ubiq|ufo|u[A-Z])", re.IGNORECASE)
_INITIALS = re.compile(r"[FHLMNRSX](?=[A-Z0-9])")
_ARTICLE = re.compile(r"\b([Aa])n?\s+(?=([“‘(]*)([A-Za-z0-9][\w,’-]*))")
_SENTENCE_START = re.compile(r"((?:^|[.?!][”’)]*\s+)[“‘(]*)([a-zà-ÿ])")


class MissingFactError(LookupError):
    """A wording asks for a fact that is None in this story, so another wording must be taken."""


@dataclass(frozen=True, slots=True)
class Slot:
    path: tuple[str, ...]
    filter: str
    argument: str


@dataclass(frozen=True, slots=True)
class Choice:
    wordings: tuple[tuple[Node, ...], ...]


Node = str | Slot | Choice


@lru_cache(maxsize=None)
def parsed(form: str) -> tuple[Node, ...]:
    """The nodes of a form; raises ValueError naming the form on an unbalanced bracket or brace."""
    nodes, at = _sequence(form, 0, closing="")
    if at != len(form):
        raise ValueError(f"unbalanced bracket at character {at} of form {form!r}")
    return nodes


def _sequence(form: str, at: int, closing: str) -> tuple[tuple[Node, ...], int]:
    nodes: list[Node] = []
    plain: list[str] = []

    def flush() -> None:
        if plain:
            nodes.append("".join(plain))
            plain.clear()

    while at < len(form) and form[at] not in closing:
        sign = form[at]
        if sign == "{":
            flush()
            end = form.find("}", at)
            if end < 0:
                raise ValueError(f"slot without end at character {at} of form {form!r}")
            path, _, rest = form[at + 1 : end].partition(":")
            name, _, argument = rest.partition(" ")
            nodes.append(Slot(tuple(path.split(".")), name, argument))
            at = end + 1
        elif sign == "[":
            flush()
            wordings: list[tuple[Node, ...]] = []
            while True:
                wording, at = _sequence(form, at + 1, closing="|]")
                wordings.append(wording)
                if at >= len(form):
                    raise ValueError(f"bracket without end in form {form!r}")
                if form[at] == "]":
                    break
            nodes.append(Choice(tuple(wordings)))
            at += 1
        elif sign in "]}":
            raise ValueError(f"stray {sign!r} at character {at} of form {form!r}")
        else:
            plain.append(sign)
            at += 1
    flush()
    return tuple(nodes), at


def number(value: int) -> str:
    """House style: words to nine, figures with thousands commas from 10."""
    return _UNITS[value] if 0 <= value < len(_UNITS) else f"{value:,}"


def ordinal(value: int) -> str:
    if 0 < value < len(_ORDINALS):
        return _ORDINALS[value]
    ending = "th" if 10 <= value % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value:,}{ending}"


def plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def possessive(name: str) -> str:
    return name + ("’" if name.endswith("s") else "’s")


def listed(words: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def spoken(value: object) -> str:
    """A fact in house style: small numbers in words, floats without trailing zeros, things by their name."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        raise TypeError("a truth value is no wording; make it an optional string")
    if isinstance(value, int):
        return number(value)
    if isinstance(value, float):
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else str(value)


def on_day(day: date, today: date) -> str:
    """'on Tuesday' within six days either way, 'on 12 March' beyond."""
    if abs((day - today).days) <= 6:
        return f"on {day:%A}"
    return f"on {day.day} {day:%B}"


def _filtered(value: object, slot: Slot, today: date) -> str:
    match slot.filter:
        case "":
            return spoken(value)
        case "s":
            return possessive(spoken(value))
        case "fig" if isinstance(value, int):
            return f"{value:,}"
        case "ord" if isinstance(value, int):
            return ordinal(value)
        case "count" if isinstance(value, int):
            one, _, many = slot.argument.partition("/")
            return f"{number(value)} {one if value == 1 else many or plural(one)}"
        case "pct" if isinstance(value, (int, float)):
            return f"{value:g}%"
        case "lower" if isinstance(value, str):
            return value[:1].lower() + value[1:]
        case "cap" if isinstance(value, str):
            return value[:1].upper() + value[1:]
        case "on" if isinstance(value, date):
            return on_day(_day(value), today)
        case "day" if isinstance(value, date):
            return f"{value:%A}"
        case "date" if isinstance(value, date):
            return f"{value.day} {value:%B}"
        case _:
            raise ValueError(f"filter {slot.filter!r} does not fit {value!r} in slot {'.'.join(slot.path)}")


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _with_article(match: re.Match[str]) -> str:
    letter, opening, word = match.groups()
    if word.isupper() and len(word) > 1 and not word[0].isdigit():
        needs_an = bool(_INITIALS.match(word)) or word[0] in "AEIO"
    else:
        needs_an = bool(_SPOKEN_AN.match(word)) and not _SPOKEN_A.match(word)
    return letter + ("n " if needs_an else " ")


def tidied(text: str) -> str:
    """One text in house style: single spaces, right articles, capitals at sentence starts, curly apostrophes."""
    text = re.sub(r"\s+", " ", text.replace("'", "’")).strip()
    text = re.sub(r" (?=[,.;:?!](?:\s|$|”))", "", text)
    text = re.sub(r",(?=[,.;:])", "", text)
    text = re.sub(r"\.(”?)\.", r".\1", text)
    text = _ARTICLE.sub(_with_article, text)
    return _SENTENCE_START.sub(lambda match: match.group(1) + match.group(2).upper(), text)


class Decks:
    """Remembers which of each set of forms was used last, so that a wording does not come back soon."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._order: dict[tuple[str, ...], list[str]] = {}

    def draw_order(self, forms: tuple[str, ...]) -> list[str]:
        """The forms in the order they should be tried: one of the longer unused first."""
        order = self._order.get(forms)
        if order is None:
            order = self._rng.sample(forms, len(forms))
            self._order[forms] = order
        rested = order[: max(1, len(order) // 2)]
        first = rested[self._rng.randrange(len(rested))]
        return [first, *(form for form in order if form != first)]

    def used(self, forms: tuple[str, ...], form: str) -> None:
        order = self._order[forms]
        order.remove(form)
        order.append(form)


class Pen:
    """Writes forms about one story's facts at one moment of it."""

    def __init__(self, facts: object, dates: Mapping[str, date], today: date, rng: Random, decks: Decks) -> None:
        self._facts = facts
        self._dates = dates
        self._today = today
        self._rng = rng
        self._decks = decks

    def write(self, forms: tuple[str, ...]) -> str:
        """One of the forms, filled and tidied; raises MissingFactError if every form lacks a fact."""
        for form in self._decks.draw_order(forms):
            try:
                text = tidied(self._fill(parsed(form)))
            except MissingFactError:
                continue
            self._decks.used(forms, form)
            return text
        raise MissingFactError(f"no wording has all its facts: {forms[0]!r} and {len(forms) - 1} more")

    def _fill(self, nodes: tuple[Node, ...]) -> str:
        parts: list[str] = []
        for node in nodes:
            if isinstance(node, str):
                parts.append(node)
            elif isinstance(node, Slot):
                parts.append(self._slot(node))
            else:
                parts.append(self._choice(node))
        return "".join(parts)

    def _choice(self, node: Choice) -> str:
        for wording in self._rng.sample(node.wordings, len(node.wordings)):
            try:
                return self._fill(wording)
            except MissingFactError:
                continue
        raise MissingFactError("no wording of a choice has all its facts")

    def _slot(self, slot: Slot) -> str:
        head = slot.path[0]
        if head == "on":
            return on_day(self._today, self._today)
        if head == "today":
            return f"{self._today:%A}"
        value: object = self._dates.get(head)
        if value is None:
            value = self._facts
            for attribute in slot.path:
                value = getattr(value, attribute)
                if value is None:
                    raise MissingFactError(".".join(slot.path))
        text = _filtered(value, slot, self._today)
        # A fact may itself be a form, as the sentences of a table of matters are.
        return self._fill(parsed(text)) if "{" in text or "[" in text else text
