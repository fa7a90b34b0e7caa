"""What an encoder's folder says of itself, and whether its files are the ones that were put there.

Vectors of a damaged graph or tokenizer would stand under the name of the whole one, beside its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backend.embedding.state_store import DESCRIPTION_FILE
from backend.errors import OwnfeedError

GRAPH, TOKENIZER = "graph", "tokenizer"
HASHES = "sha256"
"""Where a description says of these files what they hash to; versions before 0.2 didn't say it."""
SAID: dict[str, type] = {"digest": str, "dimensions": int, "parameters": dict}


class EncoderDamaged(OwnfeedError):
    """A file of a news encoder is not what was put there; nothing is computed by it."""

    code, status, title = "encoder-damaged", 500, "A file of the news encoder is damaged"

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} is damaged: {why}. Put it back from a backup or from another machine of this backend."
        )


def read_description(folder: Path) -> dict[str, Any]:
    """Raises FileNotFoundError, or EncoderDamaged."""
    path = folder / DESCRIPTION_FILE
    try:
        about = json.loads(path.read_bytes())
        if not isinstance(about, dict):
            raise ValueError("it is no object")
        for name, kind in SAID.items():
            if not isinstance(about.get(name), kind):
                raise ValueError(f"{name} is missing or of another kind")
    except ValueError as broken:
        raise EncoderDamaged(path, f"it can't be read ({str(broken).splitlines()[0]})") from broken
    return about


def sha256_of(path: Path) -> str:
    """Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hashes_of(folder: Path, names: Mapping[str, str]) -> dict[str, str]:
    """What a description says of the files that are there. names: by GRAPH and TOKENIZER, below the folder."""
    return {kind: sha256_of(folder / name) for kind, name in names.items() if (folder / name).is_file()}


def shared_hashes(folder: Path, about: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, str]:
    """Of files that encoders share: what they hashed to when they were made, not what lies there now.

    folder, about: where they lie, and what is said of them there. names: of the files, by GRAPH and TOKENIZER. A file
    of which nothing is said, as before 0.2, is left out. Raises EncoderDamaged, OSError.
    """
    said: Mapping[str, str] = about.get(HASHES, {})
    return {kind: check_file(folder / name, about, kind) for kind, name in names.items() if kind in said}


def check_file(path: Path, about: Mapping[str, Any], kind: str) -> str:
    """The hash of a file. Raises EncoderDamaged where the description says another."""
    found, expected = sha256_of(path), about.get(HASHES, {}).get(kind)
    if expected is not None and found != expected:
        raise EncoderDamaged(path, "its bytes are not those that were put there")
    return found
