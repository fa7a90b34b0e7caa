"""Token states on disk. Oracle: the stored arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from backend.embedding.embedder import trained_folder
from backend.embedding.state_store import StateStore

TITLES = ["one", "two words", "a title of five words", "another"]


def states(title: str) -> np.ndarray:
    rng = np.random.default_rng(len(title))
    return rng.normal(size=(len(title.split()), 4)).astype(np.float32)


def filled(folder: Path) -> StateStore:
    store = StateStore(folder)
    store.put(TITLES[:3], [states(title) for title in TITLES[:3]])
    store.put(TITLES[3:], [states(title) for title in TITLES[3:]])
    return store


def test_batches_hold_each_title_once_with_its_states_padded_by_zeros(tmp_path: Path) -> None:
    filled(tmp_path)
    wanted = [*TITLES, TITLES[1]]
    seen = []
    for batch in StateStore(tmp_path).batches(wanted, 2):
        for line, row in enumerate(batch.rows):
            length = int(batch.mask[line].sum())
            assert batch.mask[line, :length].all()
            assert batch.states[line, :length] == pytest.approx(states(wanted[row]), abs=2e-3), "float16"
            assert not batch.states[line, length:].any()
            seen.append(int(row))
    assert sorted(seen) == list(range(5))


def test_missing_titles_are_listed_once_and_refused_in_a_batch(tmp_path: Path) -> None:
    store = filled(tmp_path)
    assert store.missing([*TITLES, "new", "new"]) == ["new"]
    with pytest.raises(KeyError):
        list(store.batches(["new"], 8))
    assert StateStore(tmp_path / "none").missing(["x"]) == ["x"]


def test_file_without_its_description_is_ignored(tmp_path: Path) -> None:
    store = filled(tmp_path)
    for described in tmp_path.glob("*.json"):
        described.unlink()
    assert store.missing(TITLES) == TITLES, "as after a kill between the two files"


def test_mostly_outdated_files_are_deleted(tmp_path: Path) -> None:
    store = filled(tmp_path)
    assert store.prune([TITLES[0]]) == 2
    assert store.missing(TITLES) == TITLES
    store = filled(tmp_path)
    assert store.prune(TITLES[:2]) == 1
    assert store.missing(TITLES) == TITLES[3:]
    assert len(list(tmp_path.glob("*.npy"))) == len(list(tmp_path.glob("*.json"))) == 1


def test_digest_cannot_escape_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="digest"):
        trained_folder(tmp_path, "../..")
