"""The pages' static files: style sheets, scripts and icons.

They are read once, and versioned by a hash of their content.

When the app starts, one style sheet and one script are bundled for all pages. The sources are separate modules, which
are easier to edit and type-check; a page requests a single file.
"""

import hashlib
import mimetypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path


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
    found[STYLE] = Asset(style(sources), "text/css")
    found[SCRIPT] = Asset(script(sources), "text/javascript")
    whole = hashlib.sha256()
    for name, asset in found.items():
        whole.update(name.encode() + b"\0" + asset.payload)
    return Assets(found, whole.hexdigest()[:12])


def _read(path: Path) -> Asset:
    known = {".js": "text/javascript", ".webmanifest": "application/manifest+json"}
    media_type = known.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "text/plain"
    return Asset(path.read_bytes(), media_type)


STYLE, SCRIPT = "css/pages.css", "js/pages.js"
ENTRY = "page"
_IMPORT = re.compile(r'^import \{ (?P<names>[\w, ]+) \} from "\./(?P<module>\w+)\.js";$', re.MULTILINE)
_SHEET = re.compile(r'^@import "\./(?P<sheet>\w+)\.css";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function (?P<name>\w+))", re.MULTILINE)


def style(files: Mapping[str, bytes]) -> bytes:
    """Return the sheets that css/pages.css imports, concatenated.

    Raises KeyError if one is missing.
    """
    sheets = _SHEET.findall(files[STYLE].decode())
    return b"\n".join(files[f"css/{sheet}.css"] for sheet in sheets)


def script(files: Mapping[str, bytes], entry: str = ENTRY) -> bytes:
    """Return the entry module with all its imports, dependencies first, each in its own scope.

    Supports only `import { names } from "./module.js"` and `export function`, which is all that the pages' scripts use.
    Raises ValueError for any other import or export and for circular imports; KeyError for a missing module.
    """
    done: dict[str, str] = {}
    _gather(files, entry, done, ())
    return "\n".join(done.values()).encode()


def _gather(files: Mapping[str, bytes], module: str, done: dict[str, str], way: tuple[str, ...]) -> None:
    if module in done:
        return
    if module in way:
        raise ValueError(f"scripts import each other: {' -> '.join((*way, module))}")
    source = files[f"js/{module}.js"].decode()
    for found in _IMPORT.finditer(source):
        _gather(files, found["module"], done, (*way, module))
    names = ", ".join(found["name"] for found in _EXPORT.finditer(source))
    body = _EXPORT.sub("", _IMPORT.sub(r"const { \g<names> } = \g<module>Module;", source))
    if left := re.search(r"^(?:import|export)\b.*$", body, re.MULTILINE):
        raise ValueError(f"js/{module}.js: {left[0]!r} is an import or export that the bundler does not support")
    done[module] = f"const {module}Module = (() => {{\n{body}return {{ {names} }};\n}})();"
