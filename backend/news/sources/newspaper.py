"""The generated newspaper as a source: editions of `newsroom`, which knows nothing of the server."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, ClassVar

from backend.news.errors import NewsError
from backend.news.item import NewsItem
from backend.news.sources.source import SourceOption, StaticSource


class NewspaperDry(NewsError):
    """The newspaper's sections together have too few facts for the requested number of articles."""

    code, status, title = "paper-dry", 422, "The newspaper has too few facts"

    def __init__(self, written: int, wanted: int) -> None:
        super().__init__(
            f"The newspaper has facts for {written:,} articles, not {wanted:,}; request fewer articles or more days.",
            field="articles",
            limit=f"{written:,}",
        )


def newspaper(now: datetime, *, seed: int = 7, articles: int = 6000, days: int = 14) -> Iterator[NewsItem]:
    """The edition of the last `days` before `now`, by publication time; the same for the same arguments.

    Raises NewspaperDry if it can't write that many articles, and ValueError as `newsroom.edition` does.
    """
    from newsroom.edition import TooFewFacts, edition  # its data files take half a second to read

    try:
        written = edition(now, seed=seed, articles=articles, days=days)
    except TooFewFacts as spent:
        raise NewspaperDry(spent.written, spent.wanted) from spent
    return (NewsItem(**asdict(article)) for article in written)


@dataclass(frozen=True)
class NewspaperSource(StaticSource):
    """An edition of the generated newspaper, up to the time of reading."""

    name: ClassVar[str] = "newsroom"
    help: ClassVar[str] = "Ownfeed's own generated newspaper."

    articles: Annotated[int, SourceOption(minimum=1, maximum=100_000)] = 6_000
    days: Annotated[int, SourceOption("Spread over this many days before now.", minimum=1, maximum=60)] = 14
    seed: Annotated[int, SourceOption("The same seed writes the same newspaper.")] = 7

    @property
    def title(self) -> str:
        """The same for every edition."""
        return self.name

    def read(self, now: datetime) -> Iterator[NewsItem]:
        """The edition of the days before `now`. Raises NewspaperDry."""
        return newspaper(now, seed=self.seed, articles=self.articles, days=self.days)
