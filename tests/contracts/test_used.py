"""The product itself refers to each of its public functions and classes: what only tests call is unused.

Oracle: Python's parser. A name counts as used if a product module mentions it, as an attribute or a whole string too,
outside its own definition and outside other unused definitions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("backend", "device_app", "models", "exporters", "experiments", "newsroom")
KEPT = {
    "client_app": "for who runs Flower: experiments/README.md",
    "server_app": "for who runs Flower: experiments/README.md",
    "GridClients": "what server_app runs rounds with",
    "FlowerFailed": "what GridClients raises",
}
"""Public without being used here, and why."""
KEPT_METHODS = {
    "decoder": "of a report mode: the test of a toy mode holds the server's decoders to it",
}
FOREIGN = {
    "TypeDecorator[datetime]",
    "HTMLParser",
    "JsonFormatter",
    "BaseSettings",
    "asyncio.Protocol",
    "uvicorn.Server",
    "TrainingProcessCallback",
}
"""Bases whose methods another library calls by their names."""


@dataclass(frozen=True)
class Definition:
    name: str
    place: str
    says: frozenset[str]


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield names, attributes, and the last part of strings such as "package.module:name"."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr
        elif isinstance(one, ast.ImportFrom):
            yield from (each.name for each in one.names if each.asname)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str) and " " not in one.value:
            yield one.value.replace(":", ".").rpartition(".")[2]


def split(place: str, source: str) -> tuple[list[Definition], set[str]]:
    """Return the public functions and classes of a module, and what the rest of it mentions.

    A decorated function is called by its decorator: a route, a command.
    """
    found, rest = [], set()
    for node in ast.parse(source).body:
        called = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and bool(node.decorator_list)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not called:
            found.append(Definition(node.name, f"{place}:{node.lineno}", frozenset(names_in(node)) - {node.name}))
        else:
            rest |= set(names_in(node))
    return found, rest


def unused(modules: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the places of public definitions that nothing used refers to, by name."""
    waiting: list[Definition] = []
    said: set[str] = set()
    for place, source in modules:
        definitions, rest = split(place, source)
        waiting += definitions
        said |= rest
    while reached := [each for each in waiting if each.name in said]:
        waiting = [each for each in waiting if each.name not in said]
        said = said.union(*(each.says for each in reached))
    return {each.name: each.place for each in waiting if not each.name.startswith("_")}


def unused_methods(modules: Iterable[tuple[str, str]], data: str) -> dict[str, str]:
    """Return the places of public methods and properties that no module and no entry of `data` names.

    Only of classes whose bases are all ours; another library calls the methods of its own subclasses.
    """
    defined: dict[str, str] = {}
    said = set(re.findall(r"\w+", data))
    for place, source in modules:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Attribute):
                said.add(node.attr)
            elif isinstance(node, ast.keyword) and node.arg:
                said.add(node.arg)
            elif isinstance(node, ast.Name):
                said.add(node.id)
            elif isinstance(node, ast.ClassDef) and not any(ast.unparse(base) in FOREIGN for base in node.bases):
                for each in node.body:
                    if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.name.startswith("_"):
                        defined[each.name] = f"{place}:{each.lineno} {node.name}.{each.name}"
    return {name: where for name, where in defined.items() if name not in said}


def product() -> list[tuple[str, str]]:
    files = [ROOT / "ownfeed.py", *(file for each in PACKAGES for file in sorted((ROOT / each).rglob("*.py")))]
    return [(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) for file in files]


def test_product_uses_its_definitions() -> None:
    found = unused(product())
    assert {name: place for name, place in found.items() if name not in KEPT} == {}
    assert set(KEPT) == set(found), "what is used needs no reason"


def test_product_uses_its_methods() -> None:
    data = "".join(
        path.read_text(encoding="utf-8")
        for folder, kind in (("web/templates", "*.html"), ("newsroom/data", "*.toml"))
        for path in (ROOT / folder).rglob(kind)
    )
    found = unused_methods(product(), data)
    assert {name: where for name, where in found.items() if name not in KEPT_METHODS} == {}
    assert set(KEPT_METHODS) == set(found), "what is used needs no reason"


def test_search_for_unused_methods_finds_uncalled_methods() -> None:
    one = "class A:\n    def called(self): ...\n    def alone(self): ...\n    def drawn(self): ...\n"
    two = "class B(HTMLParser):\n    def handle(self): A().called()\n"
    assert unused_methods([("one", one), ("two", two)], "{{ a.drawn }}") == {"alone": "one:3 A.alone"}


def test_search_for_unused_definitions_finds_them() -> None:
    one = "def used(): ...\ndef alone():\n    helper()\ndef helper(): ...\n@app.get('/')\ndef route():\n    used()\n"
    two = "from x import Widget as W\nclass Widget: ...\nclass Table: ...\nROW = {'kind': 'y:Table'}\n"
    assert unused([("one", one), ("two", two)]) == {"alone": "one:2", "helper": "one:4"}
    assert unused([("one", "def again():\n    again()\n")]) == {"again": "one:1"}
