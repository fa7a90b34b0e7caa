"""Writes forms about the facts of one story, with little repetition over the whole paper."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import date
from random import Random

from newsroom.forms import FormNode, Forms, Slot, Wordings, heads_of, parsed
from newsroom.people import Person
from newsroom.style import filtered, on_day, quotes, tidied

_SMALL_WORD = re.compile(r"\b[a-z]+")
_STATEMENT_WORDS = 6


class MissingFactError(LookupError):
    """A wording needs a fact that is None in this story, so another wording must be chosen."""


class WordingUse:
    """Remembers which of each set of forms was used last, so that a wording is not repeated soon."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._order: dict[Forms, list[str]] = {}
        self._uses: Counter[Forms] = Counter()
        self._wordings: dict[int, list[int]] = {}

    def draw_order(self, forms: Forms) -> list[str]:
        """Return the forms in the order in which to try them: first one unused for longer."""
        order = self._order.get(forms)
        if order is None:
            order = self._rng.sample(forms, len(forms))
            self._order[forms] = order
        rested = order[: max(1, len(order) // 2)]
        first = rested[self._rng.randrange(len(rested))]
        return [first, *(form for form in order if form != first)]

    def used(self, forms: Forms, form: str) -> None:
        order = self._order[forms]
        order.remove(form)
        order.append(form)
        self._uses[forms] += 1

    def wordings(self, choice: Wordings) -> list[int]:
        """Return how often each wording of a bracket has been used; parsed forms are cached and identify it."""
        return self._wordings.setdefault(id(choice), [0] * len(choice.wordings))

    def wear(self, forms: Forms) -> float:
        """Return how often each of the forms has been used on average."""
        return self._uses[forms] / len(forms)


class Writer:
    """Writes forms about one story's facts at one moment of it."""

    def __init__(self, facts: object, dates: Mapping[str, date], today: date, rng: Random, use: WordingUse) -> None:
        self._facts = facts
        self._dates = dates
        self.today = today
        self._rng = rng
        self._use = use
        self._introduces = False
        self._met: dict[str, str] = {}
        self._statements: set[str] = set()

    def start(self, *, introduces: bool) -> None:
        """Start a new text; if it `introduces`, people have their full name and role first, their last name later."""
        self._introduces = introduces
        self._met = {}
        self._statements = set()

    def wear(self, forms: Forms) -> float:
        return self._use.wear(forms)

    def people(self, forms: Forms) -> set[str]:
        """Return the facts in the forms that are people, whom a paragraph is about."""
        return {head for head in heads_of(forms) if isinstance(getattr(self._facts, head, None), Person)}

    def write(self, forms: Forms) -> str:
        """Write one of the forms, filled and tidied; raises MissingFactError if each lacks a fact or repeats."""
        for form in self._use.draw_order(forms):
            met, statements = self._met.copy(), self._statements.copy()
            try:
                text = tidied(self._fill(parsed(form)))
            except MissingFactError:
                self._met, self._statements = met, statements
                continue
            quoted = quotes(text)
            if not quoted.isdisjoint(self._statements):
                self._met, self._statements = met, statements
                continue
            self._statements |= quoted
            self._use.used(forms, form)
            return text
        raise MissingFactError(f"no wording has all its facts: {forms[0]!r} and {len(forms) - 1} more")

    def _fill(self, nodes: tuple[FormNode, ...]) -> str:
        parts: list[str] = []
        for node in nodes:
            if isinstance(node, str):
                parts.append(node)
            elif isinstance(node, Slot):
                parts.append(self._slot(node))
            else:
                parts.append(self._choice(node))
        return "".join(parts)

    def _choice(self, node: Wordings) -> str:
        uses = self._use.wordings(node)
        for index in sorted(range(len(uses)), key=lambda index: uses[index] + self._rng.random() * 2):
            met, statements = self._met.copy(), self._statements.copy()
            try:
                text = self._fill(node.wordings[index])
            except MissingFactError:
                self._met, self._statements = met, statements
                continue
            uses[index] += 1
            return text
        raise MissingFactError("no wording of a choice has all its facts")

    def _slot(self, slot: Slot) -> str:
        head = slot.path[0]
        if head == "on":
            return filtered(on_day(self.today, self.today), slot, self.today)
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
        if isinstance(value, str) and len(_SMALL_WORD.findall(value)) >= _STATEMENT_WORDS:
            if value in self._statements:
                raise MissingFactError(f"{'.'.join(slot.path)}, since the text has said so")
            self._statements.add(value)
        text = filtered(value, slot, self.today)
        # A fact may itself be a form, as the sentences of a table of matters are.
        return self._fill(parsed(text)) if "{" in text or "[" in text else text

    def _named(self, person: Person, *, short: bool, plain: bool) -> str:
        """Return how the text calls a person here; with their role if they were not introduced yet."""
        known = person.name in self._met
        if self._met.setdefault(person.family, person.name) != person.name:
            self._met[person.family] = ""  # from now on, neither namesake goes by the family name alone
        elif known:
            return person.family
        self._met[person.name] = person.name
        return f"{person.name}, {person.role}," if short and person.role and not plain and not known else person.name
