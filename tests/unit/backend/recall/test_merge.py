"""The merge against examples by hand, its invariants, and a slow restatement as the oracle."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.recall.merge import MERGES, largest_remainder, merge, reference_merge

A = list(range(10, 22))
B = [12, *range(30, 42)]
C = [30, *range(40, 52)]

rankings = st.integers(1, 5).flatmap(
    lambda channels: st.tuples(
        st.lists(st.lists(st.integers(0, 40), unique=True, max_size=30), min_size=channels, max_size=channels),
        st.lists(st.integers(1, 50), min_size=channels, max_size=channels),
        st.integers(1, 60),
    )
)


def slow_merge(lists: Sequence[Sequence[int]], counts: Sequence[int], limit: int) -> list[int]:
    """Merge with lists and rescans instead of iterators."""
    quotas = largest_remainder(counts, limit)
    order = sorted(range(len(lists)), key=lambda channel: (-counts[channel], channel))
    taken: list[int] = []
    for channel in order:
        taken += [row for row in lists[channel] if row not in taken][: quotas[channel]]
    while len(taken) < limit:
        before = len(taken)
        for channel in order:
            fresh = [row for row in lists[channel] if row not in taken]
            if fresh and len(taken) < limit:
                taken.append(fresh[0])
        if len(taken) == before:
            break
    return taken


def test_recommended_merge_gives_the_golden_list_of_section_2_4() -> None:
    assert merge([A, B, C], [5, 3, 2], 10) == [10, 11, 12, 13, 14, 30, 31, 32, 40, 41]


def test_reference_merge_gives_the_golden_list_of_section_2_4_which_lacks_14() -> None:
    assert reference_merge([A, B, C], [5, 3, 2], 10) == [10, 11, 12, 13, 30, 15, 16, 17, 18, 19]


def test_reference_merge_keeps_the_float_defect_of_the_published_code() -> None:
    lists = [list(range(100)), list(range(200, 300))]
    merged = reference_merge(lists, [71, 29], 100)
    assert 228 - 1 not in merged  # int(100 * 0.29) is 28, minus 1 taken
    assert len([row for row in merged if row >= 200]) == 27


@given(rankings)
def test_reference_merge_has_no_repeats_within_its_limit(
    case: tuple[list[list[int]], list[int], int],
) -> None:
    lists, counts, limit = case
    merged = reference_merge(lists, counts, limit)
    assert len(merged) == len(set(merged)) <= limit
    assert set(merged) <= {row for ranking in lists for row in ranking}


@pytest.mark.parametrize("name", sorted(MERGES))
@pytest.mark.parametrize("counts", [[0, 0], [3, -1]])
def test_merges_refuse_zero_or_negative_counts(name: str, counts: list[int]) -> None:
    with pytest.raises(ValueError, match="counts must be 0 or more"):
        MERGES[name]([A, B], counts, 10)


@pytest.mark.parametrize(
    ("counts", "total", "shares"),
    [([1, 1, 1], 10, [4, 3, 3]), ([7, 3, 2], 10, [6, 2, 2]), ([1] * 50, 100, [2] * 50), ([29, 71], 100, [29, 71])],
)
def test_largest_remainder_matches_the_goldens_of_section_2_4(counts: list[int], total: int, shares: list[int]) -> None:
    assert largest_remainder(counts, total) == shares


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any), st.integers(0, 1_000))
def test_largest_remainder_sums_up_and_is_within_one_of_the_share(counts: list[int], total: int) -> None:
    shares = largest_remainder(counts, total)
    assert sum(shares) == total
    assert all(abs(share - count * total / sum(counts)) < 1 for share, count in zip(shares, counts, strict=True))


@pytest.mark.parametrize("counts", [[0, 0], [3, -1], []])
def test_largest_remainder_refuses_zero_or_negative_counts(counts: list[int]) -> None:
    with pytest.raises(ValueError, match="counts must be 0 or more"):
        largest_remainder(counts, 10)


@given(rankings)
def test_merge_equals_the_slow_reference(case: tuple[list[list[int]], list[int], int]) -> None:
    assert merge(*case) == slow_merge(*case)


@given(rankings)
def test_merge_has_no_repeats_and_is_as_long_as_its_lists_allow(case: tuple[list[list[int]], list[int], int]) -> None:
    lists, counts, limit = case
    merged = merge(lists, counts, limit)
    union = {row for ranking in lists for row in ranking}
    assert len(merged) == len(set(merged)) == min(limit, len(union))
    assert set(merged) <= union


@given(st.lists(st.integers(0, 500), unique=True, max_size=100), st.integers(1, 50), st.integers(1, 120))
def test_merge_of_a_single_channel_gives_the_start_of_its_list(ranking: list[int], count: int, limit: int) -> None:
    assert merge([ranking], [count], limit) == ranking[:limit]


def test_merge_of_five_lists_of_400_takes_under_half_a_millisecond() -> None:
    draw = np.random.default_rng(0)
    lists = [draw.permutation(1_500)[:400].tolist() for _ in range(5)]
    times_ms = []
    for _ in range(30):
        started = time.perf_counter()
        merge(lists, [20, 10, 8, 7, 5], 400)
        times_ms.append((time.perf_counter() - started) * 1_000)
    assert min(times_ms) < 0.5
