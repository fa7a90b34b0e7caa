"""The documents name only what exists: every link has a target, and every path in a guide or README is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.doubles.checklists import files_to_touch

ROOT = Path(__file__).parents[2]
PACKAGES = ("backend", "device_app", "models", "exporters", "experiments", "newsroom", "web")
PACKAGE_READMES = sorted(
    path for package in PACKAGES for path in (ROOT / package).rglob("README.md") if "node_modules" not in path.parts
)
GUIDES = sorted((ROOT / "docs").glob("*.md"))
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
TEXTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *PACKAGE_READMES]
MADE_WHEN_RUNNING = {"var/", "ownfeed.toml"}
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)\s]+)\)")
PATH = re.compile(r"`((?:\.\./)*[\w-]+(?:/[\w.-]+)*(?:\.(?:py|md|sql|toml|html|js|ts|css)|/))`")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("document", TEXTS, ids=name)
def test_document_links_have_targets(document: Path) -> None:
    for target in LINK.findall(text(document)):
        assert (document.parent / target.split("#")[0]).exists(), target


@pytest.mark.parametrize("document", [*GUIDES, *DECISIONS, *PACKAGE_READMES], ids=name)
def test_paths_named_in_documents_exist(document: Path) -> None:
    below = {path.name for path in document.parent.rglob("*.*")} if document in PACKAGE_READMES else set()
    for path in set(PATH.findall(text(document))) - MADE_WHEN_RUNNING:
        assert path in below or any((folder / path).exists() for folder in (document.parent, ROOT)), path


def test_index_lists_every_decision_by_its_title() -> None:
    index = text(ROOT / "docs" / "decisions" / "README.md")
    for decision in DECISIONS:
        number, title = re.fullmatch(r"# (\d+)\. (.+)", text(decision).splitlines()[0]).groups()  # type: ignore[union-attr]
        assert decision.name.startswith(f"{int(number):03d}-")
        assert f"\n{number}. [{title}]({decision.name})\n" in index


@pytest.mark.parametrize("decision", DECISIONS, ids=name)
def test_decision_states_its_context_before_the_decision(decision: Path) -> None:
    headings = re.findall(r"^## (.*)$", text(decision), re.M)
    assert headings[:2] == ["Context", "Decision"]
    assert set(headings[2:]) <= {"Consequences", "What was rejected"}


def test_search_for_paths_finds_its_examples() -> None:
    assert PATH.findall("`a/b.py`, `../c/`, `d.md`, `x = 1`, `e.f()`, `ownfeed demo`") == ["a/b.py", "../c/", "d.md"]


DOTTED = re.compile(r"`((?:backend|device_app|models|exporters|experiments|newsroom)(?:\.\w+)+)(?:\([^`]*\))?`")


def is_there(dotted: str) -> bool:
    """Return whether a dotted name is a module, a package, or a name inside one."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        folder = ROOT.joinpath(*parts[:end])
        for module in (folder.with_suffix(".py"), folder / "__init__.py"):
            if module.exists():
                return end == len(parts) or parts[end] in text(module)
        if folder.is_dir():
            return end == len(parts)
    return False


@pytest.mark.parametrize("package", [*PACKAGES, "docs", "tests"])
def test_every_module_named_in_prose_exists(package: str) -> None:
    files = [path for path in (ROOT / package).rglob("*.*") if path.suffix in {".py", ".md"}]
    prose = {
        found: name(path) for path in files if "node_modules" not in path.parts for found in DOTTED.findall(text(path))
    }
    assert {found: where for found, where in prose.items() if not is_there(found)} == {}


def test_search_for_modules_detects_missing_ones() -> None:
    assert DOTTED.findall("`backend.news.pool`, `backend.app.create_app(x)`, `a.b`") == [
        "backend.news.pool",
        "backend.app.create_app",
    ]
    there, missing = (
        ("backend.news.pool", "backend.news.pool.NewsPool", "backend.news"),
        ("backend.shelf", "backend.news.pool.Shelf"),
    )
    assert all(map(is_there, there))
    assert not any(map(is_there, missing))


