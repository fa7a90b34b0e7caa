"""The feeds that the reader follows, as listed by the server that fetches them.

A feed is known here by its publisher's name, which every card carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class KnownFeed:
    """One feed. publisher: the name on its cards.

    title: its name for the reader. folder: '' at top level. site: the address of its site, or ''. state: its last
    answer, described in a sentence, or ''; tone: whether that is normal.
    """

    publisher: str
    title: str
    folder: str = ""
    site: str = ""
    state: str = ""
    tone: Literal["good", "due", "bad"] = "good"


class FeedDirectory(Protocol):
    """Lists the followed feeds; answers from memory, since every view of the page asks it."""

    def feeds(self) -> Sequence[KnownFeed]:
        """Return all followed feeds, in the reader's order."""
        ...


class NoDirectory:
    """A directory without feeds: each publisher with stories then counts as a feed at top level."""

    def feeds(self) -> Sequence[KnownFeed]:
        """Return nothing."""
        return ()
