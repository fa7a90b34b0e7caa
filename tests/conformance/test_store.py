"""Both devices have one schema and one file format: either opens, changes and erases what the other wrote."""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from device_app.store.database import Database
from device_app.store.preferences import Preferences
from tests.conformance.node_end import ask_node

SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
BOOKKEEPING = "yoyo_lock", "_yoyo_log", "_yoyo_version", "_yoyo_migration"
OPENED_IN_BROWSER = "opened-in-the-browser"
SERVED = [("first", ["a", "b", "c"]), ("second", ["b", "c", "d"])]
LOOKS = [("first", ["a", "b"], 10), ("second", ["b", "d"], 30), ("second", ["b", "c"], 20), ("first", ["a", "x"], 40)]
"""By feed, news and time: one news in two feeds, one look that comes late, and one that tells nothing new."""
StoreAnswers = Callable[[str], Any]


@pytest.fixture(scope="module")
def python_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python device's database with a preference and a charge in it."""
    path = tmp_path_factory.mktemp("python") / "device.db"
    database = Database(path)
    Preferences(database).set("sections", ["sport"])
    with database.transaction():
        database.write(
            """INSERT INTO charge (at, channel, mechanism, parameters, epsilon, delta, payload_sha256, subject)
               VALUES (1, 'reports', 'code', '{}', 1.5, 0, 'ab', 'a-subject')"""
        )
        database.write("INSERT INTO click (news_id, feed_id, at) VALUES ('a-secret-click', '', 2)")
    database.close()
    return path


@pytest.fixture(scope="module")
def answer_to(tmp_path_factory: pytest.TempPathFactory, python_file: Path) -> StoreAnswers:
    """Return the browser end's answer to each question of this file, by name."""
    folder = tmp_path_factory.mktemp("store")
    newer = folder / "newer.db"
    newer.write_bytes(python_file.read_bytes())
    with sqlite3.connect(newer) as connection:
        connection.execute("INSERT INTO _yoyo_migration VALUES ('x', '9999_to_come', '')")
    connection.close()
    foreign = folder / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()
    questions = {
        "store_new": list(BOOKKEEPING),
        "store_opened": {"file": _text(python_file), "name": OPENED_IN_BROWSER},
        "store_transactions": None,
        "store_full": None,
        "store_values": None,
        "store_views": {"served": SERVED, "looks": LOOKS},
        "store_refused": [_text(newer), _text(foreign), _text(python_file)],
        "store_erased": _text(python_file),
    }
    answers = dict(zip(questions, ask_node(list(questions.items())), strict=True))
    return answers.__getitem__


def test_browsers_cached_rows_match_its_file(answer_to: StoreAnswers) -> None:
    """Compared with a store that reads the file again each time; a rolled-back transaction leaves nothing."""
    answers = answer_to("store_views")
    assert [each["found"] for each in answers] == [2, 2, 1, 0]
    assert [each["remembered"] for each in answers] == [each["read"] for each in answers]
    assert answers[-1]["remembered"][0] == {"a": 1, "b": 2, "c": 1, "d": 1}


def test_new_browser_store_has_the_python_schema(answer_to: StoreAnswers, tmp_path: Path) -> None:
    new = answer_to("store_new")
    path = tmp_path / "new.db"
    database = Database(path)
    expected = [row for row in database.rows(SCHEMA) if row[2] not in BOOKKEEPING]
    found = [tuple(row.values()) for row in new["schema"] if row["tbl_name"] not in BOOKKEEPING]
    assert found == expected
    assert len(found) > 40
    columns = [
        [
            {"name": row[0], "type": row[1], "pk": row[2]}
            for row in database.rows("SELECT name, type, pk FROM pragma_table_info(?)", (table,))
        ]
        for table in BOOKKEEPING
    ]
    assert new["bookkeeping"] == columns
    applied = database.rows("SELECT migration_hash, migration_id FROM _yoyo_migration ORDER BY migration_id")
    assert [tuple(row.values()) for row in new["applied"]] == applied
    assert new["pragmas"] == [1, 1, 1]


def test_python_device_opens_a_browser_file(answer_to: StoreAnswers, tmp_path: Path) -> None:
    path = tmp_path / "from-browser.db"
    path.write_bytes(base64.b64decode(answer_to("store_new")["file"]))
    database = Database(path)
    database.check()
    Preferences(database).set("sections", ["news"])
    assert Preferences(database).get("sections") == ["news"]


def test_browser_opens_a_python_file_and_returns_it(answer_to: StoreAnswers, tmp_path: Path) -> None:
    opened = answer_to("store_opened")
    assert opened["before"] == ["sections"]
    path = tmp_path / "back.db"
    path.write_bytes(base64.b64decode(opened["file"]))
    database = Database(path)
    database.check()
    assert Preferences(database).get("sections") == ["sport"]
    assert Preferences(database).get(OPENED_IN_BROWSER) == 1
    assert database.number("SELECT count(*) FROM charge") == 1


def test_failed_transaction_leaves_nothing_and_nested_ones_roll_back(answer_to: StoreAnswers) -> None:
    ended = answer_to("store_transactions")
    assert ended["names"] == ["inner", "outer"]
    assert ended["undone"] == 2, "two that threw, and none that only read or that SQLite refused"
    assert "FOREIGN KEY" in ended["refused"]
    assert ended["changed"] == 2


def test_full_store_is_reported_and_rolled_back_and_works_again_with_space(
    answer_to: StoreAnswers,
) -> None:
    full = answer_to("store_full")
    assert len(full["said"]) == 2
    for words in full["said"]:
        assert words.startswith("true: What Ownfeed stores in this browser can't be used: the browser has no space")
    assert full["undone"] == 1
    assert full["names"] == ["later"]


def test_stored_values_are_read_back_unchanged(answer_to: StoreAnswers) -> None:
    assert answer_to("store_values") == [
        {"kind": "null", "value": None},
        {"kind": "integer", "value": 2**52 + 1},
        {"kind": "integer", "value": 2**31},
        {"kind": "real", "value": -0.5},
        {"kind": "integer", "value": str(2**62)},
        {"kind": "text", "value": "ein Wörtchen"},
        {"kind": "blob", "value": [0, 255]},
        {"kind": "blob", "value": []},
    ]


def test_files_of_a_newer_version_or_another_program_are_refused(answer_to: StoreAnswers) -> None:
    newer, foreign, ours = answer_to("store_refused")
    assert "9999_to_come" in newer
    assert "no Ownfeed data" in foreign
    assert ours == ""


def test_browser_erase_leaves_what_the_python_erase_leaves(
    answer_to: StoreAnswers, python_file: Path, tmp_path: Path
) -> None:
    answer = answer_to("store_erased")
    content = base64.b64decode(answer["file"])
    assert answer["clicks"] == 1, "an erase that was cut off has deleted nothing"
    assert b"a-secret-click" in python_file.read_bytes()
    assert b"a-secret-click" not in content
    assert b"a-subject" not in content
    path, here = tmp_path / "erased.db", tmp_path / "here.db"
    path.write_bytes(content)
    here.write_bytes(python_file.read_bytes())
    erased, as_here = Database(path), Database(here)
    as_here.erase(lambda: Preferences(as_here).set("privacy", {"mode": "none"}))
    assert Preferences(erased).get("privacy") == {"mode": "none"}
    tables = [row[0] for row in as_here.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    for table in tables:
        if table not in BOOKKEEPING:
            assert erased.rows(f"SELECT * FROM {table}") == as_here.rows(f"SELECT * FROM {table}"), table
    assert erased.number("SELECT count(*) FROM charge") == 1


def _text(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
