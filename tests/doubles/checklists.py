"""The files that a checklist of docs/ tells its reader to change, to compare with what an example needed."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
STEP = re.compile(r"^\d+\. \*\*(.*?)\*\*", re.M)
FILE = re.compile(r"`((?:[\w-]+/)+(?:[\w-]+\.(?:py|toml|ts))?)(?::\w+)?`")
ONLY_IF = "Only if"


def files_to_touch(checklist: str) -> list[str]:
    """Return the bold file or new folder of each numbered step.

    Optional steps (`Only if ...`) are left out. Raises ValueError for a step that names none, or several.
    """
    steps = STEP.findall((DOCS / f"{checklist}.md").read_text(encoding="utf-8"))
    found = []
    for step in steps:
        if step.startswith(ONLY_IF):
            continue
        (file,) = FILE.findall(step)
        found.append(file)
    return found
