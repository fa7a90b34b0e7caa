"""The sections of news from feeds: their names, what feeds and folders call them, and sentences typical of each."""

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
    """A section's name that can't be one."""

    code, status, title = "section-refused", 422, "This can't be a section"


@dataclass(frozen=True)
class NewsSection:
    """One section: `labels` are other names of it, lower case; `sentences` are invented headlines typical of it."""

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
    """Every sentence, section by section."""
    return [sentence for section in taxonomy() for sentence in section.sentences]


def sorter_name(encoder: str) -> str:
    """What tells sections given under this encoder and taxonomy from those given under others; 32 characters."""
    return blake2b(encoder.encode() + b"\0" + FILE.read_bytes(), digest_size=16).hexdigest()


def section_named(label: str) -> str | None:
    """The section that a feed, a folder or a person means by a label; None where it names none of them."""
    wanted = " ".join(label.lower().split())
    return next((one.name for one in taxonomy() if wanted == one.name or wanted in one.labels), None)


def chosen_section(label: str) -> str:
    """The section that a person has chosen for a feed: one of the taxonomy by any of its names, or one of their own.

    Raises SectionRefused for a blank, an overlong or an unprintable name.
    """
    wanted = " ".join(label.lower().split())
    if not wanted or len(wanted) > LABEL_CHARS or not wanted.isprintable():
        raise SectionRefused(f"A section's name has 1 to {LABEL_CHARS} printable characters.", field="section")
    return section_named(wanted) or wanted
