"""Columns kept from one answer to the next. Oracle: the columns that candidates make of their own cards."""

from __future__ import annotations

import numpy as np
import pytest

from device_app.feed import columns as module
from device_app.feed.candidates import COLUMNS, Candidates
from device_app.feed.columns import CardColumns
from tests.doubles.news import card


def candidates(*numbers: int) -> Candidates:
    cards = tuple(CARDS[number] for number in numbers)
    return Candidates(cards, np.ones((len(cards), 4), dtype=np.float32), "e1")


CARDS = [card(f"n{number:02}", topic=f"topic {number % 7}", weight=number / 40) for number in range(40)]


def check(columns: CardColumns, *numbers: int) -> None:
    filled, plain = candidates(*numbers), candidates(*numbers)
    columns.fill(filled)
    for name in COLUMNS:
        assert name in filled.__dict__ or not numbers
        np.testing.assert_array_equal(getattr(filled, name), getattr(plain, name))
        assert getattr(filled, name).dtype == getattr(plain, name).dtype


def test_columns_are_those_of_the_cards_whether_known_new_or_mixed() -> None:
    columns = CardColumns()
    check(columns, *range(10))
    check(columns, 9, 3, 0)
    check(columns, 3, 25, 1, 30)
    check(columns)
    columns.forget()
    check(columns, 30, 2)


def test_beyond_the_limit_it_starts_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CARDS_KEPT", 12)
    columns = CardColumns()
    check(columns, *range(10))
    check(columns, *range(5, 16))
    check(columns, 0, 20, 15)


def test_an_equal_card_of_another_identity_is_a_card_of_its_own() -> None:
    columns = CardColumns()
    check(columns, 1, 2)
    renamed = candidates(1)
    renamed = Candidates((CARDS[1].model_copy(update={"topic": "else"}),), renamed.vectors, "e1")
    columns.fill(renamed)
    assert renamed.topics.tolist() == [hash("else")]
