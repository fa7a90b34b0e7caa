"""Sentences for people are kept in catalogues: each is used, none is missing, and none is in code.

Oracle: Python's parser. An error's message may stay where the error is raised, and so may the texts of logs, options
and schemas.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter
from typing import NamedTuple

import pytest

from protocol.text_catalogue import TextCatalogue

ROOT = Path(__file__).parents[2]
SHOWING = (
    "device_app/feed", "device_app/interests", "device_app/pages", "device_app/privacy", "device_app/reports",
    "device_app/sync", "device_app/training", "device_app/uplink", "device_app/view_models", "backend/console",
)  # fmt: skip
"""Packages whose strings reach a page."""
WORDS_LIMIT = 3
"""A string of more words is taken for a sentence."""
EXEMPT = {
    "device_app/pages/metrics.py": "what /metrics says of itself",
    "device_app/pages/openapi.py": "what the schema says of an answer",
    "device_app/privacy/protections/secure_sum.py": "what a refusal names, beside the figures it holds",
    "device_app/privacy/accounting/cost_of_sums.py": "what a refusal names",
    "device_app/sync/release_sync.py": "what a refused release names",
    "device_app/training/multiview": "what the log says of a process",
    "device_app/training/tasks": "why a task refuses an offer",
    "device_app/uplink/http.py": "errors of the network",
    "device_app/view_models/export.py": "SQL",
    "device_app/view_models/traffic.py": "SQL",
}
"""Files and folders with long strings that are no prose of a page, and what they are."""
WORD = re.compile(r"[(“]?[A-Za-z][a-z']*[.,:;!?)”]*").fullmatch
LOGGERS = {"debug", "info", "warning", "error", "exception"}


class SentenceUse(NamedTuple):
    """Where a sentence is used: with which placeholders filled, and whether these are all of them."""

    file: str
    key: str
    filled: frozenset[str]
    whole: bool


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    files = [file for package in ("device_app", "backend") for file in sorted((ROOT / package).rglob("*.py"))]
    return tuple((file.relative_to(ROOT).as_posix(), ast.parse(file.read_text(encoding="utf-8"))) for file in files)


def names_in_braces(sentence: str) -> set[str]:
    """Return a sentence's placeholders."""
    return {field.partition(".")[0] for _, field, _, _ in Formatter().parse(sentence) if field}


def constants(node: ast.AST) -> list[str]:
    """Return the strings that an expression may evaluate to: both, for a conditional."""
    if isinstance(node, ast.IfExp):
        return [*constants(node.body), *constants(node.orelse)]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def proses(trees: dict[str, ast.Module]) -> dict[str, dict[str, tuple[str, str]]]:
    """Return by module the names that hold a catalogue, and of which file."""
    found: dict[str, dict[str, tuple[str, str]]] = {path: {} for path in trees}
    for path, tree in trees.items():
        for each in tree.body:
            if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call):
                call, target = each.value, each.targets[0]
                if isinstance(call.func, ast.Name) and call.func.id == "TextCatalogue" and isinstance(target, ast.Name):
                    package, file = (constants(one)[0] for one in call.args)
                    found[path][target.id] = (package, file)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                source = node.module.replace(".", "/")
                held = found.get(f"{source}.py") or found.get(f"{source}/__init__.py") or {}
                found[path] |= {one.asname or one.name: held[one.name] for one in node.names if one.name in held}
    return found


def uses() -> tuple[dict[tuple[str, str], list[SentenceUse]], dict[tuple[str, str], set[str]]]:
    """Return where each catalogue's sentences are used, and which of its tables are."""
    trees = dict(modules())
    held = proses(trees)
    sentences: dict[tuple[str, str], list[SentenceUse]] = {one: [] for names in held.values() for one in names.values()}
    tables: dict[tuple[str, str], set[str]] = {one: set() for one in sentences}
    for path, tree in trees.items():
        names = held[path]
        for node in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
            function, arguments, whole = node.func, node.args, True
            if isinstance(function, ast.Name) and function.id == "partial":
                function, arguments, whole = arguments[0], arguments[1:], False
            if isinstance(function, ast.Name) and function.id in names:
                keys = constants(arguments[0])
                assert keys, f"{path}:{node.lineno}: the key of a sentence is written where it is used"
                filled = frozenset(each.arg or "" for each in node.keywords)
                sentences[names[function.id]] += [
                    SentenceUse(f"{path}:{node.lineno}", key, filled, whole) for key in keys
                ]
            elif isinstance(function, ast.Attribute) and function.attr in ("table", "pairs"):
                holder = names.get(getattr(function.value, "id", ""))
                if holder is not None:
                    tables[holder] |= set(constants(node.args[0]))
    return sentences, tables


