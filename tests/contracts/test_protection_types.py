"""Only a protection's own modules ask which protection a round has. Oracle: Python's parser."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from backend.federation.protections import registry as on_the_server
from device_app.privacy.protections import registry as on_the_device
from protocol.protections import Protection

ROOT = Path(__file__).parents[2]
TYPES = {"SecureSum", "LocalLaplace", "UnionMarks", "SUMMED"}
WIRE = "protocol/"
"""Where the union is defined, and a manifest with the terms of a sum told from one without."""


def type_tests(tree: ast.Module) -> list[str]:
    """Return every isinstance on a protection's type, class pattern, comparison with `type(...)`, and `.kind`."""
    found = []
    for node in ast.walk(tree):
        named: set[str] = set()
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass") and len(node.args) > 1:
            named = names(node.args[1])
        elif isinstance(node, ast.MatchClass):
            named = names(node.cls)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Call) and ast.unparse(side.func) == "type" for side in sides):
                named = set().union(*(names(side) for side in sides))
            elif any(ast.unparse(side).endswith("protection.kind") for side in sides):
                named = TYPES
        if named & TYPES:
            found.append(ast.unparse(node))
    return found


def names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} | {
        one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)
    }


def test_only_protection_packages_test_for_protection_types() -> None:
    found, inside = [], 0
    for folder in ("backend", "device_app", "experiments", "exporters", "models"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            place = file.relative_to(ROOT).as_posix()
            tests = type_tests(ast.parse(file.read_text(encoding="utf-8")))
            if file.parent.name == "protections":
                inside += len(tests)
            elif not place.startswith(WIRE):
                found += [f"{place}: {one}" for one in tests]
    assert found == []
    assert inside, "the search finds those that narrow a value for who needs its fields"


@pytest.mark.parametrize(
    "cheat",
    [
        "isinstance(x.protection, SecureSum)",
        "isinstance(x, (int, protections.LocalLaplace))",
        "isinstance(x, SUMMED)",
        "type(x) is UnionMarks",
        "manifest.protection.kind == 'secure_sum'",
        "match x:\n    case SecureSum(sigma=0):\n        pass",
    ],
)
def test_search_for_type_tests_finds_each_form(cheat: str) -> None:
    assert type_tests(ast.parse(cheat))


def test_both_sides_handle_every_protection_on_the_wire() -> None:
    kinds = {each.model_fields["kind"].default for each in get_args(get_args(Protection)[0])}
    assert set(on_the_server.PROTECTIONS) == set(on_the_device.PROTECTIONS) == kinds
