"""Given and family names by culture, from which invented people are named."""

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
    """Return the cultures by name, from data/names.toml."""
    return {name: row(Culture, one, "names.toml", name) for name, one in document("names.toml").items()}
