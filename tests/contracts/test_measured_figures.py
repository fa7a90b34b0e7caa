"""Measured figures in documents are those of the laboratory's records, table by table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.documents import MARKED, ROOT, documents, rewritten
from experiments.records import FOLDER, read

RECORDS = sorted(path.stem for path in FOLDER.glob("*.json"))
REPORTS = [ROOT / "README.md", *sorted((ROOT / "docs" / "results").glob("*.md"))]
MEASURED = "\n## Measured\n"
"""Above it README's tables tell what settings and laws are, not what was measured."""
MEASURED_ROW = re.compile(r"^\|.*[.\d]\d.*\|$", re.M)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("document", list(documents()), ids=name)
def test_a_documents_tables_are_those_of_the_records(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert rewritten(text) == text, "python -m experiments.documents writes it anew"


@pytest.mark.parametrize("document", REPORTS, ids=name)
def test_no_table_of_figures_is_typed(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    typed = MARKED.sub("", text[text.index(MEASURED) :] if document.name == "README.md" else text)
    assert MEASURED_ROW.findall(typed) == []


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_says_by_which_command_on_which_machine_and_when(record: str) -> None:
    found = read(record)
    assert found.command.startswith("ownfeed ")
    assert "cores" in found.machine
    assert found.tables
    assert found.transcribed or (found.version and found.load is not None)
    assert len({table.title for table in found.tables}) == len(found.tables)


def test_every_record_stands_in_a_document() -> None:
    shown = {mark["record"] for path in documents() for mark in MARKED.finditer(path.read_text(encoding="utf-8"))}
    assert shown == set(RECORDS)
    assert len(RECORDS) > 5


def test_the_search_for_typed_tables_finds_them() -> None:
    assert MEASURED_ROW.findall("| a | b |\n|---|---|\n| x | .61 |\n| command | what |\n") == ["| x | .61 |"]
