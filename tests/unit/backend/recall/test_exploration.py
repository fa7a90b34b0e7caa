"""Places for fresh articles: as many as promised, at the end, and none of the best lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backend.recall.merge import FRESH_SHARE, with_fresh

LISTS = st.permutations(range(120)).flatmap(
    lambda order: st.tuples(st.just(order), st.integers(1, 100), st.sets(st.sampled_from(range(120))))
)


@given(LISTS)
def test_list_has_its_share_of_fresh_articles_if_available(case: tuple[list[int], int, set[int]]) -> None:
    order, limit, fresh = case
    rows = order[:limit]
    found = with_fresh(rows, frozenset(fresh), [row for row in order if row in fresh])
    assert len(found) == len(set(found)) == limit
    wanted = int(FRESH_SHARE * limit)
    assert len(fresh & set(found)) >= min(wanted, len(fresh))
    head = limit - wanted
    assert found[:head] == rows[:head] or len(fresh & set(rows)) < wanted
    lost = set(rows) - set(found)
    assert not lost & fresh
    assert len(lost) <= wanted


def test_list_with_enough_fresh_articles_stays_unchanged() -> None:
    rows = list(range(20))
    assert with_fresh(rows, frozenset({4, 9}), [4, 9, 30]) == rows


def test_missing_fresh_articles_replace_the_last_older_ones() -> None:
    rows = list(range(30))
    assert with_fresh(rows, frozenset({29, 40, 41, 42}), [29, 41, 40, 42]) == [*range(27), 29, 41, 40]
