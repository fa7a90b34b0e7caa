"""Measured figures in documents come from the recorded measurements, and commands wrote the records."""

from __future__ import annotations

import ast
import json
import re
import shlex
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer

from experiments import records
from experiments.bench.run import BENCHES, GROUPS
from experiments.commands.bench import BenchName
from experiments.documents import MARKED, ROOT, SUMMARISED, documents, rewritten, rows_of
from experiments.records import FOLDER, Record, Table, read
from ownfeed import app

RECORDS = sorted(path.stem for path in FOLDER.glob("*.json"))
REPORTS = [ROOT / "README.md", *sorted((ROOT / "docs" / "results").glob("*.md"))]
MEASURED = "\n## Measured\n"
"""Above it README's tables tell what settings and laws are, not what was measured."""
MEASURED_ROW = re.compile(r"^\|.*[.\d]\d.*\|$", re.M)
MACHINE = re.compile(r".+, \d+ cores, Python 3\.\d+\.\d+")
VERSION = re.compile(r"\d+\.\d+\.\d+")
DRAW_NOTHING = {"bench-capacity", "bench-embed"}
"""Benches whose figures hang on no seed."""


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("document", list(documents()), ids=name)
def test_document_tables_match_the_records(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert rewritten(text) == text, "python -m experiments.documents writes it again"


@pytest.mark.parametrize("document", REPORTS, ids=name)
def test_figure_tables_are_generated_not_typed(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    typed = text[text.index(MEASURED) :] if document.name == "README.md" else text
    assert MEASURED_ROW.findall(SUMMARISED.sub("", MARKED.sub("", typed))) == []


def command_of(words: list[str]) -> tuple[str, Any]:
    """Return the command that these words call, and its name. Raises KeyError for an unknown word."""
    found: Any = typer.main.get_command(app)
    called = ""
    while hasattr(found, "commands"):
        called = words.pop(0)
        found = found.commands[called]
    return called, found


def written_by(called: str, words: list[str]) -> str:
    """Return the name of the record that a command with these arguments writes."""
    return f"bench-{words[0]}" if called == "bench" else called + "-figures" * ("--figures" in words)


def refusal(stem: str, folder: Path) -> str | None:
    """Return why a record can't have been written by the command that it names; None if it can."""
    found = read(stem, folder)
    if (folder / f"{stem}.json").read_text(encoding="utf-8") != text_of_a_written(stem, found, folder):
        return "file: not the bytes that a command writes"
    program, *words = shlex.split(found.command)
    try:
        called, command = command_of(words)
    except (KeyError, IndexError):
        return f"command: {found.command!r} is none"
    if program != "ownfeed" or stem != written_by(called, words):
        return f"command: {found.command!r} does not write {stem}.json"
    options = {option for parameter in command.params for option in parameter.opts}
    if {word for word in words if word.startswith("-")} - options:
        return f"command: {found.command!r} has no such option"
    if not MACHINE.fullmatch(found.machine):
        return f"machine: {found.machine!r}"
    if not VERSION.fullmatch(found.version):
        return f"version: {found.version!r}"
    if found.measured_on > datetime.now(UTC).date():
        return "measured_on: not yet"
    if not found.tables or any(len(row) != len(table.columns) for table in found.tables for row in table.rows):
        return "tables: not as wide as their columns"
    if stem not in DRAW_NOTHING and not any(table.seeds for table in found.tables):
        return "seeds: none"
    unknown = [table.title for table in found.tables if not any(form.fullmatch(table.title) for form in TITLES)]
    return f"tables: no command titles one {unknown}" if unknown else None


def text_of_a_written(stem: str, record: Record, folder: Path) -> str:
    return records.write(f"{stem}.again", record, folder.parent / "again").read_text(encoding="utf-8")


def titles() -> list[re.Pattern[str]]:
    """Return patterns of the tables' titles in the code of the measurements."""
    found = set[str]()
    for path in (ROOT / "experiments").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 120:
                found.add(re.escape(node.value))
            elif isinstance(node, ast.JoinedStr):
                words = (each.value if isinstance(each, ast.Constant) else None for each in node.values)
                found.add("".join(".+" if each is None else re.escape(str(each)) for each in words))
    return [re.compile(each) for each in found if len(each.replace(".+", "")) > 3]


TITLES = titles()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "records"
    made.mkdir()
    return made


@pytest.mark.parametrize("record", RECORDS)
def test_record_was_written_by_its_command(record: str, folder: Path) -> None:
    (folder / f"{record}.json").write_bytes((FOLDER / f"{record}.json").read_bytes())
    assert refusal(record, folder) is None


def forged(**other: Any) -> Record:
    table = Table("Index", ("vectors", "news"), [("clustered", 6_000)], (), (1, 3))
    made = Record(
        "ownfeed bench index", "AMD EPYC, 2 cores, Python 3.11.7", datetime.now(UTC).date(), "0.1.0", 0.4, (table,)
    )
    return Record(**{each.name: other.get(each.name, getattr(made, each.name)) for each in fields(Record)})


@pytest.mark.parametrize(
    ("why", "other"),
    [
        (None, {}),
        ("command: 'ownfeed measure index' is none", {"command": "ownfeed measure index"}),
        ("does not write bench-index.json", {"command": "ownfeed bench latency"}),
        ("does not write bench-index.json", {"command": "make bench index"}),
        ("has no such option", {"command": "ownfeed bench index --quick"}),
        ("machine: 'two shared cores'", {"machine": "two shared cores"}),
        ("version: 'later'", {"version": "later"}),
        ("measured_on: not yet", {"measured_on": datetime(2100, 1, 1, tzinfo=UTC).date()}),
        ("seeds: none", {"tables": (Table("Index", ("news",), [(1,)]),)}),
        ("not as wide", {"tables": (Table("Index", ("news",), [(1, 2)], (), (1,)),)}),
        ("not as wide", {"tables": ()}),
        ("no command titles", {"tables": (Table("A summary by hand", ("news",), [(1,)], (), (1,)),)}),
    ],
    ids=lambda each: None,
)
def test_record_written_by_no_command_is_refused(why: str | None, other: dict[str, Any], folder: Path) -> None:
    records.write("bench-index", forged(**other), folder)
    found = refusal("bench-index", folder)
    assert (found is None) if why is None else (found is not None and why in found)


def test_edited_record_is_refused(folder: Path) -> None:
    path = records.write("bench-index", forged(), folder)
    kept = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(kept), encoding="utf-8")
    assert refusal("bench-index", folder) == "file: not the bytes that a command writes"
    path.write_text(json.dumps(kept | {"transcribed": "README.md"}, indent=1), encoding="utf-8")
    with pytest.raises(ValueError, match="is not a record"):
        refusal("bench-index", folder)


def test_every_record_appears_in_a_document() -> None:
    shown = {mark["record"] for path in documents() for mark in MARKED.finditer(path.read_text(encoding="utf-8"))}
    summarised = {row["record"] for row in rows_of()}
    assert set(RECORDS) <= shown
    assert len(RECORDS) > 5
    assert len(SUMMARISED.findall((ROOT / "README.md").read_text(encoding="utf-8"))) == 1
    for record in shown | summarised:
        words = shlex.split(records.writer(record))[1:]
        called, _ = command_of(words)
        assert record == written_by(called, words)
        assert called != "bench" or words[0] in BENCHES


def test_every_bench_and_group_is_a_choice_of_the_command() -> None:
    assert {each.value for each in BenchName} == set(BENCHES) | set(GROUPS)


def test_search_for_typed_tables_finds_its_examples() -> None:
    assert MEASURED_ROW.findall("| a | b |\n|---|---|\n| x | .61 |\n| command | what |\n") == ["| x | .61 |"]
