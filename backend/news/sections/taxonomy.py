"""The sections of articles from feeds: their names, what feeds and folders call them, and typical sentences."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path

from backend.errors import OwnfeedError

FILE = Path(__file__).with_name("taxonomy.toml")
LABEL_CHARS = 80


class SectionRefused(OwnfeedError):
    """A name that can't be a section's name."""

    code, status, title = "section-refused", 422, "This can't be a section"


@dataclass(frozen=True)
class NewsSection:
    """One section. labels: its other names, in lower case. sentences: invented typical headlines."""

    name: str
    labels: tuple[str, ...]
    sentences: tuple[str, ...]


@cache
def taxonomy() -> tuple[NewsSection, ...]:
    """All sections, in the order of the file."""
    with FILE.open("rb") as file:
        found = tomllib.load(file)
    return tuple(NewsSection(name, tuple(each["labels"]), tuple(each["sentences"])) for name, each in found.items())


def sentences() -> list[str]:
    """The sentences of all sections, in order."""
    return [sentence for section in taxonomy() for sentence in section.sentences]


def sorter_name(encoder: str) -> str:
    """A hash of this encoder and the taxonomy, 32 characters, which marks the sections assigned with them."""
    return blake2b(encoder.encode() + b"\0" + FILE.read_bytes(), digest_size=16).hexdigest()


def section_named(label: str) -> str | None:
    """The section that a feed, a folder or a person means by a label; None if it is unknown."""
    wanted = " ".join(label.lower().split())
    return next((one.name for one in taxonomy() if wanted == one.name or wanted in one.labels), None)


def chosen_section(label: str) -> str:
    """The section that a person has chosen for a feed: one of the taxonomy by any of its names, or a new one.

    Raises SectionRefused for a blank, overlong or unprintable name.
    """
    wanted = " ".join(label.lower().split())
    if not wanted or len(wanted) > LABEL_CHARS or not wanted.isprintable():
        raise SectionRefused(f"A section's name has 1 to {LABEL_CHARS} printable characters.", field="section")
    return section_named(wanted) or wanted
