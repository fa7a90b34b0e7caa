"""Mapped vectors against the array that they were made of, and a disk that takes nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from backend.recall import mapped_vectors
from backend.recall.mapped_vectors import mapped
from tests.doubles.recall_world import clustered_vectors


def test_a_large_pool_is_read_from_a_file_without_a_name_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_vectors, "MAPPED_FROM_BYTES", 1)
    monkeypatch.setattr(mapped_vectors, "ROWS_AT_ONCE", 70)
    vectors = clustered_vectors(300)
    found = mapped(vectors, tmp_path / "index")
    np.testing.assert_array_equal(found, vectors)
    assert found is not vectors
    assert not found.flags.writeable
    assert not list((tmp_path / "index").iterdir())


def test_a_small_pool_stays_as_it_is(tmp_path: Path) -> None:
    vectors = clustered_vectors(300)
    assert mapped(vectors, tmp_path / "index") is vectors
    assert not (tmp_path / "index").exists()


def test_a_disk_that_takes_nothing_is_told_and_memory_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mapped_vectors, "MAPPED_FROM_BYTES", 1)
    (tmp_path / "index").write_text("no folder")
    vectors = clustered_vectors(3)
    with caplog.at_level(logging.WARNING):
        assert mapped(vectors, tmp_path / "index") is vectors
    assert "could not be kept on disk" in caplog.text
