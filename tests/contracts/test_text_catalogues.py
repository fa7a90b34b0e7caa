"""Every sentence of a catalogue gets all its placeholders, in Python and TypeScript. Oracle: the catalogues.

A sentence whose caller omits a placeholder fails only when it is shown, on a page that few tests open.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOM = re.compile(r"\{\{|\}\}|\{(\w+)(?:[:!][^}]*)?\}")
SAID = re.compile(r"\.say\(\s*\"(\w+)\"\s*(?:,\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\})?\s*,?\s*\)")


def rooms() -> dict[str, list[set[str]]]:
    """Return by key the placeholders of its sentence, in each catalogue that has it."""
    found: dict[str, list[set[str]]] = defaultdict(list)
    for file in (
        *ROOT.glob("backend/**/*.toml"),
        *ROOT.glob("device_app/**/*.toml"),
        *ROOT.glob("web/device/**/*.toml"),
    ):
        for key, sentence in tomllib.loads(file.read_text(encoding="utf-8")).items():
            if isinstance(sentence, str):
                found[key].append({name for name in ROOM.findall(sentence) if name})
    return found


def is_unfilled(key: str, given: set[str], found: dict[str, list[set[str]]]) -> bool:
    return key in found and not any(room <= given for room in found[key])


def test_python_fills_every_catalogue_placeholder() -> None:
    found, seen = rooms(), 0
    for folder in ("backend", "device_app"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if not (isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)):
                    continue
                name = node.func.id if isinstance(node.func, ast.Name) else ""
                key = node.args[0].value
                if not (name.isupper() and isinstance(key, str)) or any(each.arg is None for each in node.keywords):
                    continue
                seen += key in found
                assert not is_unfilled(key, {each.arg or "" for each in node.keywords}, found), f"{file}: {key}"
    assert seen > 100


def test_typescript_fills_every_catalogue_placeholder() -> None:
    found, seen = rooms(), 0
    for file in (ROOT / "web" / "device").rglob("*.ts"):
        for key, values in SAID.findall(file.read_text(encoding="utf-8")):
            if "..." in values:
                continue
            flat = re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", values))
            given = {part.partition(":")[0].strip() for part in flat.split(",") if part.strip()}
            seen += key in found
            assert not is_unfilled(key, given, found), f"{file}: {key} is given {given}, and has room for {found[key]}"
    assert seen > 50


def test_placeholder_check_finds_a_missing_name() -> None:
    found = {"sent": [{"percent"}]}
    assert is_unfilled("sent", {"truth"}, found)
    assert not is_unfilled("sent", {"percent", "truth"}, found)
    assert SAID.findall('W.say("sent", { last: size - 1, truth })') == [("sent", " last: size - 1, truth ")]