SYMBOL = re.compile(r"`([\w/]+\.py):([\w.]+)`")


def defined(path: Path) -> set[str]:
    """Return the names of a module's top level, and `Class.member` of its classes."""
    found: set[str] = set()
    for node in ast.parse(text(path)).body:
        for one in names(node):
            found.add(one)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{one}" for each in node.body for one in names(each)}
    return found


def names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


@pytest.mark.parametrize("document", GUIDES, ids=name)
def test_names_given_with_a_file_are_defined_there(document: Path) -> None:
    for path, symbol in SYMBOL.findall(text(document)):
        assert (ROOT / path).exists(), path
        assert symbol in defined(ROOT / path), f"{path}:{symbol}"


def test_guided_tour_answers_four_questions_and_covers_every_paper() -> None:
    tour = text(ROOT / "docs" / "tour.md")
    assert re.findall(r"^## (.*)\?$", tour, re.M) == [
        "Where is noise added to a report",
        "Where does a round end",
        "Where does a new encoder take over",
        "Where is a feed's order decided",
    ]
    assert len(SYMBOL.findall(tour)) > 35
    for paper in ("Uni-FedRec", "FedNewsRec", "Efficient-FedRec", "FINDING", "FL-MV-DSSM", "Bonawitz"):
        assert f"| {paper}" in tour


@pytest.mark.parametrize(
    ("checklist", "most"),
    [
        ("add-a-news-source", 2),
        ("add-a-report-mode", 6),
        ("add-a-strategy", 4),
        ("add-a-ranker", 3),
        ("add-a-protection", 6),
    ],
)
def test_checklist_needs_few_files_and_names_its_test(checklist: str, most: int) -> None:
    assert 1 < len(files_to_touch(checklist)) <= most
    toy = next(path for path in PATH.findall(text(ROOT / "docs" / f"{checklist}.md")) if path.startswith("tests/"))
    assert "def test_" in text(ROOT / toy)


CLAIM = re.compile(r"^\| ([\w/]+\.md) \| (.+) \| (`tests/.+`) \|$", re.M)


def claims() -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return document, sentence and tests of each row of the threat model's table of claims."""
    table = text(ROOT / "docs" / "threat-model.md").partition("## What is claimed elsewhere")[2].partition("\n## ")[0]
    return [(document, sentence, SYMBOL.findall(tests)) for document, sentence, tests in CLAIM.findall(table)]


def test_threat_model_claims_match_their_documents_and_have_tests() -> None:
    assert len(claims()) > 12
    for document, sentence, tests in claims():
        assert sentence in " ".join(text(ROOT / document).split()), f"{document}: {sentence}"
        assert tests, sentence
        for path, symbol in tests:
            assert symbol.startswith("test_"), symbol
            assert symbol in defined(ROOT / path), f"{path}:{symbol}"


def test_every_readme_privacy_promise_has_tests() -> None:
    section = text(ROOT / "README.md").partition("\n## What is private")[2].partition("\n## ")[0]
    promises = re.findall(r"^\d+\. (.*)$", section, re.M)
    assert promises
    claimed = {sentence for document, sentence, _ in claims() if document == "README.md"}
    # Two lines say what is not promised.
    assert [line for line in promises if line not in claimed] == [
        line for line in promises if line.startswith(("Not hidden:", "Not protected:"))
    ]


def test_readme_of_the_tests_lists_every_double() -> None:
    folder = ROOT / "tests" / "doubles"
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "ray").is_dir()} - {"__init__"}
    section = (
        text(ROOT / "tests" / "README.md").partition("## Worlds and doubles in `doubles`")[2].partition("\n## ")[0]
    )
    listed = [name for row in re.findall(r"^\| (`.+?) \|", section, re.M) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(modules)
