"""Generates the tables of README and docs from the records.

Run it with `python -m experiments.documents`. A document marks where a table belongs; the text between the two marks is
generated:

    <!-- table: ranking: What the default ranker is made of
    columns: form | dev AUC
    rows: + affinities | softmax(3), 256-d & mean, 256-d -->
    <!-- end -->

The first word names the record, experiments/results/ranking.json; the table's title in that record follows. `columns`
and `rows` are optional and select what is shown. A row is named by one of its cells, or by several neighbouring cells
joined with " & ". Command, date, machine and load stand under a record's last table in the document, and a note that
several tables share under the first of them.

The table of `reproduced.toml` stands between `<!-- reproduced -->` and `<!-- end -->`, and README's summary table
between `<!-- summary -->` and `<!-- end -->`; `summary.toml` defines its rows: `what`, a `figure` with placeholders,
the record, and the cell for each placeholder. If a record is missing, the document names the command that measures it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments import records
from experiments.records import Cell, Record, Table, text_of, writer

FILE = Path(__file__).with_name("summary.toml")
COLUMNS = ("what", "figure", "command", "measured")
EXTREMES: Mapping[str, Callable[[list[float]], float]] = {"least": min, "greatest": max}


def rows_of(file: Path = FILE) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(file.read_text(encoding="utf-8"))["row"]
    return rows


def summary(read: Callable[[str], Record], file: Path = FILE) -> str:
    """Return the summary table as markdown, followed by the machines.

    A row without a record reads "not measured yet". Raises KeyError for a cell that a record lacks.
    """
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    machines: dict[str, None] = {}
    for row in rows_of(file):
        try:
            record = read(row["record"])
        except FileNotFoundError:
            lines.append(f"| {row['what']} | not measured yet | `{writer(row['record'])}` |  |")
            continue
        figure = row["figure"].format(**{name: cell(record, where) for name, where in row["cells"].items()})
        lines.append(f"| {row['what']} | {figure} | `{record.command}` | {when(record)} |")
        machines[f"{record.machine}, version {record.version}"] = None
    return "\n".join(lines) + f"\n\n<sub>{'; '.join(machines)}</sub>\n"


def reproduced() -> str:
    """Return the table of the papers' results as markdown."""
    lines = ["| paper | result | reproduced | command | note |", "|---|---|---|---|---|"]
    for row in rows_of(FILE.with_name("reproduced.toml")):
        state = f"[{row['state']}]({row['where']})" if "where" in row else row["state"]
        command = f"`{row['command']}`" if "command" in row else ""
        lines.append(f"| {row['paper']} | {row['result']} | {state} | {command} | {row.get('note', '')} |")
    return "\n".join(lines) + "\n"


def when(record: Record) -> str:
    """Return the date of a record and the machine's load."""
    return f"{record.measured_on}, load {record.load:g}"


def cell(record: Record, where: Mapping[str, Any]) -> Cell:
    """Return the cell in `column` of the row of `table` that begins with the cells of `row`.

    If several rows match, `of` selects the least or greatest. Raises KeyError if no row matches, or several without
    `of`.
    """
    table, begins = record.table(where["table"]), where.get("row", [])
    place = table.columns.index(where["column"])
    found = [row[place] for row in table.rows if list(row[: len(begins)]) == begins]
    numbers = [each for each in found if isinstance(each, int | float)]
    if "of" in where and numbers and len(numbers) == len(found):
        return EXTREMES[where["of"]](numbers)
    if len(found) != 1:
        raise KeyError(f"{len(found)} rows of {table.title!r} begin with {begins}")
    return found[0]


