"""Which versions run on a database as it is: in a rolling upgrade servers of two versions share one for a while.

A version is meant by the newest revision that it knows. From READ_SINCE on a migration only adds: tables, indexes, and
columns that may be null or have a default of the database's own. What is no longer needed goes in two steps: one
version stops to use it; the next removes it and moves READ_SINCE to the revision of the one before.
"""

from __future__ import annotations

from alembic.script import ScriptDirectory
from sqlalchemy import Connection, delete, insert, inspect, select

from backend.db.tables import SchemaReaderRow

READ_SINCE = "add_lost_releases"
"""The oldest revision whose version still runs on the newest schema."""


def reads_newer(connection: Connection, own: str) -> bool:
    """Whether the version whose newest revision is `own` runs on this database, which a newer one has migrated."""
    if not inspect(connection).has_table(SchemaReaderRow.__tablename__):
        return False
    return connection.scalar(select(SchemaReaderRow.revision).where(SchemaReaderRow.revision == own)) is not None


def note_readers(connection: Connection, scripts: ScriptDirectory) -> None:
    """Write down who runs on the newest schema; nothing where that is known already."""
    wanted = {script.revision for script in scripts.walk_revisions(READ_SINCE, "heads")}
    if set(connection.scalars(select(SchemaReaderRow.revision))) != wanted:
        connection.execute(delete(SchemaReaderRow))
        connection.execute(insert(SchemaReaderRow), [{"revision": each} for each in sorted(wanted)])