def test_every_catalogue_sentence_is_used_with_all_its_placeholders() -> None:
    sentences, tables = uses()
    assert len(sentences) >= 7
    for (package, file), places in sentences.items():
        prose = TextCatalogue(package, file)
        for place in places:
            assert place.key in prose.sentences, f"{place.file}: {file} has no {place.key!r}"
            room = names_in_braces(prose.sentences[place.key])
            fits = place.filled == room if place.whole else place.filled <= room
            assert fits, f"{place.file}: {place.key!r} has room for {sorted(room)}"
        assert set(prose.sentences) - {place.key for place in places} == set(), f"{package}/{file}"
        assert tables[package, file] == set(prose.tables), f"{package}/{file}"


def test_every_catalogue_table_key_is_used_in_code_or_templates() -> None:
    known = {
        node.value for _, tree in modules() for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }  # fmt: skip
    templates = (path.read_text(encoding="utf-8") for path in (ROOT / "web" / "templates").rglob("*.html"))
    known |= {key for text in templates for key in re.findall(r"\b(?:tools|words)\.(\w+)", text)}
    for package, file in uses()[0]:
        for name, table in TextCatalogue(package, file).tables.items():
            unknown = {key for key in table if key not in known and key.removesuffix("-only") not in known}
            assert unknown == set(), f"{package}/{file}: [{name}]"


def test_form_confirmations_match_the_catalogue() -> None:
    said: set[str] = set()
    for path, tree in modules():
        if path.startswith("device_app/pages/"):
            for node in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
                name, place = getattr(node.func, "id", ""), {"see_other": 1, "answer_form": 2}
                if name in place and len(node.args) > place[name]:
                    said |= set(constants(node.args[place[name]]))
    assert said == set(TextCatalogue("device_app.pages", "words.toml").table("said"))


def speaks_to_no_page(node: ast.AST) -> bool:
    """Return whether a node's strings are an error's, an option's or the log's."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in LOGGERS
    if isinstance(node, ast.ClassDef):
        return any(getattr(base, "id", "").endswith("Error") for base in node.bases)
    if isinstance(node, ast.keyword):
        return node.arg in ("description", "help")
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Raise | ast.Assert)


def sentences_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield long strings that are no docstring, error message, option's help or log line."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if speaks_to_no_page(node):
            left_out |= {id(each) for each in ast.walk(node)}
        elif isinstance(node, ast.JoinedStr):
            left_out |= {id(each) for each in node.values}
    for node in (each for each in ast.walk(tree) if id(each) not in left_out):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(constants(each)[0] if constants(each) else "…" for each in parts)
        if isinstance(node, ast.JoinedStr | ast.Constant) and len(list(filter(WORD, text.split()))) > WORDS_LIMIT:
            yield node.lineno, text


def test_page_sentences_are_kept_out_of_code() -> None:
    found, exempt = [], set()
    for path, tree in modules():
        if not path.startswith(SHOWING):
            continue
        why = next((each for each in EXEMPT if path.startswith(each)), None)
        for line, text in sentences_in(tree):
            if why is None:
                found.append(f"{path}:{line}: {text[:90]}")
            else:
                exempt.add(why)
    assert found == [], "sentences belong into the TOML file of their package (protocol/text_catalogue.py)"
    assert exempt == set(EXEMPT), "what has no long string needs no exemption"


@pytest.mark.parametrize(
    ("source", "reported"),
    [
        ('x = "Nothing of you has left today."', 1),
        ('x = f"{count} stories have come since then."', 1),
        ('"""Says what has come since then."""', 0),
        ('raise ValueError("a release without a way to report")', 0),
        ('log.warning("the feed %s is kept no longer", name)', 0),
        ('x = "no such thing"', 0),
    ],
    ids=["a sentence", "one with room", "a docstring", "an error", "the log", "three words"],
)
def test_search_for_sentences_finds_sentences_but_not_errors(source: str, reported: int) -> None:
    assert len(list(sentences_in(ast.parse(source)))) == reported
