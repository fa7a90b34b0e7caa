"""The records that a version carries, as pages read them."""

from __future__ import annotations

from importlib.resources import files

import pytest

from backend.measurements.published import PublishedTable, published

NAMES = sorted(
    path.name.removesuffix(".json") for path in files("experiments").joinpath("results").iterdir() if path.is_file()
)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith((".md", ".py"))])
def test_every_record_can_be_read(name: str) -> None:
    record = published(name)
    assert record is not None
    assert record.tables


def test_numbers_are_formatted_as_text() -> None:
    table = PublishedTable.model_validate({"title": "t", "columns": ["a"], "rows": [[1_200, 0.123456, "1.0", None]]})
    assert table.rows == (("1,200", "0.1235", "1.0", None),)
