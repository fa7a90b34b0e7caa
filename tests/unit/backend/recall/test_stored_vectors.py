"""Stored vectors equal their arrays, in memory and in a file; also on disks that refuse writes."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np
import pytest

from backend.recall import stored_vectors
from backend.recall.stored_vectors import StoredVectors
from tests.doubles.recall_world import clustered_vectors


@pytest.fixture(params=["memory", "file"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "file":
        monkeypatch.setattr(stored_vectors, "MAPPED_FROM_BYTES", 1)
    monkeypatch.setattr(stored_vectors, "ROWS_AT_ONCE", 70)
    return tmp_path / "index"


def test_snapshots_share_a_file_without_affecting_each_other(folder: Path) -> None:
    draw = np.random.default_rng(1)
    rows, snapshots = clustered_vectors(300), []
    stored = StoredVectors.of(rows, folder)
    for step in range(60):  # more than there is room for in the first file
        snapshots.append((stored, rows))
        kept = draw.random(len(rows)) < 0.95
        before = np.sort(draw.integers(int(kept.sum()) + 1, size=35))
        more = clustered_vectors(35, seed=step)
        stored = stored.changed(kept, before, more, folder)
        rows = np.insert(rows[kept], before, more, axis=0)
    for each, expected in snapshots:
        np.testing.assert_array_equal(np.asarray(each), expected)
        picked = draw.integers(len(expected), size=20)
        np.testing.assert_array_equal(each[picked], expected[picked])
        np.testing.assert_array_equal(each[5:90:3], expected[5:90:3])
        assert each.shape == expected.shape
        assert not each[:].flags.writeable or each[:].base is None
    assert len({id(each._file) for each, _ in snapshots}) in (2, 3)
    assert not folder.exists() or not list(folder.iterdir()), "files have no names"


def test_rows_are_matched_only_between_snapshots_of_the_same_file(folder: Path) -> None:
    first = StoredVectors.of(clustered_vectors(50), folder)
    kept = np.arange(50) % 7 != 0
    second = first.changed(kept, np.array([0, 4]), clustered_vectors(2, seed=8), folder)
    found = second.found_in(first)
    assert found is not None
    assert found.tolist() == np.insert(np.flatnonzero(kept), [0, 4], -1).tolist()
    assert second.found_in(StoredVectors.of(second[:], folder)) is None


def test_rows_can_be_removed_without_additions(folder: Path) -> None:
    rows = clustered_vectors(50)
    kept = np.arange(50) != 7
    left = StoredVectors.of(rows, folder).changed(kept, np.empty(0, np.intp), rows[:0], folder)
    np.testing.assert_array_equal(np.asarray(left), rows[kept])


@pytest.mark.parametrize("when", ["at the start", "later"])
def test_full_disk_falls_back_to_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, when: str
) -> None:
    monkeypatch.setattr(stored_vectors, "MAPPED_FROM_BYTES", 1)
    vectors = clustered_vectors(40)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    if when == "at the start":
        (tmp_path / "index").write_text("no folder")
    first = StoredVectors.of(vectors[:30], tmp_path / "index")
    if when == "later":
        monkeypatch.setattr(os, "pwrite", full)
    with caplog.at_level(logging.WARNING):
        second = first.extended(vectors[30:], tmp_path / "index")
    np.testing.assert_array_equal(np.asarray(second), vectors)
    np.testing.assert_array_equal(np.asarray(first), vectors[:30])
    assert "stay in memory" in caplog.text or when == "at the start"
