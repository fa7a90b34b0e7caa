"""Bundles one style sheet and one script for all pages when the app starts.

The sources stay modules that import each other, as they are edited and type-checked; a page requests a single file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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
        raise ValueError(f"js/{module}.js: {left[0]!r} is an import or export that the bundle doesn't take")
    done[module] = f"const {module}Module = (() => {{\n{body}return {{ {names} }};\n}})();"
