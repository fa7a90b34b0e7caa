"""Mute patterns mean the same on both devices. Oracles: Python's `re` for expressions, hand-made lists for words."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from device_app.reading.mute_patterns import PatternKind, PatternRefused, matcher, plain
from tests.conformance.node_end import ask_node

pytestmark = pytest.mark.node

PARTS = (
    "a",
    "b",
    "c",
    "a*",
    "b+",
    "(a|b)",
    "[ab]",
    "(ab)*",
    "c?",
    "(a|bc){1,2}",
    ".",
    "^",
    "$",
    "(?:a|)",
    "[^a]",
    "b{0}",
)
WORDS: list[tuple[PatternKind, str, list[str], list[bool]]] = [
    ("word", "cat", ["A cat.", "Category", "cats", "CAT-food", "_cat_"], [True, False, False, True, True]),
    ("word", "live  blog", ["Live blog: storm", "liveblog", "live\nblog"], [True, False, True]),
    ("word", "日本", ["今日本の", "日 本"], [True, False]),
    ("word", "straße", ["Die STRASSE", "strassen"], [True, False]),
    ("phrase", "win a", ["Swin and", "win  a prize", "wina"], [True, True, False]),
    ("regex", r"\d{3,4} (euro|€)", ["1234 €", "12 euro", "costs 999 Euro"], [True, False, True]),
    ("regex", "^live:", ["LIVE: now", "Now live:"], [True, False]),
    ("regex", "[À-Ö]", ["à la carte", "a la carte"], [True, False]),
    ("regex", "c++", ["c", "d"], [True, False]),
]
REFUSED = ["(a", "a)", "*a", "a{2", "a{5,2}", "a{500}", r"\bx", "(?=a)", "(?P<x>a)", r"(a)\1", "[b-a]", "[a",
           "x" * 201, " ",
           "((a{90}){90})"]  # fmt: skip


def python_matches(kind: PatternKind, pattern: str, texts: list[str]) -> list[bool] | str:
    try:
        matches = matcher(kind, pattern)
    except PatternRefused as refused:
        return str(refused)
    return [matches(plain(text)) for text in texts]


def test_both_devices_match_patterns_as_listed() -> None:
    asked = [(kind, pattern, texts) for kind, pattern, texts, _ in WORDS]
    (theirs,) = ask_node([("mute_patterns", asked)])
    for (kind, pattern, texts, expected), found in zip(WORDS, theirs, strict=True):
        assert python_matches(kind, pattern, texts) == expected == found, pattern


def test_both_devices_refuse_the_same_patterns_for_the_same_reason() -> None:
    (theirs,) = ask_node([("mute_patterns", [("regex", pattern, []) for pattern in REFUSED])])
    refusals = [python_matches("regex", pattern, []) for pattern in REFUSED]
    assert all(isinstance(each, str) for each in refusals), refusals
    assert refusals == theirs


def test_random_expressions_match_the_same_texts_as_pythons_re() -> None:
    drawn = random.Random(7)
    asked: list[Any] = []
    for _ in range(400):
        pattern = "".join(drawn.choice(PARTS) for _ in range(drawn.randint(1, 6)))
        asked.append(
            ("regex", pattern, ["".join(drawn.choice("abc") for _ in range(drawn.randint(0, 9))) for _ in range(6)])
        )
    (theirs,) = ask_node([("mute_patterns", asked)])
    for (kind, pattern, texts), found in zip(asked, theirs, strict=True):
        expected = [re.search(pattern, text) is not None for text in texts]
        assert python_matches(kind, pattern, texts) == expected == found, (pattern, texts)


def test_expression_that_would_hang_a_backtracking_engine_finishes() -> None:
    text = "a" * 4_000
    assert python_matches("regex", "(a*)*b", [text]) == [False]
    assert ask_node([("mute_patterns", [("regex", "(a*)*b", [text])])]) == [[[False]]]
