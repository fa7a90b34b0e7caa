"""Which news changed with which version of the pool, for the last versions, so that nobody needs to read all of it.

An Ownfeed of before this log raises the version and notes nothing, as it may in a rolling upgrade. What it changed is
then unknown, and the log begins anew behind it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, insert, select, update

from backend.db.tables import PoolChangeRow, PoolVersionRow

VERSIONS_KEPT = 1_024
"""A million rows of two numbers, where every version changes a thousand news."""
CHANGES_LIMIT = 50_000
"""More changes than these take as long to pick out as the whole of a large pool takes to read: none are told then, and
a version of so many isn't written down."""


def raise_version(connection: Connection, changed: Iterable[int], *, next_number: int | None = None) -> None:
    """Tells every reader of the version that this transaction changed the pool, and these news of it, by number."""
    row = PoolVersionRow
    version, noted, noted_from = connection.execute(select(row.version, row.noted, row.noted_from)).one()
    numbers = set(changed)
    since = max(noted_from if noted == version else version, version + 1 - VERSIONS_KEPT)
    if len(numbers) > CHANGES_LIMIT:
        since = version + 1
    values: dict[str, object] = {"version": version + 1, "noted": version + 1, "noted_from": since}
    if next_number is not None:
        values["next_number"] = next_number
    connection.execute(update(row).values(values))
    if numbers and since <= version:
        connection.execute(insert(PoolChangeRow), [{"version": version + 1, "news": number} for number in numbers])
    connection.execute(delete(PoolChangeRow).where(PoolChangeRow.version <= since))


def changed_since(connection: Connection, version: int) -> NDArray[np.int64] | None:
    """The numbers, ascending, of all news that changed after this version; None where the log doesn't tell,
    or tells of more than the limit."""
    row = PoolVersionRow
    newest, noted, noted_from = connection.execute(select(row.version, row.noted, row.noted_from)).one()
    if noted != newest or not noted_from <= version <= newest:
        return None
    query = select(PoolChangeRow.news).where(PoolChangeRow.version > version).distinct()
    found = np.fromiter(connection.scalars(query.limit(CHANGES_LIMIT + 1)), dtype=np.int64)
    return np.sort(found) if len(found) <= CHANGES_LIMIT else None