ROOT = Path(__file__).parents[1]
LIBRARIES = {"node_modules", ".venv", "var"}
SUMMARY, END = "<!-- summary -->\n", "<!-- end -->"
MARKED = re.compile(
    r"(<!-- table: (?P<record>[\w-]+): (?P<title>[^\n]+?)"
    r"(?:\ncolumns: (?P<columns>[^\n]+?))?(?:\nrows: (?P<rows>[^\n]+?))? -->\n)"
    rf"(?P<table>.*?)({END})",
    re.S,
)
SUMMARISED = re.compile(rf"{SUMMARY}.*?{END}", re.S)
REPRODUCED = "<!-- reproduced -->\n"
LISTED = re.compile(rf"{REPRODUCED}.*?{END}", re.S)


def documents(root: Path = ROOT) -> Iterator[Path]:
    for path in sorted(root.rglob("*.md")):
        if not LIBRARIES & set(path.relative_to(root).parts):
            yield path


def rewritten(text: str, read: Callable[[str], Record] = records.read) -> str:
    """Return the document with its tables generated from the records.

    Raises KeyError for a title, column or row that a record lacks, and ValueError for a mark without an end.
    """
    begin_marks = text.count("<!-- table: ") + text.count(SUMMARY) + text.count(REPRODUCED)
    marks = list(MARKED.finditer(text))
    if begin_marks != len(marks) + len(SUMMARISED.findall(text)) + len(LISTED.findall(text)):
        raise ValueError(f"{begin_marks} tables begin, {text.count(END)} end")
    last = {mark["record"]: mark.start() for mark in marks}
    written: set[str] = set()

    def table(mark: re.Match[str]) -> str:
        try:
            record = read(mark["record"])
        except FileNotFoundError:
            return f"{mark[1]}Not measured yet: `{records.writer(mark['record'])} --record`.\n{END}"
        notes = [note for note in record.table(mark["title"]).notes if note not in written]
        written.update(notes)
        if mark.start() == last[mark["record"]]:
            shown = [record.table(each["title"]) for each in marks if each["record"] == mark["record"]]
            notes.append(record.provenance(shown))
        return f"{mark[1]}{markdown(selected(record.table(mark['title']), mark['columns'], mark['rows']), notes)}{END}"

    text = LISTED.sub(lambda mark: f"{REPRODUCED}{reproduced()}{END}", MARKED.sub(table, text))
    return SUMMARISED.sub(lambda mark: f"{SUMMARY}{summary(read)}{END}", text)


def selected(table: Table, columns: str | None, rows: str | None) -> Table:
    """Return the named columns and rows of a table; None selects all.

    Raises KeyError for an unknown name.
    """
    kept = list(table.rows)
    if rows is not None:
        named = [tuple(name.split(" & ")) for name in rows.split(" | ")]
        for name in named:
            if not any(_has(row, name) for row in table.rows):
                raise KeyError(f"{' & '.join(name)!r} is not a row of {table.title!r}")
        kept = [row for row in table.rows if any(_has(row, name) for name in named)]
    if columns is None:
        return replace(table, rows=kept)
    names = tuple(columns.split(" | "))
    if missing := set(names) - set(table.columns):
        raise KeyError(f"{missing} are not columns of {table.title!r}")
    places = [table.columns.index(name) for name in names]
    return replace(table, columns=names, rows=[tuple(row[place] for place in places) for row in kept])


def _has(row: Sequence[Cell], name: tuple[str, ...]) -> bool:
    """Return whether the cells of the name are neighbours in the row."""
    cells = tuple(text_of(cell, "") for cell in row)
    return any(cells[at : at + len(name)] == name for at in range(len(cells)))


def markdown(table: Table, notes: Sequence[str]) -> str:
    lines = ["| " + " | ".join(column.replace("|", "\\|") for column in table.columns) + " |"]
    lines.append("|" + "---|" * len(table.columns))
    for row in table.rows:
        cells = (text_of(cell, "").replace("|", "\\|") for cell in row)
        lines.append("| " + " | ".join(cells).rstrip() + " |")
    return "\n".join(lines) + "\n\n" + "".join(f"<sub>{note}</sub>\n\n" for note in notes).removesuffix("\n")


def main() -> int:
    """Rewrite the documents whose tables changed, and return their number."""
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
