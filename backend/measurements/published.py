"""Figures that this version was published with: the records in `experiments/results`, which its wheel carries, too."""

from __future__ import annotations

from datetime import date
from importlib.resources import files
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict


def _written(cell: object) -> object:
    """A number of a record as it is told."""
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:.4g}"


Cell = Annotated[str | None, BeforeValidator(_written)]


class PublishedTable(BaseModel):
    """One table of a record, its cells as they are told; None for nothing."""

    model_config = ConfigDict(frozen=True)

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
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
