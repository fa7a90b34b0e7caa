"""What every table of the server shares: the base class, its constraint names, and times in UTC."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect, MetaData
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator

import backend.db


class Base(DeclarativeBase):
    """Base of all tables; constraints get names, so that Alembic can alter them on both engines."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class ValueUnreadable(ValueError):
    """What a column holds isn't what was written: SQLite keeps no checksums of its pages."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment, always in UTC: `timestamptz` in PostgreSQL, a zoneless UTC text in SQLite.

    Raises ValueError on a time without a zone: guessing one would move the news by hours; ValueUnreadable when it reads
    what is no time.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value.isoformat()} needs a time zone")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None]:
        read = self.impl_instance.result_processor(dialect, coltype)

        def moment(value: Any) -> datetime | None:
            try:
                found: datetime | None = value if read is None else read(value)
            except (ValueError, TypeError) as broken:
                raise ValueUnreadable(f"a time in it is {str(value)[:40]!r}") from broken
            if found is None:
                return None
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)

        return moment


def all_tables() -> MetaData:
    """The metadata of every table: each module `backend.db.tables*` is imported first."""
    for module in pkgutil.iter_modules(backend.db.__path__):
        if module.name.startswith("tables"):
            importlib.import_module(f"backend.db.{module.name}")
    return Base.metadata
