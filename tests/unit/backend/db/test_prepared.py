"""Statements compiled once. Oracle: the same statement through SQLAlchemy."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine, Select, bindparam, insert, select

from backend.db.engine import reading, writing
from backend.db.statements import Prepared, as_list, listed
from backend.db.tables import SecureSumRow, SumKeyRow

KEYS = [bytes([number]) * 32 for number in range(5)]
NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
SUM = SumKeyRow.__table__.c.sum


def named(*names: str) -> Select[bytes]:
    return select(SumKeyRow.key).where(SumKeyRow.sum.in_(names)).order_by(SumKeyRow.key)


@pytest.fixture
def filled(engine: Engine) -> Engine:
    add = Prepared(insert(SumKeyRow).inline())
    with writing(engine) as connection:
        for number in range(3):
            row = {"name": f"round-{number}", "stage": "keys", "record": "", "stage_sec": 1.0, "closes_at": NOON}
            connection.execute(insert(SecureSumRow), row)
        for number, key in enumerate(KEYS):
            add.run(connection, sum=f"round-{number % 3}", key=key)
    return engine


def test_prepared_statements_return_sqlalchemys_rows_and_values(filled: Engine) -> None:
    asked = Prepared(select(SumKeyRow.key).where(SumKeyRow.sum == bindparam("name")).order_by(SumKeyRow.key).limit(2))
    with reading(filled) as connection:
        for name in ("round-0", "round-1", "round-9"):
            assert asked.run(connection, name=name).scalars() == connection.scalars(named(name)).all()


def test_prepared_statement_takes_a_list_as_one_parameter(filled: Engine) -> None:
    asked = Prepared(lambda dialect: select(SumKeyRow.key).where(listed("names", SUM)(dialect)).order_by(SumKeyRow.key))
    with reading(filled) as connection:
        for names in (["round-0", "round-2"], ["it's"], []):
            found = asked.run(connection, names=as_list(connection, names)).scalars()
            assert found == connection.scalars(named(*names)).all()


def test_missing_parameter_raises_an_error(filled: Engine) -> None:
    asked = Prepared(select(SumKeyRow.key).where(SumKeyRow.sum == bindparam("name")))
    with reading(filled) as connection, pytest.raises(KeyError, match="name"):
        asked.run(connection)
