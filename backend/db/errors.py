"""What can go wrong with the server's database.

DatabaseError
├── DatabaseUnsupported    the URL names an engine other than SQLite or PostgreSQL
├── DatabaseUnreachable    it can't be opened, or nothing answers at its address
└── DatabaseTooNew         a newer Ownfeed has migrated it
"""

from __future__ import annotations

from backend.errors import OwnfeedError


class DatabaseError(OwnfeedError):
    """Base of the errors of the database; the message is one plain sentence."""

    code, status, title = "database-refused", 500, "The database can't be used"


class DatabaseUnsupported(DatabaseError):
    """The URL is no database URL, or names another engine."""

    code, status, title = "database-unsupported", 500, "The database is of another kind"

    def __init__(self, url: str) -> None:
        super().__init__(f"database_url {url!r} is neither sqlite:///path nor postgresql://user@host/name.")


class DatabaseUnreachable(DatabaseError):
    """The database did not open."""

    code, status, title = "database-unreachable", 503, "The database does not answer"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"The database {url} can't be opened: {why}")


class DatabaseTooNew(DatabaseError):
    """The database's revision is unknown to this version."""

    code, status, title = "database-too-new", 500, "A newer Ownfeed has used the database"

    def __init__(self, url: str, revision: str) -> None:
        super().__init__(
            f"The database {url} is at revision {revision!r}, which this version of Ownfeed does not know."
        )
