"""The forms that ask for rounds: what stands in them stays there when it is refused, under the labels of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Form

from backend.federation.errors import RoundImpossible
from backend.federation.rounds.opening import COHORT_DEFAULT, minimum_of
from backend.federation.rounds.scheduling import Schedule
from backend.federation.strategies.strategy import RoundRequest
from device_app.prose import Prose

WORDS = Prose("backend.console", "words.toml")

CHOSEN = "small_ranker_secure"
"""What the form offers first."""
SECONDS_DEFAULT = 60
LABELS = WORDS.table("round_labels")
FormText = Annotated[str, Form()]
"""Whatever was typed: what is refused comes back in the form, in its words."""


@dataclass(frozen=True)
class RoundForm:
    """What an operator has typed, as text."""

    system: FormText = CHOSEN
    cohort: FormText = str(COHORT_DEFAULT)
    cohort_minimum: FormText = str(minimum_of(COHORT_DEFAULT, None))
    seconds: FormText = str(SECONDS_DEFAULT)
    every_minutes: FormText = ""
    waiting: FormText = ""

    def request(self) -> RoundRequest:
        """The round that is asked for. Raises RoundImpossible for what is no number."""
        return RoundRequest(
            self.system.strip(),
            _whole("cohort", self.cohort),
            _whole("cohort_minimum", self.cohort_minimum),
            _number("seconds", self.seconds),
        )

    def schedule(self) -> Schedule:
        """The schedule that is asked for. Raises RoundImpossible likewise, or for limits."""
        return Schedule(
            self.request(),
            _number("every_minutes", self.every_minutes) if self.every_minutes.strip() else None,
            _whole("waiting", self.waiting) if self.waiting.strip() else None,
        )


def _number(field: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as odd:
        raise RoundImpossible(f"{field} is no number.", field=field, limit="a number") from odd


def _whole(field: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as odd:
        raise RoundImpossible(f"{field} is no whole number.", field=field, limit="a whole number") from odd
