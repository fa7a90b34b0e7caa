"""Terms of a secure sum. Oracle: the specification's thresholds, and brute force."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.secagg import (
    SumTerms,
    required_threshold,
)
from tests.doubles.secure_sums import (
    terms,
)


@pytest.mark.parametrize(
    ("mode", "graph", "holders", "least"),
    [
        ("active", "complete", 50, 34),
        ("semi_honest", "complete", 50, 26),
        ("active", "complete", 4, 3),
        ("semi_honest", "complete", 5, 3),
    ],
)
def test_minimum_threshold_follows_the_specification(mode: str, graph: str, holders: int, least: int) -> None:
    assert required_threshold(terms(101, mode=mode, graph=graph), holders) == least


def test_active_threshold_prevents_revealing_both_secrets() -> None:
    for holders in range(2, 200):
        colluding = (holders - 1) // 3
        assert 2 * required_threshold(terms(200, mode="active"), holders) > holders + colluding


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cohort_minimum": 9}, "cohort_minimum"),
        ({"cohort_minimum": 1}, "cohort_minimum"),
        ({"fraction_bits": 30}, "overflow: n X 2"),
        ({"bound": 2.0**31}, "overflow"),
        ({"headroom": 2.0**31}, "headroom"),
    ],
)
def test_impossible_terms_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        terms(8, **change)


def test_terms_digest_covers_every_field() -> None:
    one = terms(8)
    others = (terms(8, round="round-2"), terms(9), terms(8, length=5), terms(8, bound=999.0), terms(8, mode="active"))
    assert len({each.digest() for each in (one, *others)}) == 6
    assert SumTerms.model_validate_json(one.model_dump_json()).digest() == one.digest()
