"""How forms are parsed: slots, alternatives and what is refused."""

from __future__ import annotations

import pytest

from newsroom.forms import Slot, Wordings, heads_of, parsed


def test_form_is_parsed_into_text_slots_and_alternatives() -> None:
    assert parsed("a {b.c:s} [x|y {z}|]!") == (
        "a ",
        Slot(("b", "c"), "s", ""),
        " ",
        Wordings((("x",), ("y ", Slot(("z",), "", "")), ())),
        "!",
    )


def test_slot_before_a_percent_sign_is_printed_in_digits() -> None:
    assert parsed("{n}% up")[0] == Slot(("n",), "fig", "")


def test_vertical_bar_outside_of_brackets_is_plain_text() -> None:
    assert parsed("one|two") == ("one|two",)


def test_facts_used_by_a_form_are_the_first_names_of_its_slots() -> None:
    assert heads_of(("{a.b} [x|{c:cap}]", "{d}")) == {"a", "c", "d"}


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ("one [two|three", "bracket without end"),
        ("one {two", "slot without end"),
        ("one ] two", "stray ']'"),
        ("one } two", "stray '}'"),
    ],
)
def test_unbalanced_form_is_named_in_the_error(form: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        parsed(form)
