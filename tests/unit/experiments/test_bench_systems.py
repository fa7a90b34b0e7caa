"""What `ownfeed bench systems` counts, and that it leaves out no system that an operator can start."""

from __future__ import annotations

from collections import Counter

from backend.federation.systems import SYSTEMS
from experiments.bench.systems import Ran, by_hand, told_in


def test_every_system_is_played_but_those_that_only_other_rounds_order() -> None:
    ordered = {"news_union", "news_union_noisy", "news_union_as_printed", "release_gate", "basis_vote"}
    assert set(SYSTEMS) - set(by_hand()) == ordered


def test_a_row_says_how_many_were_applied_and_why_the_others_were_not() -> None:
    table = told_in({"good": Ran([2.0, 4.0, 3.0]), "poor": Ran([1.0] * 8, Counter({"poor: too few": 2}))})
    assert table.rows == [
        ("good", "3 of 3", 3.0, "yes", "-"),
        ("poor", "8 of 10", 1.0, "no", "2 times: poor: too few"),
    ]
