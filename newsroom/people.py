"""People of the invented world."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Person:
    """A person of the invented world; `role` is how a text introduces them: 'the health minister'."""

    given: str
    family: str
    she: bool
    role: str = ""

    @property
    def name(self) -> str:
        return f"{self.given} {self.family}"

    @property
    def last(self) -> str:
        return self.family

    @property
    def he(self) -> str:
        return "she" if self.she else "he"

    @property
    def him(self) -> str:
        return "her" if self.she else "him"

    @property
    def his(self) -> str:
        return "her" if self.she else "his"

    @property
    def himself(self) -> str:
        return "herself" if self.she else "himself"

    @property
    def man(self) -> str:
        return "woman" if self.she else "man"
