"""Files and folders are synced to disk before they are renamed. Oracle: what was synced at the rename."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.storage.durable_files import put_folder, write_durably
from tests.doubles.synced_paths import SyncedPaths


def test_folder_contents_are_synced_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "making"
    (made / "inner").mkdir(parents=True)
    (made / "weights").write_bytes(b"w" * 5_000)
    (made / "inner" / "graph").write_bytes(b"g")
    watched = SyncedPaths(monkeypatch)
    put_folder(made, tmp_path / "kept")
    assert watched.renames == [set()]
    assert tmp_path in watched.synced, "and the name itself"
    assert (tmp_path / "kept" / "inner" / "graph").read_bytes() == b"g"
    assert not made.exists()


def test_folder_does_not_replace_an_existing_one(tmp_path: Path) -> None:
    for name in ("making", "kept"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name, encoding="ascii")
    with pytest.raises(OSError, match="not empty"):
        put_folder(tmp_path / "making", tmp_path / "kept")
    assert (tmp_path / "kept" / "file").read_text(encoding="ascii") == "kept"


def test_file_is_synced_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = SyncedPaths(monkeypatch)
    write_durably(tmp_path / "file", b"content")
    assert watched.renames == [set()]
    assert tmp_path in watched.synced
