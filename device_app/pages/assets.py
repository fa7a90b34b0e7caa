"""The pages' static files: style sheets, scripts and icons.

They are read once, and versioned by a hash of their content.
"""

from __future__ import annotations

import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from device_app.pages import bundles


@dataclass(frozen=True)
class Asset:
    """One static file."""

    payload: bytes
    media_type: str


@dataclass(frozen=True)
class Assets:
    """Every static file by its path under web/static ('css/tokens.css').

    All share one version, since scripts import each other by relative paths.
    """

    files: dict[str, Asset]
    version: str

    def path(self, name: str) -> str:
        """Return a file's address, which changes when any file does.

        Raises KeyError for an unknown file.
        """
        if name not in self.files:
            raise KeyError(f"no file {name!r} in web/static")
        return f"/static/{self.version}/{name}"

    def get(self, version: str, name: str) -> Asset | None:
        """Return the file, or None if no file has that name and version."""
        return self.files.get(name) if version == self.version else None


def web_folder(name: str) -> Path:
    """Return a folder of the package `web`: 'templates' or 'static'.

    Raises FileNotFoundError if it isn't installed.
    """
    folder = Path(str(files("web").joinpath(name)))
    if not folder.is_dir():
        raise FileNotFoundError(f"the pages' files are not installed: no folder {name!r} in the package 'web'")
    return folder


@cache
def read_assets() -> Assets:
    """Return all of web/static, read once a process: a newer version may be installed while it keeps running."""
    root = web_folder("static")
    found = {
        path.relative_to(root).as_posix(): _read(path)
        for path in sorted(root.rglob("*"))
        if path.suffix in {".css", ".js", ".svg", ".png", ".webmanifest"} and path.parent != root / "device"
    }
    sources = {name: asset.payload for name, asset in found.items()}
    found[bundles.STYLE] = Asset(bundles.style(sources), "text/css")
    found[bundles.SCRIPT] = Asset(bundles.script(sources), "text/javascript")
    whole = hashlib.sha256()
    for name, asset in found.items():
        whole.update(name.encode() + b"\0" + asset.payload)
    return Assets(found, whole.hexdigest()[:12])


def _read(path: Path) -> Asset:
    known = {".js": "text/javascript", ".webmanifest": "application/manifest+json"}
    media_type = known.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "text/plain"
    return Asset(path.read_bytes(), media_type)
