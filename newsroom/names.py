"""Given and family names by culture, from which people who do not exist are made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from newsroom.tables import document, row


@dataclass(frozen=True)
class Culture:
    women: tuple[str, ...]
    men: tuple[str, ...]
    families: tuple[str, ...]


@cache
def cultures() -> dict[str, Culture]:
    """The cultures by name, from data/names.toml."""
    return {name: row(Culture, one, "names.toml", name) for name, one in document("names.toml").items()}
