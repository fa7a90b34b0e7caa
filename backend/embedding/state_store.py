"""Stores titles' token states on disk, so that vectors under a new head need no pass through BERT.

float16, without padding: about 14 KB per title with all-MiniLM-L6-v2 (docs/decisions/013). Rounding moves a title's
vector by less than a thousandth of its length. A piece is two files that are written once; the JSON file completes it.
"""

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TRAINED_FOLDER, STATES_FOLDER = "trained", "states"
"""Folders in the encoder's folder: encoders trained by rounds, and token states by depth."""
DESCRIPTION_FILE = "encoder.json"
"""The description in an encoder's folder; defined here, so that moving folders doesn't load a tokenizer."""
KEY_BYTES = 16


def title_key(title: str) -> str:
    """The key under which a title's states are stored."""
    return hashlib.sha256(title.encode()).hexdigest()[: 2 * KEY_BYTES]


@dataclass(frozen=True)
class StateBatch:
    """rows [b]: the requested titles' indices; states float32 [b, L, S] and mask float32 [b, L], 0 over padding."""

    rows: NDArray[np.int64]
    states: NDArray[np.float32]
    mask: NDArray[np.float32]


class StateStore:
    """States of one depth of one BERT. Safe for several processes: a piece never changes once written.

    Args:
        folder: its own folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, titles: Sequence[str], states: Sequence[NDArray[np.floating[Any]]]) -> None:
        """Store the states [L_i, S] of these titles as one piece."""
        if len(titles) != len(states):
            raise ValueError(f"states: {len(titles)} titles, got {len(states)}")
        if not titles:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        starts = np.cumsum([0, *(len(each) for each in states)]).tolist()
        about = {"keys": [title_key(title) for title in titles], "starts": starts}
        handle, made = tempfile.mkstemp(suffix=".npy", prefix="states-", dir=self._folder)
        with os.fdopen(handle, "wb") as file:
            np.save(file, np.concatenate(states).astype(np.float16))
        piece = Path(made)
        half = piece.with_suffix(".half")
        half.write_text(json.dumps(about), encoding="ascii")
        os.replace(half, piece.with_suffix(".json"))

    def missing(self, titles: Sequence[str]) -> list[str]:
        """The titles without stored states, each once, in order."""
        held = self._places()
        return [title for title in dict.fromkeys(titles) if title_key(title) not in held]

    def batches(self, titles: Sequence[str], size: int) -> Iterator[StateBatch]:
        """Yield all titles once, shortest first, so that little is padding.

        Raises KeyError for a title without states.
        """
        held = self._places()
        places = [held[title_key(title)] for title in titles]
        lengths = np.array([end - start for _, start, end in places], dtype=np.int64)
        order = np.argsort(lengths, kind="stable")
        opened: dict[Path, NDArray[np.float16]] = {}
        for begin in range(0, len(order), size):
            rows = order[begin : begin + size]
            longest = int(lengths[rows].max())
            states: NDArray[np.float32] | None = None
            for line, row in enumerate(rows):
                path, start, end = places[row]
                if path not in opened:
                    opened[path] = np.load(path, mmap_mode="r")
                piece = opened[path]
                if states is None:
                    states = np.zeros((len(rows), longest, piece.shape[1]), dtype=np.float32)
                states[line, : end - start] = piece[start:end]
            assert states is not None
            mask = (np.arange(longest) < lengths[rows, None]).astype(np.float32)
            yield StateBatch(rows, states, mask)

    def prune(self, titles: Iterable[str], *, older_than_sec: float = 0.0) -> int:
        """Remove pieces less than half of which is still wanted, and files of killed writers.

        Return how many.

        Wanted states among them are lost, and computed again on request. Only files older than `older_than_sec` are
        removed, so that no writer loses its files.
        """
        keep = {title_key(title) for title in titles}
        removed = 0
        for piece in self._folder.glob("*.npy"):
            described = piece.with_suffix(".json")
            if time.time() - piece.stat().st_mtime < older_than_sec:
                continue
            keys = json.loads(described.read_text(encoding="ascii"))["keys"] if described.exists() else []
            if 2 * sum(key in keep for key in keys) < max(len(keys), 1):
                for part in (described, piece.with_suffix(".half"), piece):
                    part.unlink(missing_ok=True)
                removed += 1
        return removed

    def _places(self) -> dict[str, tuple[Path, int, int]]:
        found: dict[str, tuple[Path, int, int]] = {}
        for described in sorted(self._folder.glob("*.json")):
            about = json.loads(described.read_text(encoding="ascii"))
            piece = described.with_suffix(".npy")
            found.update(
                (key, (piece, start, end))
                for key, start, end in zip(about["keys"], about["starts"], about["starts"][1:], strict=False)
            )
        return found
