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
    """How a source's field, `Annotated[type, SourceOption(...)]`, appears on the command line.

    A field without a default is an argument, one with a default an option `--field-name`. minimum, maximum: of a
    number, both inclusive. many: the argument may be given several times; each value becomes a source.
    """

    help: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    many: bool = False


class FeedLocation(NamedTuple):
    """The address of a source that changes, which the server follows from the first read on.

    networks: non-public networks such as '10.1.0.0/16' allowed for this read, instead of those of the settings.
    pictures: True allows its publisher's pictures; False keeps the previous setting.
    """

    location: str
    networks: tuple[str, ...] = ()
    pictures: bool = False


class StaticSource:
    """A source that doesn't change, so the server doesn't follow it."""

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
        """The name that the pool records as the source of its articles, at most 200 characters."""

    @property
    def feed(self) -> FeedLocation | None:
        """Its feed, or None if the source doesn't change after being read."""

    def read(self, now: datetime) -> Iterator[NewsItem | Rejection]:
        """Its articles as of `now`; a row that can't be read becomes a Rejection.

        Raises SourceError, at once or during iteration, if the source as a whole can't be read.
        """
