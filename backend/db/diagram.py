"""Draws the tables from their metadata.

`python -m backend.db.diagram` writes them into tables.md.
"""

import re
from pathlib import Path

from sqlalchemy import Column, MetaData, Table

from backend.db.tables import all_tables

DOCUMENT = Path(__file__).with_name("tables.md")
DRAWING = re.compile(r"```mermaid\n.*?```\n", re.DOTALL)


def diagram(metadata: MetaData) -> str:
    """A Mermaid entity-relationship diagram of all tables, ordered by name."""
    tables = sorted(metadata.tables.values(), key=lambda table: table.name)
    lines = ["```mermaid", "erDiagram"]
    for table in tables:
        lines += [f"    {table.name} {{", *(f"        {_column(column)}" for column in table.columns), "    }"]
    lines += [line for table in tables for line in _relations(table)]
    return "\n".join([*lines, "```", ""])


def redrawn(document: str, metadata: MetaData) -> str:
    """`document` with its diagram updated. Raises ValueError if it has none."""
    text, found = DRAWING.subn(lambda _: diagram(metadata), document)
    if found != 1:
        raise ValueError(f"the document must have one mermaid block, has {found}")
    return text


def _column(column: Column[object]) -> str:
    kind = re.sub(r"\W+", "_", str(column.type).lower()).strip("_")
    keys = ["PK"] * column.primary_key + ["FK"] * bool(column.foreign_keys) + ["UK"] * bool(column.unique)
    optional = '"optional"' if column.nullable else ""
    return " ".join(part for part in (kind, column.name, ",".join(keys), optional) if part)


def _relations(table: Table) -> list[str]:
    return [
        f"    {key.column.table.name} ||--o{{ {table.name} : {key.parent.name}"
        for key in sorted(table.foreign_keys, key=lambda key: key.parent.name)
    ]


if __name__ == "__main__":
    DOCUMENT.write_text(redrawn(DOCUMENT.read_text(encoding="utf-8"), all_tables()), encoding="utf-8")
