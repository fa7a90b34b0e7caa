"""Every seed of the fuzzers is read or refused as its reader says. Oracle: the targets' own conditions, and for what
fuzzing has found the errors that must name what is wrong."""

from __future__ import annotations

import json

import pytest

from backend.news.item import NewsItem
from backend.news.sources import feed_parser
from backend.opml import OpmlRefused, parse_opml
from device_app.store.exported import read_export
from device_app.view_models.export import JSON_COLUMNS, plain_value
from tests.fuzz.targets import FUZZED, MOMENT, SEEDS, message_kinds

FILES = sorted(path for path in SEEDS.rglob("*") if path.is_file())
COLUMN = min(JSON_COLUMNS)


@pytest.mark.parametrize("name", sorted(FUZZED))
def test_every_seed_is_read_or_refused(name: str) -> None:
    seeds = [path for path in FILES if path.parent.name == name]
    assert seeds
    for path in seeds:
        FUZZED[name].run(path.read_bytes())


def test_every_seed_belongs_to_a_target() -> None:
    assert {path.parent.name for path in FILES} == set(FUZZED)
    assert sum(path.stat().st_size for path in FILES) < 300_000


def test_every_message_of_the_wire_is_among_the_seeds() -> None:
    seeded = {path.read_bytes().partition(b"\n")[0] for path in (SEEDS / "messages").iterdir()}
    assert seeded == set(message_kinds())


def test_one_export_among_the_seeds_is_read_with_a_row_of_each_table() -> None:
    found = read_export((SEEDS / "exported" / "a-row-of-each-table").read_bytes(), MOMENT)
    for rows in (found.tables, found.views.searches):
        assert all(getattr(rows, table) for table in type(rows).model_fields)


@pytest.mark.parametrize("name", ["an-encoding-nobody-knows", "an-encoding-of-several-bytes"])
def test_a_list_of_feeds_in_an_encoding_that_cannot_be_read_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(OpmlRefused, match=r"line 1: can't be decoded \(.*encoding"):
        parse_opml((SEEDS / "opml" / name).read_bytes(), "list.opml")


def test_a_feed_that_makes_feedparser_fail_is_refused_as_malformed() -> None:
    with pytest.raises(feed_parser.FeedUnreadable, match=r"malformed beyond reading \(KeyError"):
        feed_parser.parse((SEEDS / "feeds" / "a-link-that-ends-where-none-began").read_bytes())


def test_a_time_that_has_no_place_in_utc_is_refused_by_the_name_of_its_field() -> None:
    line = (SEEDS / "jsonl" / "old-time").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"published_at\n  Value error, needs a time zone, and a year from 2 to 9998"):
        NewsItem.model_validate_json(line)


@pytest.mark.parametrize("text", ["[NaN]", '{"a": -Infinity}', "[1e999]", "[" * 100_000, "[" + "9" * 5_000 + "]"])
def test_a_text_that_only_looks_like_json_is_exported_as_text(text: str) -> None:
    assert plain_value(COLUMN, text) == text


def test_a_text_that_is_json_is_exported_as_what_it_says() -> None:
    assert plain_value(COLUMN, '{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    assert json.loads(json.dumps(plain_value("vector", b"\xff\x00"))) == "/wA="


def test_a_target_that_breaks_its_promise_is_told() -> None:
    broken = json.dumps({"id": "a", "title": "T", "section": "s", "topic": "t", "published_at": "2026-11-20T08:00:00Z"})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(NewsItem, "model_dump_json", lambda self: "{}")
        with pytest.raises(ValueError, match="id"):
            FUZZED["jsonl"].run(broken.encode())
