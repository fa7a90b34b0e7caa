"""Figures that this version was published with: the records in `experiments/results`, which its wheel carries, too."""

from __future__ import annotations

from datetime import date
from importlib.resources import files

from pydantic import BaseModel, ConfigDict


class PublishedTable(BaseModel):
    """One table of a record, its cells as they were written."""

    model_config = ConfigDict(frozen=True)

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    notes: tuple[str, ...] = ()


class PublishedRecord(BaseModel):
    """What a command measured, where and when; version: None where it was not noted then."""

    model_config = ConfigDict(frozen=True)

    command: str
    machine: str
    measured_on: date
    version: str | None = None
    tables: tuple[PublishedTable, ...]


def published(name: str) -> PublishedRecord | None:
    """The record of that name, such as 'bench-recall'; None where this installation carries none."""
    try:
        text = files("experiments").joinpath(f"results/{name}.json").read_text(encoding="utf-8")
    except (FileNotFoundError, ModuleNotFoundError):
        return None
    return PublishedRecord.model_validate_json(text)
