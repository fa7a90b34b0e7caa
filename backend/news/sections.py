"""The sections of articles from feeds, and how articles that arrived without one get theirs.

The taxonomy (`sections.toml`) has their names, what feeds and folders call them, and typical sentences.

`SectionClassifier` decides by an article's vector: logistic regression, smoothed over nearest neighbours. The
regression is fitted to the taxonomy's sentences as the current encoder encodes them, so a new encoder needs no other
data. An article is represented by its title and the beginning of its abstract. Its nearest neighbours in the pool then
weigh about twice as much as its own text, since a pool has many articles of each subject, a taxonomy few sentences.

An article is sorted once it has a vector. The row records which encoder and taxonomy assigned a section. If either
changes, these articles are sorted again once they have a new vector; sections that articles arrived with stay.
"""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Engine, bindparam, exists, or_, select, update

from backend.db.engine import reading, writing
from backend.db.tables import FeedRow, NewsRow, VectorRow
from backend.errors import OwnfeedError
from backend.news.item import UNSORTED
from backend.news.pool_version import lock_version, raise_version

FILE = Path(__file__).with_name("sections.toml")
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


TEXT_CHARS = 400
INVERSE_REGULARISATION = 10.0
"""C of the regression, per sentence; values from 3 to 30 change accuracy by half a point."""
NEIGHBOURS = 10
NEIGHBOURS_SHARE = 0.65
STEPS = 2
"""Propagation steps: in the second, neighbours' probabilities already include their own neighbours'."""
NEARNESS_BYTES = 8_000_000
"""Bytes of similarities computed at a time; as many again are needed to select from them."""


Rows = TypeVar("Rows", bound=NDArray[np.floating])


class TextEncoder(Protocol):
    """The part of `backend.embedding.embedder.Embedder` that the classifier uses."""

    digest: str

    def encode(self, titles: Sequence[str]) -> NDArray[np.float32]:
        """float32 [n, D], rows of unit length."""


def text_of(title: str, abstract: str) -> str:
    """The part of an article's text that is classified."""
    return f"{title}. {abstract}"[:TEXT_CHARS] if abstract else title


class SectionClassifier:
    """Softmax regression from centred unit vectors to sections.

    Args:
        sections: the taxonomy, of n sentences in total.
        vectors: float32 [n, D], the sentences' vectors by the encoder whose vectors are classified later.
    """

    def __init__(self, sections: Sequence[NewsSection], vectors: NDArray[np.float32]) -> None:
        self.names = tuple(section.name for section in sections)
        labels = np.repeat(np.arange(len(sections)), [len(section.sentences) for section in sections])
        if vectors.ndim != 2 or len(vectors) != len(labels):
            raise ValueError(f"vectors must have shape [{len(labels)}, D], got {list(vectors.shape)}")
        unit = _unit(vectors.astype(np.float64))
        self._mean = unit.mean(axis=0)
        self._weights = _fitted(_with_one(_unit(unit - self._mean)), labels, len(sections))

    def probabilities(self, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        """float64 [n, sections] of vectors [n, D]; rows sum to 1."""
        from scipy.special import softmax  # slow import, not needed by every server

        rows = _unit(_unit(vectors.astype(np.float64)) - self._mean)
        found: NDArray[np.float64] = softmax(_with_one(rows) @ self._weights, axis=1)
        return found


def with_neighbours(
    probabilities: NDArray[np.float64],
    vectors: NDArray[np.float32],
    known: NDArray[np.float64],
    known_vectors: NDArray[np.float32],
) -> NDArray[np.float64]:
    """Probabilities [n, S] of articles with vectors [n, D], each averaged with those of its nearest neighbours.

    known [m, S], known_vectors [m, D]: other articles, whose sections are known. The neighbours are the NEIGHBOURS
    nearest by cosine among both; if there are fewer, they weigh less.
    """
    around = _unit(np.concatenate([vectors, known_vectors]) if len(known) else vectors)
    centred = _unit(around - around.mean(axis=0, dtype=np.float64).astype(around.dtype))
    count = min(NEIGHBOURS, len(around) - 1)
    if count < 1:
        return probabilities
    at_once = max(1, NEARNESS_BYTES // centred[:, 0].nbytes)
    rows = np.arange(len(probabilities))
    nearest = np.concatenate(
        [_nearest(centred, rows[start : start + at_once], count) for start in range(0, len(rows), at_once)]
    )
    share = NEIGHBOURS_SHARE * count / NEIGHBOURS
    mixed = probabilities
    for _ in range(STEPS):
        others = np.concatenate([mixed, known]) if len(known) else mixed
        mixed = (1 - share) * probabilities + share * others[nearest].mean(axis=1)
    return mixed


def _nearest(rows: Rows, queries: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Return the `count` rows nearest to each of the rows `queries`, excluding the row itself."""
    farness = -(rows[queries] @ rows.T)
    farness[np.arange(len(queries)), queries] = np.inf
    found: NDArray[np.intp] = np.argpartition(farness, count - 1, axis=1)[:, :count]
    return found


def _fitted(rows: NDArray[np.float64], labels: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Weights [D + 1, S] that minimise the mean cross-entropy plus an L2 penalty on all but the last row.

    All sections have the same total weight, however many sentences they have.
    """
    from scipy.optimize import minimize  # slow imports, not needed by every server
    from scipy.special import log_softmax

    weight = 1 / np.bincount(labels, minlength=count)[labels] / count  # [n], sums to 1
    targets = np.eye(count)[labels]
    shape = (rows.shape[1], count)
    penalty = np.full((rows.shape[1], 1), 1 / (INVERSE_REGULARISATION * len(rows)))
    penalty[-1] = 0

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.reshape(shape)
        logs = log_softmax(rows @ weights, axis=1)
        value = -float((weight[:, None] * targets * logs).sum()) + float((penalty * weights**2).sum()) / 2
        slope = rows.T @ (weight[:, None] * (np.exp(logs) - targets)) + penalty * weights
        return value, slope.ravel()

    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    fitted: NDArray[np.float64] = found.x.reshape(shape)
    return fitted


def _with_one(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack([rows, np.ones(len(rows))])


def _unit(rows: Rows) -> Rows:
    unit: Rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit


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
        """Sort up to STORIES_AT_ONCE articles if any wait; return how many were sorted, 0 without an encoder.

        The encoder is opened only if needed. Thousands may wait, and more arrive meanwhile, so the caller shows what is
        sorted before it calls again.
        """
        encoder = open_encoder() if self.waiting(digest) else None
        return 0 if encoder is None else self._some(encoder)

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
