"""One style sheet and one script for all pages of the device, put together when the app starts.

The scripts stay modules with imports of each other, as they are read and type-checked; a page then asks for one file.
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
    """The sheets that css/pages.css imports, one after the other. Raises KeyError where one is missing."""
    sheets = _SHEET.findall(files[STYLE].decode())
    return b"\n".join(files[f"css/{sheet}.css"] for sheet in sheets)


def script(files: Mapping[str, bytes], entry: str = ENTRY) -> bytes:
    """The entry's module with all that it imports, each in a scope of its own, before who imports it.

    Taken are `import { names } from "./module.js"` and `export function`, which is all that the pages' scripts use.
    Raises ValueError for any other import or export, and for modules that import each other; KeyError for a module that
    isn't there.
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
