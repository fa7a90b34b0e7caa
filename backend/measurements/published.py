"""Figures published with this version: the records in `experiments/results`, which the wheel contains, too."""

from datetime import date
from importlib.resources import files
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict


def _written(cell: object) -> object:
    """Convert a number of a record to its displayed form."""
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:.4g}"


Cell = Annotated[str | None, BeforeValidator(_written)]


class PublishedTable(BaseModel):
    """One table of a record, with cells as displayed; None for an empty cell."""

    model_config = ConfigDict(frozen=True)

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


class PublishedRecord(BaseModel):
    """What a command measured, where and when; version: None if it was not recorded then."""

    model_config = ConfigDict(frozen=True)

    command: str
    machine: str
    measured_on: date
    version: str | None = None
    tables: tuple[PublishedTable, ...]


def published(name: str) -> PublishedRecord | None:
    """The record of that name, such as 'bench-recall'; None if this installation has none."""
    try:
        text = files("experiments").joinpath(f"results/{name}.json").read_text(encoding="utf-8")
    except (FileNotFoundError, ModuleNotFoundError):
        return None
    return PublishedRecord.model_validate_json(text)
