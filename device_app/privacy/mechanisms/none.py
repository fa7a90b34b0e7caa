"""Reporting nothing: every device gets the same default list."""

from __future__ import annotations

from dataclasses import dataclass

NAME = "none"


@dataclass(frozen=True)
class NothingReported:
    """Sends no function of the reader's clicks.

    Formal guarantees: epsilon = 0 for what the request carries. That this device asked at all, when, and from which
    network address is visible to the server, as with any request.
    """

    epsilon_per_report: float = 0.0

    def words(self) -> str:
        """The mechanism in one sentence for the reader."""
        return "Nothing about you: this device asks for the list that every device gets and sorts it here."
