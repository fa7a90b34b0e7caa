"""The interface of a source of articles: a frozen dataclass of its options.

The package's `SOURCES` lists all sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    from backend.news.item import NewsItem, Rejection


@dataclass(frozen=True)
class SourceOption:
    """How a source's field appears on the command line.

    The field is `Annotated[type, SourceOption(...)]`.

    A field without a default is an argument, one with a default an option `--field-name`. minimum, maximum: of a
    number, both inclusive. many: the argument may be given several times, and each value is a source of its own.
    """

    help: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    many: bool = False


class FeedLocation(NamedTuple):
    """A source that changes at its address: requested conditionally, and refreshed by the server from then on.

    networks: non-public networks such as '10.1.0.0/16' allowed for this read, in place of those of the settings.
    pictures: whether this read allows them (`FeedRow`); False keeps the previous choice.
    """

    location: str
    networks: tuple[str, ...] = ()
    pictures: bool = False


class ReadOnce:
    """A source that doesn't change, so that the server doesn't refresh it."""

    @property
    def feed(self) -> FeedLocation | None:
        """None: there is nothing to follow."""
        return None


class NewsSource(Protocol):
    """A frozen dataclass whose fields are its options.

    name: of the command `ownfeed ingest NAME`. help: one sentence for its help.
    """

    name: ClassVar[str]
    help: ClassVar[str]

    @property
    def title(self) -> str:
        """What the pool records as its articles' source, at most 200 characters."""
        ...

    @property
    def feed(self) -> FeedLocation | None:
        """Its feed, or None if the source doesn't change after being read."""
        ...

    def read(self, now: datetime) -> Iterator[NewsItem | Rejection]:
        """Its articles as of `now`; a row that can't be read becomes a Rejection.

        Raises SourceError, at once or during iteration, if the source as a whole can't be read.
        """
        ...
