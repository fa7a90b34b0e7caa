"""A log of which articles changed with each of the last versions of the pool.

With it readers need not read the whole pool.

A version is raised by a random step. If a database is restored under a running server, for instance from a replica that
lacks the last changes, other versions follow than the one the server holds, and it reads the whole pool.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, insert, select, update

from backend.db.tables import PoolChangeRow, PoolVersionRow

STEP = 2**26
"""Two different changes after the same version get different versions, except with a probability of one in STEP. 250
million changes reach 2^53, up to which a number in JSON is exact everywhere."""
VERSIONS_KEPT = 1_024
"""Approximate number: a million rows of two numbers, if every version changes a thousand articles."""
CHANGES_LIMIT = 50_000
"""Selecting more changes than this takes as long as reading all of a large pool. The log then returns none, and a
version with so many is not recorded."""


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
