"""Gives a section to stories that came without one, as soon as they have a vector."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine, bindparam, exists, func, select, update

from backend.db.engine import reading, writing
from backend.db.tables import FeedRow, NewsRow, VectorRow
from backend.news.item import UNSORTED
from backend.news.pool_state import lock_version, raise_version
from backend.sections.classifier import SectionClassifier, TextEncoder, text_of, with_neighbours
from backend.sections.taxonomy import sentences, taxonomy

STORIES_AT_ONCE = 2_048
SOURCE_CHARS = 200
"""The pool notes so much of a feed's address."""
NEIGHBOURS_LIMIT = 10_000
"""So many of the last sorted stories are asked as neighbours."""


class SectionSorter:
    """Sorts the pool's stories whose section is UNSORTED; keeps the classifier of the encoder in use."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._classifier: tuple[str, SectionClassifier] | None = None

    def waiting(self) -> bool:
        """Whether any story has no section yet; one look into the database."""
        with reading(self._engine) as connection:
            return bool(connection.execute(select(exists().where(_UNSORTED))).scalar_one())

    def sort_waiting(self, open_encoder: Callable[[], TextEncoder | None]) -> int:
        """A step if any story waits; the encoder is opened only then, and None of it lets them wait on."""
        encoder = open_encoder() if self.waiting() else None
        return 0 if encoder is None else self.step(encoder)

    def step(self, encoder: TextEncoder) -> int:
        """Sort what has a vector of this encoder, in transactions of STORIES_AT_ONCE; how many stories that were."""
        done = 0
        while some := self._some(encoder):
            done += some
        return done

    def _some(self, encoder: TextEncoder) -> int:
        with reading(self._engine) as connection:
            stories = _stories(connection, encoder.digest)
            if not stories:
                return 0
            classifier = self._ready(encoder)
            known, known_vectors = _settled(connection, encoder.digest, classifier.names)
        texts = encoder.encode([text_of(title, abstract) for _, title, abstract in stories])
        mixed = with_neighbours(classifier.probabilities(texts), texts, known, known_vectors)
        chosen = [classifier.names[row] for row in mixed.argmax(axis=1)]
        changes = [
            {"at": number, "title_then": title, "new": section}
            for (number, title, _), section in zip(stories, chosen, strict=True)
        ]
        with writing(self._engine) as connection:
            lock_version(connection)
            # A story that another delivery has changed meanwhile keeps what that delivery says.
            here = (NewsRow.number == bindparam("at")) & (NewsRow.title == bindparam("title_then")) & _UNSORTED
            connection.execute(
                update(NewsRow).where(here, NewsRow.topic == UNSORTED).values(topic=bindparam("new")), changes
            )
            connection.execute(update(NewsRow).where(here).values(section=bindparam("new")), changes)
            raise_version(connection)
        return len(stories)

    def _ready(self, encoder: TextEncoder) -> SectionClassifier:
        if self._classifier is None or self._classifier[0] != encoder.digest:
            self._classifier = (encoder.digest, SectionClassifier(taxonomy(), encoder.encode(sentences())))
        return self._classifier[1]


_UNSORTED = (NewsRow.section == UNSORTED) & NewsRow.taken_down_at.is_(None)


def _stories(connection: Connection, digest: str) -> list[tuple[int, str, str]]:
    """(number, title, abstract) of the next stories to sort, which have a vector: what has none is not on offer."""
    query = (
        select(NewsRow.number, NewsRow.title, NewsRow.abstract)
        .join(VectorRow, (VectorRow.news == NewsRow.number) & (VectorRow.encoder == digest))
        .where(_UNSORTED)
        .order_by(NewsRow.number)
        .limit(STORIES_AT_ONCE)
    )
    return [(number, title, abstract) for number, title, abstract in connection.execute(query)]


def _settled(
    connection: Connection, digest: str, names: tuple[str, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """One-hot sections [m, S] and vectors [m, D] of the last stories from feeds that have a section of the taxonomy."""
    query = (
        select(NewsRow.section, VectorRow.vector)
        .join(VectorRow, (VectorRow.news == NewsRow.number) & (VectorRow.encoder == digest))
        .where(NewsRow.section.in_(names), NewsRow.source.in_(select(func.substr(FeedRow.url, 1, SOURCE_CHARS))))
        .order_by(NewsRow.number.desc())
        .limit(NEIGHBOURS_LIMIT)
    )
    found = connection.execute(query).all()
    known = np.eye(len(names))[[names.index(section) for section, _ in found]]
    vectors = np.frombuffer(b"".join(vector for _, vector in found), "<f4")
    return known, vectors.reshape(len(found), -1) if found else np.empty((0, 0), np.float32)
