"""What a source of news is: a frozen value of its options that can be read. `SOURCES` in the package names them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    from backend.news.item import NewsItem
    from backend.news.report import Rejection


@dataclass(frozen=True)
class SourceOption:
    """What the command line says of a source's field; the field is `Annotated[type, SourceOption(...)]`.

    A field without a default is an argument, one with a default an option `--field-name`.
    minimum, maximum: of a number, both inclusive.
    many: the argument may be given several times, each of which is a source of its own.
    """

    help: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    many: bool = False


class FeedLocation(NamedTuple):
    """A source that changes at its own address: asked for conditionally, and refreshed by the server from then on.

    networks: '10.1.0.0/16' and the like, not public and allowed for this read, in the place of those of the settings.
    pictures: allowed by this read (`FeedRow`); False leaves what was said before.
    """

    location: str
    networks: tuple[str, ...] = ()
    pictures: bool = False


class ReadOnce:
    """A source that doesn't change, so that no server refreshes it."""

    @property
    def feed(self) -> FeedLocation | None:
        """None: there is nothing to follow."""
        return None


class NewsSource(Protocol):
    """A dataclass, frozen, whose fields are its options.

    name: of the command `ownfeed ingest NAME`. help: one sentence for its help.
    """

    name: ClassVar[str]
    help: ClassVar[str]

    @property
    def title(self) -> str:
        """What the pool notes as its news' source, at most 200 characters."""
        ...

    @property
    def feed(self) -> FeedLocation | None:
        """The feed that it is, or None where what is read once doesn't change."""
        ...

    def read(self, now: datetime) -> Iterator[NewsItem | Rejection]:
        """Its news as of `now`; a row that can't be read becomes a Rejection.

        Raises SourceError, at once or while rows are taken, where the source as a whole can't be read.
        """
        ...
