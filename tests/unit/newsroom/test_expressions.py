"""The language of data files: what it computes, in which order it draws, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from newsroom.expressions import Expression, ExpressionError


class NamedPerson:
    name = "Ada"
    _secret = "hidden"


VERBS = {"draw": lambda scene, *values: scene.append(values) or values[0], "twice": lambda _, text: text * 2}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 2 * 3 - 8 // 3 + 7 % 4", 8),
        ("-2 if 1 > 2 else 'no'", "no"),
        ("3 <= 4 < 5 and not 4 in (1, 2)", True),
        ("None or 'second'", "second"),
        ("(1, 2, 3, 4)[1:3]", (2, 3)),
        ("{'a': 1}['a']", 1),
        ("f'{ada.name} of {12_000:,}'", "Ada of 12,000"),
        ("twice(ada.name)", "AdaAda"),
        ("draw(*(5, 6))", 5),
    ],
)
def test_expression_is_evaluated_to_its_value(source: str, value: object) -> None:
    assert Expression(source, VERBS).evaluated({"ada": NamedPerson()}, []) == value


def test_calls_are_evaluated_left_to_right_and_only_in_the_chosen_branch() -> None:
    drawn: list[Any] = []
    Expression("draw(1) + (draw(2) if draw(0) else draw(3))", VERBS).evaluated({}, drawn)
    assert drawn == [(1,), (0,), (3,)]


@pytest.mark.parametrize(
    "source",
    [
        "open('/etc/passwd')",
        "ada.name.upper()",
        "ada._secret",
        "ada.__class__",
        "lambda: 1",
        "[one for one in ada]",
        "(one := 1)",
        "x; y",
        "import os",
        "__import__('os')",
        "",
    ],
)
def test_expression_outside_the_language_is_refused_before_running(source: str) -> None:
    with pytest.raises(ExpressionError):
        Expression(source, VERBS)
