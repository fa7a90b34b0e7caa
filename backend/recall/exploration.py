"""Places in every list for news too fresh to be popular, so that they can ever become so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

FRESH_HOURS = 6.0
FRESH_SHARE = 0.1
"""Of a list's places; the order among fresh news is still the reader's own."""


def with_fresh(rows: Sequence[int], fresh: frozenset[int], fresh_best_first: Iterable[int]) -> list[int]:
    """`rows` with at least FRESH_SHARE of fresh news, as far as there are so many; its length and its head stay.

    What is missing is taken from `fresh_best_first` and put at the end, in place of the last news that aren't fresh.
    """
    missing = int(FRESH_SHARE * len(rows)) - sum(row in fresh for row in rows)
    if missing <= 0:
        return list(rows)
    listed = set(rows)
    added = [row for row in fresh_best_first if row not in listed][:missing]
    kept: list[int] = []
    to_drop = len(added)
    for row in reversed(rows):
        if to_drop and row not in fresh:
            to_drop -= 1
        else:
            kept.append(row)
    return kept[::-1] + added
