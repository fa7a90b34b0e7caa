"""Oracle: MIND's column list (Wu et al. 2020), and rows written by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from backend.news.errors import SourceUnreachable
from backend.news.item import NewsItem, Rejection
from backend.news.sources.files import LINE_LIMIT_BYTES, read_mind

NOW = datetime(2026, 11, 20, tzinfo=UTC)
GOOD = "N1\tsports\tfootball_nfl\tA title\tAn abstract\thttps://example.org/a\t[]\t[]"


def read_rows(tmp_path: Path, *lines: str | bytes) -> list[NewsItem | Rejection]:
    path = tmp_path / "news.tsv"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return list(read_mind(path, published_at=NOW))


def test_row_of_a_mind_file_becomes_an_item(tmp_path: Path) -> None:
    assert read_rows(tmp_path, GOOD) == [
        NewsItem(
            id="N1",
            title="A title",
            abstract="An abstract",
            url="https://example.org/a",
            section="sports",
            topic="football_nfl",
            published_at=NOW,
        )
    ]


@pytest.mark.parametrize(
    ("line", "field", "reason"),
    [
        ("N1\tsports\tnfl", "row", "3 columns; MIND has 8, and 6 are required"),
        (GOOD + "\tmore", "row", "9 columns; MIND has 8, and 6 are required"),
        (GOOD.replace("A title", " "), "title", "String should have at least 1 character"),
        (GOOD.replace("A title", "x" * 10_000), "title", "String should have at most 1000 characters"),
        (GOOD.replace("An abstract", "x" * 10_000), "abstract", "String should have at most 5000 characters"),
        (GOOD.replace("N1", "N 1"), "id", "String should match pattern"),
        (GOOD.replace("N1", ""), "id", "String should match pattern"),
        (GOOD.replace("https:", "javascript:"), "url", "must begin with http:// or https://"),
        (GOOD.encode().replace(b"A title", b"A \xff title"), "row", "not UTF-8 at byte 26"),
        ("N1\t" + "x" * LINE_LIMIT_BYTES, "row", f"longer than the limit of {LINE_LIMIT_BYTES:,} bytes"),
    ],
)
def test_malformed_row_is_rejected_by_line_and_the_next_is_read(
    tmp_path: Path, line: str | bytes, field: str, reason: str
) -> None:
    first, rejected, last = read_rows(tmp_path, GOOD, line, GOOD)
    assert isinstance(first, NewsItem)
    assert isinstance(last, NewsItem)
    assert isinstance(rejected, Rejection)
    assert (rejected.line, rejected.field) == (2, field)
    assert rejected.reason.startswith(reason)


def test_emoji_and_right_to_left_text_survive_without_control_characters(tmp_path: Path) -> None:
    title = "👩\u200d👩\u200d👧 \u200fشتاء\u200f دافئ"
    (row,) = read_rows(tmp_path, GOOD.replace("A title", title + "\x00\x07\x1b"))
    assert isinstance(row, NewsItem)
    assert row.title == title


def test_missing_section_and_topic_become_unknown_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    (row,) = read_rows(tmp_path, "", GOOD.replace("sports\tfootball_nfl", "\t") + "\r", "")
    assert isinstance(row, NewsItem)
    assert (row.section, row.topic) == ("unknown", "unknown")


def test_byte_order_mark_is_not_part_of_the_first_id(tmp_path: Path) -> None:
    (row,) = read_rows(tmp_path, b"\xef\xbb\xbf" + GOOD.encode())
    assert isinstance(row, NewsItem)
    assert row.id == "N1"


def test_missing_file_and_a_folder_are_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreachable, match=r"nowhere\.tsv can't be read: no such file or directory\."):
        list(read_mind(tmp_path / "nowhere.tsv"))
    with pytest.raises(SourceUnreachable, match=r"can't be read: is a directory\."):
        list(read_mind(tmp_path))


def test_time_without_a_zone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="published_at needs a time zone"):
        list(read_mind(tmp_path, published_at=datetime(2026, 1, 1)))  # noqa: DTZ001


@pytest.mark.data
def test_every_row_of_the_mind_subset_is_read(shared_data: Path) -> None:
    rows = list(read_mind(shared_data / "mind-subset" / "train" / "news.tsv"))
    assert len(rows) == 12_312
    assert sum(isinstance(row, Rejection) for row in rows) == 0
    assert sum(isinstance(row, NewsItem) and row.id.startswith("T") for row in rows) == 4_177
