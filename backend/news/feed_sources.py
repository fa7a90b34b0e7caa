"""What the pool records as the source of a feed's articles."""

from __future__ import annotations

from pathlib import Path

from backend.news.feed_addresses import KEY_CHARS, key_of

FILE_PREFIX = "rss "
"""Of the source of a feed that is a file."""


def source_of(location: str) -> str:
    """The source of a feed at an address or in a file, at most 200 characters."""
    if "://" in location:
        return key_of(location)
    path = str(Path(location).absolute())
    kept = KEY_CHARS - len(FILE_PREFIX)
    return FILE_PREFIX + (path if len(path) <= kept else f"…{path[1 - kept :]}")


def is_feed(source: str) -> bool:
    """Whether a source is a feed, at an address or in a file; other sources are archives and the newsroom."""
    return "://" in source or source.startswith(FILE_PREFIX)
