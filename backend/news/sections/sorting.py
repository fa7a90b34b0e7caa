"""Assigns sections to articles that arrived without one, once they have a vector.

The row records which encoder and taxonomy assigned a section. If either changes, these articles are sorted again once
they have a new vector; sections that articles arrived with stay.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Engine, bindparam, exists, or_, select, update

from backend.db.engine import reading, writing
from backend.db.tables import FeedRow, NewsRow, VectorRow
from backend.news.item import UNSORTED
from backend.news.pool_version import lock_version, raise_version
from backend.news.sections.classifier import SectionClassifier, TextEncoder, text_of, with_neighbours
from backend.news.sections.taxonomy import sentences, sorter_name, taxonomy

STORIES_AT_ONCE = 2_048
NEIGHBOURS_LIMIT = 10_000
"""How many of the last sorted articles serve as neighbours."""


class SectionSorter:
    """Sorts articles without a section, or with one by another sorter; caches the encoder's classifier."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._classifier: tuple[str, SectionClassifier] | None = None

    def waiting(self, digest: str) -> bool:
        """Whether any article waits to be sorted by the encoder of this digest; one database query."""
        with reading(self._engine) as connection:
            return bool(connection.execute(select(exists().where(_due(sorter_name(digest))))).scalar_one())

    def sort_waiting(self, digest: str, open_encoder: Callable[[], TextEncoder | None]) -> int:
        """Sort if any article waits; return how many were sorted, 0 without an encoder.

        The encoder is opened only if needed.
        """
        encoder = open_encoder() if self.waiting(digest) else None
        return 0 if encoder is None else self.step(encoder)

    def step(self, encoder: TextEncoder) -> int:
        """Sort articles with a vector by this encoder, in transactions of STORIES_AT_ONCE; return how many."""
        done = 0
        while some := self._some(encoder):
            done += some
        return done

    def _some(self, encoder: TextEncoder) -> int:
        sorter = sorter_name(encoder.digest)
        with reading(self._engine) as connection:
            stories = _stories(connection, encoder.digest, sorter)
            if not stories:
                return 0
            classifier = self._ready(encoder)
            known, known_vectors = _settled(connection, encoder.digest, classifier.names, sorter)
        texts = encoder.encode([text_of(title, abstract) for _, title, abstract, _ in stories])
        mixed = with_neighbours(classifier.probabilities(texts), texts, known, known_vectors)
        chosen = [classifier.names[row] for row in mixed.argmax(axis=1)]
        changes = [
            {"at": number, "title_then": title, "new": section}
            for (number, title, _, _), section in zip(stories, chosen, strict=True)
        ]
        moved = any(section != before for (_, _, _, before), section in zip(stories, chosen, strict=True))
        with writing(self._engine) as connection:
            lock_version(connection)
            # Skip an article that a delivery has changed meanwhile.
            here = (NewsRow.number == bindparam("at")) & (NewsRow.title == bindparam("title_then")) & _due(sorter)
            connection.execute(
                update(NewsRow).where(here, NewsRow.topic == NewsRow.section).values(topic=bindparam("new")), changes
            )
            connection.execute(update(NewsRow).where(here).values(section=bindparam("new"), sorted_by=sorter), changes)
            if moved:
                raise_version(connection, [change["at"] for change in changes])
        return len(stories)

    def _ready(self, encoder: TextEncoder) -> SectionClassifier:
        if self._classifier is None or self._classifier[0] != encoder.digest:
            self._classifier = (encoder.digest, SectionClassifier(taxonomy(), encoder.encode(sentences())))
        return self._classifier[1]


def _due(sorter: str) -> ColumnElement[bool]:
    """The condition of articles to sort: without a section, or with one assigned by another sorter."""
    return or_(NewsRow.section == UNSORTED, NewsRow.sorted_by != sorter) & NewsRow.taken_down_at.is_(None)


def _stories(connection: Connection, digest: str, sorter: str) -> list[tuple[int, str, str, str]]:
    """(number, title, abstract, section) of the next articles to sort, which have a vector."""
    query = (
        select(NewsRow.number, NewsRow.title, NewsRow.abstract, NewsRow.section)
        .join(VectorRow, (VectorRow.news == NewsRow.number) & (VectorRow.encoder == digest))
        .where(_due(sorter))
        .order_by(NewsRow.number)
        .limit(STORIES_AT_ONCE)
    )
    return [(number, title, abstract, section) for number, title, abstract, section in connection.execute(query)]


def _settled(
    connection: Connection, digest: str, names: tuple[str, ...], sorter: str
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """One-hot sections [m, S] and vectors [m, D] of the feeds' last articles with a section of the taxonomy.

    The section either arrived with the article or was assigned by this sorter.
    """
    query = (
        select(NewsRow.section, VectorRow.vector)
        .join(VectorRow, (VectorRow.news == NewsRow.number) & (VectorRow.encoder == digest))
        .where(NewsRow.section.in_(names), or_(NewsRow.sorted_by.is_(None), NewsRow.sorted_by == sorter))
        .where(NewsRow.source.in_(select(FeedRow.key)))
        .order_by(NewsRow.number.desc())
        .limit(NEIGHBOURS_LIMIT)
    )
    found = connection.execute(query).all()
    known = np.eye(len(names))[[names.index(section) for section, _ in found]]
    vectors = np.frombuffer(b"".join(vector for _, vector in found), "<f4")
    return known, vectors.reshape(len(found), -1) if found else np.empty((0, 0), np.float32)
