"""Cached columns of cards. Oracle: the columns that candidates make of their own cards."""

from __future__ import annotations

import numpy as np
import pytest

from device_app.feed import candidates as module
from device_app.feed.candidates import Candidates, CardColumns, Columns, together
from tests.doubles.news import card


def candidates(*numbers: int) -> Candidates:
    cards = tuple(CARDS[number] for number in numbers)
    return Candidates(cards, np.ones((len(cards), 4), dtype=np.float32), "e1")


CARDS = [card(f"n{number:02}", topic=f"topic {number % 7}", weight=number / 40) for number in range(40)]


def check(columns: CardColumns, *numbers: int) -> None:
    filled, plain = columns.of(candidates(*numbers).cards), Columns.of(candidates(*numbers).cards)
    for name in Columns.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(filled, name), getattr(plain, name))
        assert getattr(filled, name).dtype == getattr(plain, name).dtype


def test_columns_match_the_cards_whether_cached_or_new() -> None:
    columns = CardColumns()
    check(columns, *range(10))
    check(columns, 9, 3, 0)
    check(columns, 3, 25, 1, 30)
    check(columns)
    columns.forget()
    check(columns, 30, 2)


def test_card_cache_is_emptied_beyond_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CARDS_KEPT", 12)
    columns = CardColumns()
    check(columns, *range(10))
    check(columns, *range(5, 16))
    check(columns, 0, 20, 15)


def test_edited_copy_of_a_card_is_cached_separately() -> None:
    columns = CardColumns()
    check(columns, 1, 2)
    renamed = columns.of((CARDS[1].model_copy(update={"topic": "else"}),))
    assert renamed.topics.tolist() == [hash("else")]
    check(columns, 1, 2)


def test_candidates_reuse_cached_columns_for_a_subset_of_rows() -> None:
    plain = candidates(4, 5, 6)
    known = Columns.of(plain.cards)
    given = Candidates(plain.cards, plain.vectors, "e1", known)
    assert given.topics is known.topics
    some = given.only(np.array([True, False, True]))
    assert some.ids.tolist() == known.ids[[0, 2]].tolist()
    both = together(some, candidates(4, 9))
    assert both.ids.tolist() == candidates(4, 6, 9).ids.tolist()
