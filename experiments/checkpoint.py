"""A file of a study's finished runs, so that a long study can be stopped and gone on with."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RunCheckpoint:
    """One study's file. settings: what every run in it was made under, as JSON has it."""

    path: Path
    settings: Mapping[str, Any]

    def read(self) -> list[dict[str, Any]]:
        """The runs; none if there is no such file.

        Raises ValueError if its settings differ, as figures of two studies do not belong in one file, or if it is no
        file of results at all.
        """
        if not self.path.is_file():
            return []
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            theirs, runs = kept.get("settings"), list(kept["runs"])
        except (ValueError, AttributeError, KeyError, TypeError) as broken:
            raise ValueError(f"{self.path} holds no results: {broken}") from None
        if theirs != dict(self.settings):
            raise ValueError(
                f"{self.path} holds a study with settings {theirs}, not {dict(self.settings)}; choose another file"
            )
        return runs

    def write(self, runs: Sequence[Mapping[str, Any]]) -> None:
        """The runs as JSON: whole or not at all."""
        kept = {"settings": dict(self.settings), "runs": [dict(run) for run in runs]}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.path.with_suffix(".part")
        scratch.write_text(json.dumps(kept, indent=1), encoding="utf-8")
        os.replace(scratch, self.path)
