"""The files that a checklist of docs/ tells its reader to touch, as tests compare them with what a toy needed."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
STEP = re.compile(r"^\d+\. \*\*(.*?)\*\*", re.M)
FILE = re.compile(r"`((?:[\w-]+/)+(?:[\w-]+\.py)?)(?::\w+)?`")
ONLY_IF = "Only if"


def files_to_touch(checklist: str) -> list[str]:
    """A file, or the folder of a new one, for each numbered step, which says it in bold; what is needed only sometimes
    (`Only if ...`) is left out. Raises ValueError for a step that names none, or several."""
    steps = STEP.findall((DOCS / f"{checklist}.md").read_text(encoding="utf-8"))
    found = []
    for step in steps:
        if step.startswith(ONLY_IF):
            continue
        (file,) = FILE.findall(step)
        found.append(file)
    return found
