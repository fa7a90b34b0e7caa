"""Every seed of the fuzzers is read, or refused as its reader documents.

Oracles: the targets' own conditions, and for what fuzzing has found, the errors that must name the problem.
"""

from __future__ import annotations

import json

import pytest

from backend.news.item import NewsItem
from backend.news.opml import OpmlRefused, parse_opml
from backend.news.sources import feed_parser
from device_app.store.exported import read_export
from device_app.view_models.export import JSON_COLUMNS, plain_value
from tests.qa.fuzz.targets import FUZZED, MOMENT, SEEDS, message_kinds

FILES = sorted(path for path in SEEDS.rglob("*") if path.is_file())
COLUMN = min(JSON_COLUMNS)


@pytest.mark.parametrize("name", sorted(FUZZED))
def test_every_fuzz_seed_is_read_or_refused(name: str) -> None:
    seeds = [path for path in FILES if path.parent.name == name]
    assert seeds
    for path in seeds:
        FUZZED[name].run(path.read_bytes())


def test_every_fuzz_seed_belongs_to_a_target() -> None:
    assert {path.parent.name for path in FILES} == set(FUZZED)
    assert sum(path.stat().st_size for path in FILES) < 300_000


def test_every_wire_message_is_among_the_seeds() -> None:
    seeded = {path.read_bytes().partition(b"\n")[0] for path in (SEEDS / "messages").iterdir()}
    assert seeded == set(message_kinds())


def test_seed_export_is_read_with_a_row_of_each_table() -> None:
    found = read_export((SEEDS / "exported" / "a-row-of-each-table").read_bytes(), MOMENT)
    for rows in (found.tables, found.views.searches):
        assert all(getattr(rows, table) for table in type(rows).model_fields)


def test_opml_is_read_in_any_encoding_it_names() -> None:
    with pytest.raises(OpmlRefused, match="lists no feed"):
        parse_opml((SEEDS / "opml" / "an-encoding-nobody-knows").read_bytes(), "list.opml")
    (left,) = parse_opml((SEEDS / "opml" / "an-encoding-of-several-bytes").read_bytes(), "list.opml").refused
    assert (left.where, left.name) == ("list.opml, line 1", "x")


def test_feed_that_crashes_feedparser_is_refused_as_malformed() -> None:
    with pytest.raises(feed_parser.FeedUnreadable, match=r"too malformed to read \(KeyError"):
        feed_parser.parse((SEEDS / "feeds" / "a-link-that-ends-where-none-began").read_bytes())


def test_field_with_a_time_outside_utc_range_is_named_in_the_error() -> None:
    line = (SEEDS / "jsonl" / "old-time").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"published_at\n  Value error, needs a time zone, and a year from 2 to 9998"):
        NewsItem.model_validate_json(line)


@pytest.mark.parametrize("text", ["[NaN]", '{"a": -Infinity}', "[1e999]", "[" * 100_000, "[" + "9" * 5_000 + "]"])
def test_text_resembling_json_is_exported_as_text(text: str) -> None:
    assert plain_value(COLUMN, text) == text


def test_json_text_is_exported_as_its_value() -> None:
    assert plain_value(COLUMN, '{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    assert json.loads(json.dumps(plain_value("vector", b"\xff\x00"))) == "/wA="


def test_fuzz_target_that_breaks_its_promise_is_reported() -> None:
    broken = json.dumps({"id": "a", "title": "T", "section": "s", "topic": "t", "published_at": "2026-11-20T08:00:00Z"})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(NewsItem, "model_dump_json", lambda self: "{}")
        with pytest.raises(ValueError, match="id"):
            FUZZED["jsonl"].run(broken.encode())
