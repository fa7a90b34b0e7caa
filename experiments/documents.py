"""`python -m experiments.documents`: writes the tables of README and docs anew from the laboratory's records.

A document says which table stands where, and what is between the two marks is the table's:

    <!-- table: ranking: What the default ranker is made of -->
    <!-- end of table -->

The first word names the record, experiments/results/ranking.json; the rest is the table's title in it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from experiments import records
from experiments.records import Record
from experiments.table import Table, text_of

ROOT = Path(__file__).parents[1]
LIBRARIES = {"node_modules", ".venv", "var"}
END = "<!-- end of table -->"
MARKED = re.compile(rf"(<!-- table: (?P<record>[\w-]+): (?P<title>[^\n]+?) -->\n)(?P<table>.*?)({END})", re.S)


def documents(root: Path = ROOT) -> Iterator[Path]:
    """Every document of the project."""
    for path in sorted(root.rglob("*.md")):
        if not LIBRARIES & set(path.relative_to(root).parts):
            yield path


def rewritten(text: str, read: Callable[[str], Record] = records.read) -> str:
    """The document with its tables as the records have them.

    Raises KeyError for a title that the record hasn't, FileNotFoundError for a record that isn't there, and ValueError
    for a mark without an end.
    """
    if (begun := text.count("<!-- table: ")) != len(MARKED.findall(text)):
        raise ValueError(f"{begun} tables begin, {text.count(END)} end")

    def table(found: re.Match[str]) -> str:
        record = read(found["record"])
        return f"{found[1]}{markdown(record, record.table(found['title']))}{END}"

    return MARKED.sub(table, text)


def markdown(record: Record, table: Table) -> str:
    """A table as markdown with its notes, and where it comes from."""
    lines = ["| " + " | ".join(column.replace("|", "\\|") for column in table.columns) + " |"]
    lines.append("|" + "---|" * len(table.columns))
    for row in table.rows:
        cells = (text_of(cell, "").replace("|", "\\|") for cell in row)
        lines.append("| " + " | ".join(cells).rstrip() + " |")
    notes = [*table.notes, record.provenance(table)]
    return "\n".join(lines) + "\n\n" + "\n\n".join(f"<sub>{note}</sub>" for note in notes) + "\n"


def main() -> int:
    """Rewrite what differs; the number of documents that did."""
    changed = 0
    for path in documents():
        text = path.read_text(encoding="utf-8")
        if (new := rewritten(text)) != text:
            path.write_text(new, encoding="utf-8")
            sys.stderr.write(f"{path.relative_to(ROOT).as_posix()}\n")
            changed += 1
    return changed


if __name__ == "__main__":
    main()
