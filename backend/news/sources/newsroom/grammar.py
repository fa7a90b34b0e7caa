"""A small text engine: forms with slots and alternatives, agreement, house style, and little repetition.

A form is plain English with two marks. ``{club.coach.last}`` is a slot: attributes of the facts, formatted by
house style, optionally through a filter as in ``{seats:count seat}``. ``[held|kept|]`` is one of several
wordings, nested as deep as needed. A wording whose slot is None is never chosen, so optional facts need no code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from itertools import pairwise
from random import Random

from backend.news.sources.newsroom.people import Person

_UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_ORDINALS = ("zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_SPOKEN_AN = re.compile(r"(?:[aeiou]|8|11\b|11,|18\b|18,|hour|honest|honou?r|heir)", re.IGNORECASE)
_SPOKEN_A = re.compile(r"(?:eu|uni(?!n|mp|d)|us(?:e|ual|ur)|util|one\b|one-|once|ubiq|ufo|ukulele)", re.IGNORECASE)
_AFTER_FIGURE = re.compile(r"%|\d|,\d")
_INITIALS = re.compile(r"[FHLMNRSX](?=[A-Z0-9])")
_QUOTED = re.compile(r"“([^”]+)”")
_SMALL_WORD = re.compile(r"\b[a-z]+")
_SAID_WORDS, _TOLD_WORDS = 4, 6
_ARTICLE = re.compile(r"\b([Aa])n? (?=[“‘(]*([A-Za-z0-9][\w,’-]*))")
_SENTENCE_START = re.compile(r"((?:^|[.?!]\s+|\.[”’)]+\s+)[“‘(]*)([a-zà-ÿ])")


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


@cache
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
    for index, (node, following) in enumerate(pairwise(nodes)):
        if isinstance(node, Slot) and not node.filter and isinstance(following, str) and _AFTER_FIGURE.match(following):
            nodes[index] = Slot(node.path, "fig", "")
    return tuple(nodes), at


@cache
def heads_of(forms: tuple[str, ...]) -> frozenset[str]:
    """The facts that the slots of the forms start from."""
    return frozenset(head for form in forms for head in re.findall(r"\{(\w+)", form))


def number(value: int) -> str:
    """House style: words to nine, figures with thousands commas from 10."""
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
    """One text in house style: single spaces, right articles, capitals at sentence starts, curly apostrophes."""
    text = _SPACES.sub(" ", text.replace("'", "’")).strip()
    text = _SPACE_BEFORE_SIGN.sub("", text)
    text = _SIGNS.sub(lambda match: match[1] or match[2] or "", text)
    text = _ARTICLE.sub(_with_article, text)
    return _SENTENCE_START.sub(lambda match: match[1] + match[2].upper(), text)


def quotes(text: str) -> set[str]:
    """The sentences a text quotes, but for mere shreds, in a shape that two writings of one share."""
    sentences = (part for quote in _QUOTED.findall(text) for part in re.split(r"[.?!,;] ", quote))
    plain = (" ".join(re.findall(r"[\w’]+", sentence.casefold())) for sentence in sentences)
    return {words for words in plain if words.count(" ") >= _SAID_WORDS - 1}


class Decks:
    """Remembers which of each set of forms was used last, so that a wording does not come back soon."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._order: dict[tuple[str, ...], list[str]] = {}
        self._uses: Counter[tuple[str, ...]] = Counter()
        self._wordings: dict[int, list[int]] = {}

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
        self._uses[forms] += 1

    def wordings(self, choice: Choice) -> list[int]:
        """How often each wording of a bracket has been used; parsed forms are kept, so their identity is theirs."""
        return self._wordings.setdefault(id(choice), [0] * len(choice.wordings))

    def wear(self, forms: tuple[str, ...]) -> float:
        """How often each of the forms has been used on average."""
        return self._uses[forms] / len(forms)


class Pen:
    """Writes forms about one story's facts at one moment of it."""

    def __init__(self, facts: object, dates: Mapping[str, date], today: date, rng: Random, decks: Decks) -> None:
        self._facts = facts
        self._dates = dates
        self.today = today
        self._rng = rng
        self._decks = decks
        self._introduces = False
        self._met: dict[str, str] = {}
        self._said: set[str] = set()

    def start(self, *, introduces: bool) -> None:
        """Starts a new text; if it `introduces`, people have their full name and role first, their last name later."""
        self._introduces = introduces
        self._met = {}
        self._said = set()

    def wear(self, forms: tuple[str, ...]) -> float:
        return self._decks.wear(forms)

    def people(self, forms: tuple[str, ...]) -> set[str]:
        """The facts named in the forms that are people: who a paragraph is about."""
        return {head for head in heads_of(forms) if isinstance(getattr(self._facts, head, None), Person)}

    def write(self, forms: tuple[str, ...]) -> str:
        """One of the forms, filled and tidied; raises MissingFactError if each lacks a fact or repeats the text."""
        for form in self._decks.draw_order(forms):
            met, said = self._met.copy(), self._said.copy()
            try:
                text = tidied(self._fill(parsed(form)))
            except MissingFactError:
                self._met, self._said = met, said
                continue
            quoted = quotes(text)
            if not quoted.isdisjoint(self._said):
                self._met, self._said = met, said
                continue
            self._said |= quoted
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
        uses = self._decks.wordings(node)
        for index in sorted(range(len(uses)), key=lambda index: uses[index] + self._rng.random() * 2):
            met, said = self._met.copy(), self._said.copy()
            try:
                text = self._fill(node.wordings[index])
            except MissingFactError:
                self._met, self._said = met, said
                continue
            uses[index] += 1
            return text
        raise MissingFactError("no wording of a choice has all its facts")

    def _slot(self, slot: Slot) -> str:
        head = slot.path[0]
        if head == "on":
            return _filtered(on_day(self.today, self.today), slot, self.today)
        if head == "today":
            return f"{self.today:%A}"
        value: object = self._dates.get(head)
        if value is None:
            owner: object = None
            value = self._facts
            for attribute in slot.path:
                owner, value = value, getattr(value, attribute)
                if value is None:
                    raise MissingFactError(".".join(slot.path))
            if isinstance(value, Person):
                owner, value = value, value.name
            if self._introduces and isinstance(owner, Person) and value in (owner.name, owner.family):
                value = self._named(owner, short=value == owner.family, plain=bool(slot.filter))
        if isinstance(value, str) and len(_SMALL_WORD.findall(value)) >= _TOLD_WORDS:
            if value in self._said:
                raise MissingFactError(f"{'.'.join(slot.path)}, since the text has said so")
            self._said.add(value)
        text = _filtered(value, slot, self.today)
        # A fact may itself be a form, as the sentences of a table of matters are.
        return self._fill(parsed(text)) if "{" in text or "[" in text else text

    def _named(self, person: Person, *, short: bool, plain: bool) -> str:
        """How the text calls a person here; with their role if it has not said who they are."""
        known = person.name in self._met
        if self._met.setdefault(person.family, person.name) != person.name:
            self._met[person.family] = ""  # from now on, neither namesake goes by the family name alone
        elif known:
            return person.family
        self._met[person.name] = person.name
        return f"{person.name}, {person.role}," if short and person.role and not plain and not known else person.name
