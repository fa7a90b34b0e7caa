"""The pool's version, which serialises all changes, the log of changed articles by version, and the pool's counts.

The log lets the server read only what changed. Versions rise by random steps. If a database is restored under a running
server, for instance from a replica without the last changes, it never has the version that the server holds, so the
server reads the whole pool.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, func, insert, select, update

from backend.db.tables import DuplicateRow, NewsRow, PoolChangeRow, PoolVersionRow, VectorRow


class PoolState(NamedTuple):
    """The version, and the number that the next new article gets."""

    version: int
    next_number: int


def lock_version(connection: Connection) -> PoolState:
    """Lock the pool's version until the transaction ends, so that only one transaction changes the pool at a time.

    On SQLite, BEGIN IMMEDIATE has done so already.
    """
    query = select(PoolVersionRow.version, PoolVersionRow.next_number).with_for_update()
    return PoolState(*connection.execute(query).one())


def read_version(connection: Connection) -> int:
    """The pool's version, which every change raises."""
    return connection.execute(select(PoolVersionRow.version)).scalar_one()


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """The pool's counts; `vectors` counts by encoder digest."""

    version: int
    news: int
    duplicates: int
    taken_down: int
    sources: dict[str, int]
    sections: dict[str, int]
    vectors: dict[str, int]


def pool_counts(connection: Connection) -> PoolCounts:
    """The counts as one transaction sees them; articles past their lifetime count until they are removed."""
    up = NewsRow.taken_down_at.is_(None)
    by_source = select(NewsRow.source, func.count()).where(up).group_by(NewsRow.source).order_by(NewsRow.source)
    by_section = select(NewsRow.section, func.count()).where(up).group_by(NewsRow.section).order_by(NewsRow.section)
    by_encoder = select(VectorRow.encoder, func.count()).group_by(VectorRow.encoder).order_by(VectorRow.encoder)
    sources = dict(connection.execute(by_source).all())
    return PoolCounts(
        version=read_version(connection),
        news=sum(sources.values()),
        duplicates=connection.execute(select(func.count()).select_from(DuplicateRow)).scalar_one(),
        taken_down=connection.execute(select(func.count()).select_from(NewsRow).where(~up)).scalar_one(),
        sources=sources,
        sections=dict(connection.execute(by_section).all()),
        vectors=dict(connection.execute(by_encoder).all()),
    )


STEP = 2**26
"""Maximum step of the version. Two different changes after the same version get the same new version with a probability
of only 1/STEP. 250 million changes reach 2^53, the limit of exact integers in JSON.
"""
VERSIONS_KEPT = 1_024
"""Approximate number of versions in the log. If every version changes a thousand articles, the log has a million rows
of two numbers.
"""
CHANGES_LIMIT = 50_000
"""Maximum number of changes that are returned or logged: selecting more takes as long as reading a large pool whole."""


def raise_version(connection: Connection, changed: Iterable[int], *, next_number: int | None = None) -> None:
    """Raise the pool's version, and log the numbers of the articles that this transaction changed."""
    row = PoolVersionRow
    version, noted_from = connection.execute(select(row.version, row.noted_from)).one()
    numbers, after = set(changed), version + 1 + secrets.randbelow(STEP)
    since = max(noted_from, after - VERSIONS_KEPT * STEP // 2)
    if len(numbers) > CHANGES_LIMIT:
        since = after
    values: dict[str, object] = {"version": after, "noted_from": since}
    if next_number is not None:
        values["next_number"] = next_number
    connection.execute(update(row).values(values))
    if numbers and since <= version:
        connection.execute(insert(PoolChangeRow), [{"version": after, "news": number} for number in numbers])
    connection.execute(delete(PoolChangeRow).where(PoolChangeRow.version <= since))


def changed_since(connection: Connection, version: int) -> NDArray[np.int64] | None:
    """The numbers, ascending, of all articles that changed after this version.

    None if the log doesn't reach back that far, has more changes than the limit, or never had this version.
    """
    row = PoolVersionRow
    newest, noted_from = connection.execute(select(row.version, row.noted_from)).one()
    if not noted_from <= version <= newest:
        return None
    this = select(PoolChangeRow.version).where(PoolChangeRow.version == version).limit(1)
    if version not in (noted_from, newest) and connection.scalar(this) is None:
        return None
    query = select(PoolChangeRow.news).where(PoolChangeRow.version > version).distinct()
    found = np.fromiter(connection.scalars(query.limit(CHANGES_LIMIT + 1)), dtype=np.int64)
    return np.sort(found) if len(found) <= CHANGES_LIMIT else None
