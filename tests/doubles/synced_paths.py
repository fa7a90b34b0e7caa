"""Checks that a file or folder is on the disk when it gets its name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


class SyncedPaths:
    """Records what fsync writes to the disk, and what is missing of a rename's source."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: set[Path] = set()
        self.renames: list[set[Path]] = []
        fsync, replace = os.fsync, os.replace

        def noted(descriptor: int) -> None:
            self.synced.add(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
            fsync(descriptor)

        def looked_at(source: Path, target: Path) -> None:
            source = Path(source)
            within = {source, *source.rglob("*")}
            self.renames.append({path.relative_to(source) for path in within if path not in self.synced})
            replace(source, target)

        monkeypatch.setattr(os, "fsync", noted)
        monkeypatch.setattr(os, "replace", looked_at)  # pathlib's is this one
