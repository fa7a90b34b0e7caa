"""Reads the output of `web/build_device.py`: files by hash, the page, and the headers of every answer."""

from __future__ import annotations

import gzip
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from protocol.ids import Sha256

MANIFEST = "manifest.json"


class BuiltFile(BaseModel):
    """One file. bytes: its size as the browser sees it; gzip: stored compressed, under its name and '.gz'."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    sha256: Sha256
    bytes: int
    type: str
    gzip: bool


class BrowserBuild(BaseModel):
    """One build of the browser's device, as described in web/static/device/manifest.json.

    build is the SHA-256 of the service worker's script, which names every other file by its hash and contains the page:
    two readers with the same hash run the same code.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    build: Sha256
    script: str
    entries: dict[str, str]
    headers: dict[str, str]
    shell: str
    files: dict[str, BuiltFile]


def built_folder() -> Path:
    """Folder of the built files, in a checkout or an installed wheel."""
    return Path(str(files("web").joinpath("static"))) / "device"


def read_build(folder: Path) -> BrowserBuild | None:
    """The build in a folder; None if nothing was built.

    Raises ValueError if the manifest can't be read.
    """
    manifest = folder / MANIFEST
    return BrowserBuild.model_validate_json(manifest.read_bytes()) if manifest.is_file() else None


def kept_name(name: str, file: BuiltFile) -> str:
    """The file's name on disk."""
    return f"{name}.gz" if file.gzip else name


def path_of(folder: Path, name: str, file: BuiltFile) -> Path:
    """The file's path on disk."""
    return folder / kept_name(name, file)


def plain(path: Path, file: BuiltFile) -> bytes:
    """The file's uncompressed bytes, for a client that doesn't accept gzip."""
    kept = path.read_bytes()
    return gzip.decompress(kept) if file.gzip else kept
