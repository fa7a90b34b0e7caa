"""Names and sizes of modules: one class name has one meaning, and no file is long. Oracle: Python's parser."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("backend", "device_app", "models", "exporters", "experiments", "newsroom")
LINES_LIMIT = 400
NEWS_LINES_LIMIT = 2_700
SHORT_LINES, SHORT_LIMIT = 50, 60
"""So many modules under so many lines there may be, tests and the newspaper apart: the number only ever falls."""


def modules(*folders: str) -> list[Path]:
    return [ROOT / "ownfeed.py", *(file for folder in folders for file in sorted((ROOT / folder).rglob("*.py")))]


def lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def classes(source: str) -> list[str]:
    """Every class of a module, those within functions and classes among them."""
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


def test_a_class_name_has_one_meaning_in_the_whole_tree_tests_included() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for file in modules(*PACKAGES, "alembic", "tests"):
        for name in classes(file.read_text(encoding="utf-8")):
            homes[name].append(file.relative_to(ROOT).as_posix())
    assert len(homes) > 1_000
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def aliases(source: str) -> list[str]:
    """Names of types that a module gives to others: written like a class, and no type variable."""
    return [
        target.id
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and re.match(r"_?[A-Z][A-Z0-9]*[a-z]", target.id)
        if not ast.unparse(node.value).startswith("TypeVar(")
    ]


def test_no_alias_of_a_type_has_the_name_of_a_class() -> None:
    sources = {file: file.read_text(encoding="utf-8") for file in modules(*PACKAGES, "alembic", "tests")}
    named = {name for source in sources.values() for name in classes(source)}
    found = {(name, str(file)) for file, source in sources.items() for name in aliases(source)}
    assert len(found) > 150
    assert {(name, file) for name, file in found if name in named} == set()


def test_no_module_is_long() -> None:
    assert {str(file): lines(file) for file in modules(*PACKAGES) if lines(file) > LINES_LIMIT} == {}
    assert {str(file): lines(file) for file in modules("tests") if lines(file) > LINES_LIMIT} == {}


def test_few_modules_are_short() -> None:
    short = [
        file
        for file in modules(*(name for name in PACKAGES if name != "newsroom"))
        if file.name != "__init__.py" and lines(file) < SHORT_LINES
    ]
    assert len(short) <= SHORT_LIMIT, f"{len(short)} modules under {SHORT_LINES} lines"


def test_the_news_are_a_small_part_of_the_backend() -> None:
    assert sum(map(lines, (ROOT / "backend" / "news").rglob("*.py"))) <= NEWS_LINES_LIMIT


def test_the_search_finds_classes_wherever_they_stand() -> None:
    source = "class A: ...\nclass _B: ...\ndef f():\n    class C:\n        class D: ...\n"
    assert classes(source) == ["A", "_B", "C", "D"]


def test_the_search_finds_aliases_and_neither_constants_nor_type_variables() -> None:
    source = 'A = 1\nLIMIT: int = 2\nM = TypeVar("M")\nJob = TypeVar("Job")\nMode = Literal["a"]\nNDRows: Any = int\n'
    assert aliases(source) == ["Mode", "NDRows"]
