"""Which news changed with which version of the pool, for the last versions, so that nobody needs to read all of it.

An Ownfeed of before this log raises the version and notes nothing, as it may in a rolling upgrade. What it changed is
then unknown, and the log begins anew behind it.

A version is raised by a random step: where a database is put back under a running server, as by a replica that lacks
the last changes, other versions follow than the one that the server holds, and it reads all of the pool.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, insert, select, update

from backend.db.tables import PoolChangeRow, PoolVersionRow

STEP = 2**26
"""Two changes that followed the same version have another one each, but for one pair in so many; 250 million changes
come to 2^53, up to which a number in JSON is exact everywhere."""
VERSIONS_KEPT = 1_024
"""About so many: a million rows of two numbers, where every version changes a thousand news."""
CHANGES_LIMIT = 50_000
"""More changes than these take as long to pick out as the whole of a large pool takes to read: none are told then, and
a version of so many isn't written down."""


def raise_version(connection: Connection, changed: Iterable[int], *, next_number: int | None = None) -> None:
    """Tells every reader of the version that this transaction changed the pool, and these news of it, by number."""
    row = PoolVersionRow
    version, noted, noted_from = connection.execute(select(row.version, row.noted, row.noted_from)).one()
    numbers, after = set(changed), version + 1 + secrets.randbelow(STEP)
    since = max(noted_from if noted == version else version, after - VERSIONS_KEPT * STEP // 2)
    if len(numbers) > CHANGES_LIMIT:
        since = after
    values: dict[str, object] = {"version": after, "noted": after, "noted_from": since}
    if next_number is not None:
        values["next_number"] = next_number
    connection.execute(update(row).values(values))
    if numbers and since <= version:
        connection.execute(insert(PoolChangeRow), [{"version": after, "news": number} for number in numbers])
    connection.execute(delete(PoolChangeRow).where(PoolChangeRow.version <= since))


def changed_since(connection: Connection, version: int) -> NDArray[np.int64] | None:
    """The numbers, ascending, of all news that changed after this version; None where the log doesn't tell,
    or tells of more than the limit, or where this was no version of the pool."""
    row = PoolVersionRow
    newest, noted, noted_from = connection.execute(select(row.version, row.noted, row.noted_from)).one()
    if noted != newest or not noted_from <= version <= newest:
        return None
    this = select(PoolChangeRow.version).where(PoolChangeRow.version == version).limit(1)
    if version not in (noted_from, newest) and connection.scalar(this) is None:
        return None
    query = select(PoolChangeRow.news).where(PoolChangeRow.version > version).distinct()
    found = np.fromiter(connection.scalars(query.limit(CHANGES_LIMIT + 1)), dtype=np.int64)
    return np.sort(found) if len(found) <= CHANGES_LIMIT else None
