"""Interrupted imports, files with times in the future, and what an export leaves out, on both kinds of device.

Oracles: the rows of the file; the size limit of an import; SQL that puts a pool into the store.
"""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device_app.errors import ExportRefused, StoreBroken
from device_app.store.exported import LIMIT_BYTES, MOMENTS, SEARCH_MOMENTS
from device_app.store.rows import to_us
from device_app.store.searches import SearchVector
from tests.conformance.node_end import ask_node
from tests.doubles.moved_reader import NOW, exported, in_browser, live, python_device, take

LATER = to_us(NOW + timedelta(minutes=11))
IN_TIME = to_us(NOW + timedelta(minutes=9))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with python_device(tmp_path_factory.mktemp("first")) as device:
        live(device)
        return exported(device)


def search_words(file: dict[str, Any]) -> list[str]:
    return sorted(row["words"] for row in file["views"].get("searches", {}).get("search", []))


def raise_kill(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_import_killed_before_its_transaction_imports_nothing(
    first: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with python_device(tmp_path) as device:
        monkeypatch.setattr(device.parts.names, "name", raise_kill)
        with pytest.raises(KeyboardInterrupt):
            take(device, first)
    with python_device(tmp_path) as device:
        found = exported(device)
        assert found["tables"]["click"] == found["tables"]["charge"] == search_words(found) == []
        assert device.interests.stances() == {}
        take(device, first)
        assert search_words(exported(device)) == ["[1, 2]", "regatta"]


def test_import_killed_before_writing_searches_writes_them_at_the_next_start(
    first: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with python_device(tmp_path) as device:
        monkeypatch.setattr(device.parts.stores.search_database, "transaction", raise_kill)
        with pytest.raises(KeyboardInterrupt):
            take(device, first)
    with python_device(tmp_path) as device:
        found = exported(device)
        assert len(found["tables"]["click"]) == 5
        assert search_words(found) == ["[1, 2]", "regatta"]
        assert device.interests.stances() == {("topic", "rowing"): "follow", ("publisher", "[x]"): "block"}
        assert [news for news, _ in device.parts.stores.searches.openings()] == ["news:3"]
        assert device.parts.stores.preferences.get("moved_searches") is None
        assert not any(b"regatta" in each.read_bytes() for each in tmp_path.rglob("device.sqlite*"))


def test_interrupted_import_behaves_the_same_in_the_browser_and_in_python(first: dict[str, Any]) -> None:
    given = [
        {"content": json.dumps(first), "used": False, "settings": True, "cut": cut}
        for cut in ("transaction", "searches")
    ]
    (answers,) = ask_node([("moving_taken", {"now": NOW.timestamp() * 1_000, "files": given})])
    before, after = answers
    assert [one["refused"] for one in answers] == ["the worker was killed"] * 2
    assert before["exported"]["tables"]["click"] == search_words(before["exported"]) == []
    assert len(after["exported"]["tables"]["click"]) == 5
    assert search_words(after["exported"]) == ["[1, 2]", "regatta"]
    assert [one["name"] for one in after["exported"]["views"]["searches"]["stance"]] == ["[x]", "rowing"]
    assert "moved_searches" not in {row["name"] for row in after["exported"]["tables"]["preference"]}


def of_a_third(first: dict[str, Any]) -> dict[str, Any]:
    file = deepcopy(first)
    searches = file["views"]["searches"]
    searches["search"] = [{**searches["search"][0], "words": "sculling"}]
    searches["stance"] = [{**searches["stance"][0], "name": "tennis"}]
    return file


def raise_broken(*_: object, **__: object) -> None:
    raise StoreBroken(Path("searches"), "disk I/O error")


def test_second_import_keeps_searches_waiting_from_the_first(
    first: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the second file's searches replaced them. They were also copied into copies and exports."""
    with python_device(tmp_path) as device:
        with monkeypatch.context() as patch:
            patch.setattr(device.parts.stores.search_database, "transaction", raise_broken)
            with pytest.raises(StoreBroken):
                take(device, first)
            with pytest.raises(StoreBroken):
                take(device, of_a_third(first))
        assert device.parts.stores.preferences.get("moved_searches") is not None
        assert "moved_searches" not in {row["name"] for row in exported(device)["tables"]["preference"]}
        assert device.parts.copies.step()
        device.interests.choose_sections(("sport",))
        assert b"chosen_sections" in device.parts.copies.copies[0].path.read_bytes()
        assert b"regatta" not in device.parts.copies.copies[0].path.read_bytes()

        take(device, of_a_third(first))
        assert search_words(exported(device)) == ["[1, 2]", "regatta", "sculling"]
        assert {name for _, name in device.interests.stances()} == {"rowing", "[x]", "tennis"}


def test_second_browser_import_keeps_searches_waiting_from_the_first(first: dict[str, Any]) -> None:
    given: list[dict[str, Any]] = [
        {"content": json.dumps(file), "used": False, "settings": True} for file in (first, of_a_third(first))
    ]
    given[0] |= {"cut": "searches", "stays": True}
    (answers,) = ask_node([("moving_taken", {"now": NOW.timestamp() * 1_000, "files": given})])
    waiting, after = (one["exported"] for one in answers)
    assert search_words(waiting) == []
    assert "moved_searches" not in {row["name"] for row in waiting["tables"]["preference"]}
    assert search_words(after) == ["[1, 2]", "regatta", "sculling"]
    assert {row["name"] for row in after["views"]["searches"]["stance"]} >= {"rowing", "[x]"}


def test_both_devices_refuse_times_later_than_the_exports_own(first: dict[str, Any], tmp_path: Path) -> None:
    def of(file: dict[str, Any]) -> list[tuple[str, str, str, Any]]:
        parts = ("tables", file["tables"], MOMENTS), ("views.searches", file["views"]["searches"], SEARCH_MOMENTS)
        return [
            (f"{where}.{table}.0.{column}", table, column, tables[table][0])
            for where, tables, moments in parts
            for table, columns in moments.items()
            for column in columns
        ]

    files, fields = [], [field for field, *_ in of(first)]
    for number, _ in enumerate(fields):
        file = deepcopy(first)
        _, _, column, row = of(file)[number]
        row[column] = LATER
        files.append(file)
    within = deepcopy(first)
    for _, _, column, row in of(within):
        row[column] = IN_TIME
    *answers, taken = in_browser(*files, within)
    assert len(fields) == 15
    with python_device(tmp_path) as device:
        for field, file, answer in zip(fields, files, answers, strict=True):
            with pytest.raises(ExportRefused) as refused:
                take(device, file)
            assert str(refused.value).startswith(f"Nothing was imported: {field}: is later than exported_at"), field
            assert answer["refused"] == str(refused.value)
        take(device, within)
    assert taken["refused"] == ""


def test_downloadable_data_is_left_out_of_exports(tmp_path: Path) -> None:
    """The pool has more bytes than a file may have."""
    with python_device(tmp_path / "from") as device, python_device(tmp_path / "to") as other:
        live(device)
        database = device.parts.stores.database
        part = bytes(16 * 2**20)
        with database.transaction():
            for number in range(9):
                database.write("INSERT INTO pool_part (sha256, content) VALUES (?, ?)", (f"{number:064}", part))
            database.write("INSERT INTO pool_card (shard, place, id, card) VALUES ('s', 0, 'pool:1', '{}')")
        assert 9 * len(part) > LIMIT_BYTES
        file = exported(device)
        assert not {"pool", "pool_part", "pool_card", "pool_indexed"} & set(file["tables"])
        assert len(json.dumps(file)) < 2**20
        take(other, file)
        assert len(exported(other)["tables"]["click"]) == 5
    (answer,) = in_browser(file)
    assert set(answer["exported"]["tables"]) == set(file["tables"])


def test_vector_of_a_topic_is_deleted_when_it_is_unfollowed(tmp_path: Path) -> None:
    with python_device(tmp_path) as device:
        searches = device.parts.stores.searches
        vector = np.full(16, 0.25, dtype=np.float32)

        def keep() -> list[str]:
            for name in ("rowing", "tennis"):
                searches.keep_meaning(SearchVector("topic", name, "e", vector, NOW))
            return [name for _, name in searches.meanings("e")]

        device.interests.stance("topic", "rowing", "follow")
        device.interests.stance("topic", "tennis", "follow")
        assert keep() == ["rowing", "tennis"]
        device.interests.stance("topic", "rowing", None)
        assert [name for _, name in searches.meanings("e")] == ["tennis"]
        device.interests.stance("topic", "tennis", "block")
        assert not searches.meanings("e")
        assert not keep(), "computed while its reader took that back"


def test_browser_deletes_the_vector_of_an_unfollowed_topic() -> None:
    both = ["rowing", "tennis"]
    steps: list[dict[str, Any]] = [
        {"keep": both},
        {"stance": ["topic", "rowing", "follow"]},
        {"stance": ["topic", "tennis", "follow"], "keep": both},
        {"stance": ["topic", "rowing", None]},
        {"stance": ["topic", "tennis", "block"]},
        {"keep": both},
    ]
    (kept,) = ask_node([("upkeep_topics", steps)])
    assert kept == [[], [], both, ["tennis"], [], []]
