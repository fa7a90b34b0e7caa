"""The generated newspaper as a source of news: editions of `newsroom`, which knows nothing of the backend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime

from backend.news.errors import NewsError
from backend.news.item import NewsItem
from newsroom.edition import TooLittleToSayError, edition


class NewspaperDry(NewsError):
    """The newspaper's sections together have too few facts for the number of articles asked."""

    code, status, title = "paper-dry", 422, "The newspaper has too little to say"

    def __init__(self, written: int, wanted: int) -> None:
        super().__init__(
            f"The newspaper has matter for {written:,} articles, {wanted:,} are wanted; ask for fewer, or more days.",
            field="articles",
            limit=f"{written:,}",
        )


def newspaper(now: datetime, *, seed: int = 7, articles: int = 6000, days: int = 14) -> Iterator[NewsItem]:
    """The edition of the last `days` before `now`, by publication time; the same for the same arguments.

    Raises NewspaperDry when more articles are asked for than it can write, and ValueError as `newsroom.edition` does.
    """
    try:
        written = edition(now, seed=seed, articles=articles, days=days)
    except TooLittleToSayError as spent:
        raise NewspaperDry(spent.written, spent.wanted) from spent
    return (NewsItem(**asdict(article)) for article in written)
