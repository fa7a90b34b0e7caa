"""Compiles each of the pages' templates once a process, not once for each of the hundreds of apps that tests make.

Compiling a page's templates takes ten times as long as rendering it.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from jinja2 import Environment

_compile = Environment.compile
_compiled: dict[tuple[object, ...], CodeType] = {}


def _compile_once(self: Environment, source: Any, name: str | None = None, filename: str | None = None) -> CodeType:
    key = (source, name, filename, frozenset(self.filters), self.undefined, self.trim_blocks, self.lstrip_blocks)
    if key not in _compiled:
        _compiled[key] = _compile(self, source, name, filename)
    return _compiled[key]


def compile_each_template_once() -> None:
    """Share compiled templates among all environments of this process, from now on."""
    Environment.compile = _compile_once  # type: ignore[assignment, method-assign]
