"""`python -m experiments.documents`: writes tables of README and docs, and the figure of growth, anew from the records.

A document says which table stands where, and what is between the two marks is the table's:

    <!-- table: ranking: What the default ranker is made of -->
    <!-- end of table -->

A figure stands likewise between `<!-- figure: bench-growth -->` and `<!-- end of figure -->`.

The first word names the record, experiments/results/ranking.json; the rest is the table's title in it. README's table
of figures from several records (`experiments.summary`) stands between `<!-- summary -->` and the same end. What has no
record yet says so, and by which command it is measured.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from experiments import growth_figure, records
from experiments.records import Record
from experiments.summary import summary
from experiments.table import Table, text_of

ROOT = Path(__file__).parents[1]
LIBRARIES = {"node_modules", ".venv", "var"}
SUMMARY, END = "<!-- summary -->\n", "<!-- end of table -->"
MARKED = re.compile(rf"(<!-- table: (?P<record>[\w-]+): (?P<title>[^\n]+?) -->\n)(?P<table>.*?)({END})", re.S)
FIGURE, END_OF_FIGURE = f"<!-- figure: {growth_figure.RECORD} -->\n", "<!-- end of figure -->"
DRAWN = re.compile(rf"{FIGURE}.*?{END_OF_FIGURE}", re.S)
SUMMARISED = re.compile(rf"{SUMMARY}.*?{END}", re.S)


def documents(root: Path = ROOT) -> Iterator[Path]:
    """Every document of the project."""
    for path in sorted(root.rglob("*.md")):
        if not LIBRARIES & set(path.relative_to(root).parts):
            yield path


def rewritten(text: str, read: Callable[[str], Record] = records.read) -> str:
    """The document with its tables as the records have them.

    Raises KeyError for a title or cell that the record hasn't, and ValueError for a mark without an end.
    """
    begun = text.count("<!-- table: ") + text.count(SUMMARY)
    if begun != len(MARKED.findall(text)) + len(SUMMARISED.findall(text)):
        raise ValueError(f"{begun} tables begin, {text.count(END)} end")

    def table(found: re.Match[str]) -> str:
        try:
            record = read(found["record"])
        except FileNotFoundError:
            return f"{found[1]}Not measured yet: `{records.writer(found['record'])} --record`.\n{END}"
        return f"{found[1]}{markdown(record, record.table(found['title']))}{END}"

    def figure(found: re.Match[str]) -> str:
        try:
            return f"{FIGURE}{growth_figure.shown(read(growth_figure.RECORD))}\n{END_OF_FIGURE}"
        except FileNotFoundError:
            return f"{FIGURE}Not measured yet: `{records.writer(growth_figure.RECORD)} --record`.\n{END_OF_FIGURE}"

    text = DRAWN.sub(figure, MARKED.sub(table, text))
    return SUMMARISED.sub(lambda found: f"{SUMMARY}{summary(read)}{END}", text)


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
    return changed + _drawn()


def _drawn() -> int:
    """Draw the figure anew, if it isn't that of its record."""
    path = ROOT / growth_figure.PATH
    try:
        figure = growth_figure.draw(records.read(growth_figure.RECORD))
    except FileNotFoundError:
        return 0
    if path.is_file() and path.read_text(encoding="utf-8") == figure:
        return 0
    path.write_text(figure, encoding="utf-8")
    sys.stderr.write(f"{growth_figure.PATH.as_posix()}\n")
    return 1


if __name__ == "__main__":
    main()
