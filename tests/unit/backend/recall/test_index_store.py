"""The index on disk: loaded if it is complete and matches, rebuilt otherwise."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from backend.errors import IndexBroken
from backend.recall.indexes.index import VectorIndex
from backend.recall.indexes.selection import INDEXES, IndexRules, IndexStatus
from backend.recall.indexes.store import CARD_SUFFIX, INDEX_SUFFIX, KEPT, UNFINISHED_SEC, IndexStore, content_digest
from backend.recall.indexing import IndexBeingBuilt, Indexed, index_news
from backend.storage import object_store as local_folder
from backend.storage.durable_files import UNFINISHED
from backend.storage.object_store import LocalFolder
from tests.doubles.recall_world import clustered_vectors

KEYS = np.arange(1_200, dtype=np.int64)
VECTORS = clustered_vectors(1_200, dimensions=16)
RULES = IndexRules(exact_limit=500)


def indexed(
    folder: Path,
    *,
    rows: slice = slice(None),
    previous: Indexed | None = None,
    version: int = 4,
    rules: IndexRules = RULES,
) -> Indexed:
    return index_news(
        KEYS[rows],
        VECTORS[rows],
        previous=previous,
        kept=IndexStore(LocalFolder(folder)),
        encoder="e",
        pool_version=version,
        rules=rules,
    )


def loaded(folder: Path, encoder: str = "e", rows: slice = slice(None)) -> tuple[VectorIndex, IndexStatus]:
    keys, vectors = KEYS[rows], VECTORS[rows]
    return IndexStore(LocalFolder(folder)).load(
        content=content_digest(keys, vectors), keys=keys, vectors=vectors, encoder=encoder, threads=1
    )


def kept_file(folder: Path, suffix: str) -> Path:
    """Return the only file of that kind."""
    (found,) = folder.glob(f"*{suffix}")
    return found


def test_stored_index_is_restored_with_its_status(tmp_path: Path) -> None:
    built = indexed(tmp_path)
    index, status = loaded(tmp_path)
    assert status == built.status
    assert (index.search(VECTORS[:5], 50)[1] == built.index.search(VECTORS[:5], 50)[1]).all()
    assert json.loads(kept_file(tmp_path, CARD_SUFFIX).read_text())["pool_version"] == 4


def test_matching_stored_index_is_not_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = indexed(tmp_path)
    monkeypatch.setattr("backend.recall.indexing.choose_index", None)  # building would fail
    assert indexed(tmp_path).status == built.status


@pytest.mark.parametrize("suffix", [INDEX_SUFFIX, CARD_SUFFIX])
def test_damaged_index_file_is_refused_and_rebuilt(tmp_path: Path, suffix: str) -> None:
    built = indexed(tmp_path)
    file = kept_file(tmp_path, suffix)
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 0x81
    file.write_bytes(damaged)
    with pytest.raises(IndexBroken):
        loaded(tmp_path)
    again = indexed(tmp_path)
    assert (again.index.search(VECTORS[:5], 50)[1] == built.index.search(VECTORS[:5], 50)[1]).all()
    assert loaded(tmp_path)[1] == again.status


def test_truncated_index_is_refused(tmp_path: Path) -> None:
    indexed(tmp_path)
    file = kept_file(tmp_path, INDEX_SUFFIX)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(IndexBroken, match="SHA-256"):
        loaded(tmp_path)


def test_index_of_another_pool_or_encoder_is_refused(tmp_path: Path) -> None:
    indexed(tmp_path)
    with pytest.raises(IndexBroken, match="No index of this pool"):
        loaded(tmp_path, rows=slice(1, None))
    with pytest.raises(IndexBroken, match="No index of this pool"):
        loaded(tmp_path, encoder="f")


def test_indexes_of_recent_pools_are_kept_and_older_ones_deleted(tmp_path: Path) -> None:
    for count in range(64, 70):
        indexed(tmp_path, rows=slice(count))
        for path in tmp_path.iterdir():  # as if each were made long after the last
            os.utime(path, (0, path.stat().st_mtime - 60))
    assert len(list(tmp_path.iterdir())) == 2 * KEPT
    assert len(loaded(tmp_path, rows=slice(69))[0]) == 69


def test_leftovers_of_a_killed_writer_are_deleted_but_active_files_stay(tmp_path: Path) -> None:
    for name in ("killed", "writing"):
        (tmp_path / f"{name}{INDEX_SUFFIX}.0a1b{UNFINISHED}").write_bytes(b"half")
    long_ago = time.time() - 2 * UNFINISHED_SEC
    os.utime(tmp_path / f"killed{INDEX_SUFFIX}.0a1b{UNFINISHED}", (long_ago, long_ago))
    indexed(tmp_path)
    assert [path.name for path in tmp_path.glob(f"*{UNFINISHED}")] == [f"writing{INDEX_SUFFIX}.0a1b{UNFINISHED}"]


def test_process_uses_the_index_built_by_another(tmp_path: Path) -> None:
    """Another process holds the lock twice; in between it has stored the index it built."""
    turns: list[bool] = []

    @contextmanager
    def turn() -> Iterator[bool]:
        turns.append(False)
        yield False
        if len(turns) == 2:
            indexed(tmp_path)

    def taken(previous: Indexed | None) -> Indexed:
        kept = IndexStore(LocalFolder(tmp_path))
        return index_news(
            KEYS, VECTORS, previous=previous, kept=kept, encoder="e", pool_version=4, rules=RULES, turn=turn
        )

    before = index_news(
        KEYS[:9], VECTORS[:9], previous=None, kept=IndexStore(LocalFolder(tmp_path)), encoder="e", pool_version=3,
        rules=RULES,
    )  # fmt: skip
    with pytest.raises(IndexBeingBuilt):
        taken(before)
    assert len(taken(None).index) == 1_200
    assert len(turns) == 2


def test_missing_index_is_reported(tmp_path: Path) -> None:
    with pytest.raises(IndexBroken, match="No index of this pool"):
        loaded(tmp_path / "missing")


def test_full_disk_leaves_the_index_serving_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(local_folder, "write_durably", full)
    # Listened to at its source: what earlier tests did to the loggers above it must not matter.
    logger = logging.getLogger("backend.recall.indexing")
    monkeypatch.setattr(logger, "disabled", False)
    monkeypatch.setattr(logger, "handlers", [caplog.handler])
    with caplog.at_level(logging.WARNING, logger=logger.name):
        assert len(indexed(tmp_path).index) == 1_200
    assert "No space left on device" in caplog.text


def test_small_change_updates_a_copy_and_keeps_the_old_index(tmp_path: Path) -> None:
    old = indexed(tmp_path, rows=slice(0, 1_100))
    before = old.index.search(VECTORS[:5], 400)[1]
    new = indexed(tmp_path, rows=slice(50, 1_200), previous=old, version=5)
    assert new.index is not old.index
    assert (old.index.search(VECTORS[:5], 400)[1] == before).all()
    found = new.index.search(VECTORS[:5], 1_150)[1]
    assert set(found[0].tolist()) <= {-1, *range(50, 1_200)}
    assert new.status.recall_at_400 is not None
    assert new.status.recall_at_400 >= 0.99
    assert new.status.news == 1_150


def test_changed_vector_replaces_the_old_one(tmp_path: Path) -> None:
    old = indexed(tmp_path)
    vectors = VECTORS.copy()
    vectors[7] = -vectors[7]
    new = index_news(
        KEYS, vectors, previous=old, kept=IndexStore(LocalFolder(tmp_path)), encoder="e", pool_version=5, rules=RULES
    )
    assert 7 in new.index.search(vectors[7:8], 5)[1]
    assert 7 not in new.index.search(VECTORS[7:8], 5)[1]
    assert len(new.index) == len(old.index)


def test_pool_outgrowing_the_exact_limit_gets_another_index(tmp_path: Path) -> None:
    small = indexed(tmp_path, rows=slice(0, 490))
    grown = indexed(tmp_path, rows=slice(0, 520), previous=small, version=5)
    assert small.index.exact
    assert not grown.index.exact


@pytest.mark.parametrize("name", INDEXES)
def test_stored_index_is_replaced_by_the_newly_named_one(tmp_path: Path, name: str) -> None:
    before = indexed(tmp_path, rows=slice(1_100))
    named = IndexRules(RULES.exact_limit, name=name)
    at_start = indexed(tmp_path, rows=slice(1_100), rules=named)
    assert at_start.index.name == name
    assert loaded(tmp_path, rows=slice(1_100))[0].name == name
    grown = indexed(tmp_path, previous=before, rules=named)
    assert (grown.index.name, len(grown.index)) == (name, 1_200)


@pytest.mark.parametrize("name", ["ivf", "fastscan"])
def test_index_chosen_by_name_grows_with_its_pool_despite_low_recall(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = IndexRules(RULES.exact_limit, name=name)
    before = indexed(tmp_path, rows=slice(1_100), rules=named)
    monkeypatch.setattr("backend.recall.indexes.selection.RECALL_REQUIRED", 1.01)
    monkeypatch.setattr("backend.recall.indexing.choose_index", None)  # building again would fail
    grown = indexed(tmp_path, previous=before, rules=named)
    assert (grown.index.name, len(grown.index)) == (name, 1_200)
