"""Oracle: NewsItem's own JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backend.news.item import NewsItem, Rejection
from backend.news.sources.files import read_jsonl

ITEM = NewsItem(
    id="a",
    title="Title 🎈",
    abstract="Abstract",
    body="One.\n\nTwo.",
    url="https://example.org/a",
    publisher="The Sound",
    section="world",
    topic="europe",
    story="storm",
    published_at=datetime(2026, 11, 20, tzinfo=UTC),
    weight=0.7,
)


def read_lines(tmp_path: Path, *lines: str) -> list[NewsItem | Rejection]:
    path = tmp_path / "news.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return list(read_jsonl(path))


def test_item_survives_json(tmp_path: Path) -> None:
    assert read_lines(tmp_path, ITEM.model_dump_json(), "", ITEM.model_dump_json()) == [ITEM, ITEM]


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"title": ""}, "title", "String should have at least 1 character"),
        ({"title": "x" * 10_000}, "title", "String should have at most 1000 characters"),
        ({"title": 7}, "title", "Input should be a valid string"),
        ({"body": 7}, "body", "Input should be a valid string"),
        ({"published_at": "2026-11-20T00:00:00"}, "published_at", "needs a time zone, and a year from 2 to 9998"),
        ({"weight": 1.5}, "weight", "Input should be less than or equal to 1"),
        ({"url": "file:///etc/passwd"}, "url", "must begin with http:// or https://"),
        ({"colour": "red"}, "colour", "Extra inputs are not permitted"),
    ],
)
def test_malformed_item_is_rejected_by_line_and_field(
    tmp_path: Path, change: dict[str, object], field: str, reason: str
) -> None:
    bad = json.dumps(ITEM.model_dump(mode="json") | change)
    assert read_lines(tmp_path, ITEM.model_dump_json(), bad) == [ITEM, Rejection(2, field, reason)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ("[" * 100_000, "not JSON"),
        ("null", "not a JSON object"),
    ],
)
def test_line_that_is_not_an_object_is_rejected(tmp_path: Path, line: str, reason: str) -> None:
    (rejected,) = read_lines(tmp_path, line)
    assert isinstance(rejected, Rejection)
    assert rejected.field == "row"
    assert rejected.reason.startswith(reason)


def test_control_characters_are_removed(tmp_path: Path) -> None:
    change = {"title": "Ti\x00tle", "body": "One.\x00\n\n\x07Two.", "url": "HTTPS://Example.org:443/a?utm_source=x#top"}
    (row,) = read_lines(tmp_path, json.dumps(ITEM.model_dump(mode="json") | change))
    assert isinstance(row, NewsItem)
    assert (row.title, row.body, row.url) == ("Title", "<p>One.</p><p>Two.</p>", "https://example.org/a#top")


def test_lone_surrogate_is_removed(tmp_path: Path) -> None:
    (row,) = read_lines(tmp_path, json.dumps(ITEM.model_dump(mode="json") | {"title": "Title \ud83c"}))
    assert isinstance(row, NewsItem)
    assert row.title == "Title"
