"""What `web/build_device.py` made: files by hash, the page, the headers of every answer."""

from __future__ import annotations

import gzip
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from device_app.wire.ids import Sha256

MANIFEST = "manifest.json"


class BuiltFile(BaseModel):
    """One file. bytes: its size as the browser sees it; gzip: kept compressed, under its name and '.gz'."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    sha256: Sha256
    bytes: int
    type: str
    gzip: bool


class BrowserBuild(BaseModel):
    """One build of the browser's device, as web/static/device/manifest.json tells it.

    build is the SHA-256 of the service worker's script, which names every other file by its hash and holds the page:
    two readers with one hash run the same code.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    build: Sha256
    script: str
    entries: dict[str, str]
    headers: dict[str, str]
    shell: str
    files: dict[str, BuiltFile]


def built_folder() -> Path:
    """Where the built files lie, in a checkout as in an installed wheel."""
    return Path(str(files("web").joinpath("static"))) / "device"


def read_build(folder: Path) -> BrowserBuild | None:
    """The build in a folder; None where nothing was built. Raises ValueError if the manifest can't be read."""
    manifest = folder / MANIFEST
    return BrowserBuild.model_validate_json(manifest.read_bytes()) if manifest.is_file() else None


def kept_name(name: str, file: BuiltFile) -> str:
    """What the file is called where it is kept."""
    return f"{name}.gz" if file.gzip else name


def path_of(folder: Path, name: str, file: BuiltFile) -> Path:
    """Where the file is kept."""
    return folder / kept_name(name, file)


def plain(path: Path, file: BuiltFile) -> bytes:
    """The file as the browser sees it, for a client that takes no gzip."""
    kept = path.read_bytes()
    return gzip.decompress(kept) if file.gzip else kept
