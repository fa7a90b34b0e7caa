"""The categories of a release: which id each section and topic of the news has, for news encoders that read them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device_app.wire.vocabulary import VocabularyDiffers

UNKNOWN_CATEGORY = 0
"""The id of a section or topic that the release does not know; encoders mask it."""
CATEGORIES_LIMIT = 20_000
HEADER = "ownfeed categories 1"

Topic = tuple[str, str]
"""A section and a topic within it: 'general' of two sections are two topics."""


@dataclass(frozen=True)
class CategoryVocabulary:
    """Sections (NAML's categories) and topics (its subcategories) in the order of their ids, from 1 on.

    Raises ValueError unless names are distinct and not empty, and each topic's section is one of `sections`.
    """

    sections: tuple[str, ...]
    topics: tuple[Topic, ...]

    def __post_init__(self) -> None:
        if (count := len(self.sections) + len(self.topics)) > CATEGORIES_LIMIT:
            raise ValueError(f"sections and topics must be at most {CATEGORIES_LIMIT:,}, got {count:,}")
        if len(self._sections) != len(self.sections) or len(self._topics) != len(self.topics):
            raise ValueError("sections and topics must be distinct")
        if "" in self._sections or any(topic == "" for _, topic in self.topics):
            raise ValueError("sections and topics must have names")
        if lost := [section for section, _ in self.topics if section not in self._sections]:
            raise ValueError(f"topics must be of the sections given, got one of {lost[0]!r}")

    @cached_property
    def _sections(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.sections, start=UNKNOWN_CATEGORY + 1)}

    @cached_property
    def _topics(self) -> dict[Topic, int]:
        return {name: place for place, name in enumerate(self.topics, start=UNKNOWN_CATEGORY + 1)}

    @property
    def section_rows(self) -> int:
        """Rows of a table of section vectors, the unknown one included."""
        return 1 + len(self.sections)

    @property
    def topic_rows(self) -> int:
        """Rows of a table of topic vectors, the unknown one included."""
        return 1 + len(self.topics)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of `pack`, which is the hash of the release's blob `categories`."""
        return hashlib.sha256(self.pack()).hexdigest()

    def encode(self, news: Sequence[Topic]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Section and topic of each news -> section ids [n], topic ids [n]; 0 where the release knows none."""
        sections = [self._sections.get(section, UNKNOWN_CATEGORY) for section, _ in news]
        topics = [self._topics.get(each, UNKNOWN_CATEGORY) for each in news]
        return np.asarray(sections, dtype=np.int64), np.asarray(topics, dtype=np.int64)

    def pack(self) -> bytes:
        """The blob: JSON in UTF-8."""
        content = {"format": HEADER, "sections": self.sections, "topics": self.topics}
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def unpack(cls, blob: bytes) -> CategoryVocabulary:
        """Read `pack`. Raises VocabularyDiffers for another format, ValueError for names that can't be."""
        try:
            content: Any = json.loads(blob)
            if content["format"] != HEADER:
                raise ValueError(content["format"])
            sections, topics = content["sections"], [(section, topic) for section, topic in content["topics"]]
            if not all(isinstance(name, str) for name in (*sections, *(name for pair in topics for name in pair))):
                raise TypeError("a name is no text")
        except (ValueError, KeyError, TypeError, RecursionError) as broken:
            raise VocabularyDiffers("categories", f"JSON of format {HEADER!r}", repr(blob[:40])) from broken
        return cls(tuple(sections), tuple(topics))
