"""Merges one ranked list per interest channel into one list of candidates (Uni-FedRec, "News Recall").

Also ensures a share of fresh articles.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence


def largest_remainder(counts: Sequence[int], total: int) -> list[int]:
    """Divide `total` places in proportion to `counts`, in integers that add up to `total`.

    Every channel gets the integer part of its share; the remaining places go to the largest remainders, ties to the
    lower channel. Integer arithmetic throughout: 29 of 100 clicks get 29 of 100 places, never 28.

    Raises ValueError if a count is negative or all are zero.
    """
    if any(count < 0 for count in counts) or not (sum_of_counts := sum(counts)):
        raise ValueError("counts must be 0 or more, with at least one above 0")
    if total < 0:
        raise ValueError("total must be 0 or more")
    shares = [count * total // sum_of_counts for count in counts]
    remainders = [count * total % sum_of_counts for count in counts]
    by_remainder = sorted(range(len(counts)), key=lambda channel: (-remainders[channel], channel))
    for channel in by_remainder[: total - sum(shares)]:
        shares[channel] += 1
    return shares


def merge(lists: Sequence[Sequence[int]], counts: Sequence[int], limit: int) -> list[int]:
    """The recommended merge: at most `limit` rows without repeats, in the order they were taken.

    lists: per channel the rows found, best first, without repeats within a list; counts: clicks per channel. Channels
    are visited by descending count, then index. Each takes its quota of its best rows that are not taken yet; then the
    channels take one row each in the same order, repeatedly, until `limit` is reached or the lists end.

    The result has min(limit, |union of the lists|) rows; a single channel gives the head of its own list.
    """
    quotas = largest_remainder(counts, limit)
    order = sorted(range(len(lists)), key=lambda channel: (-counts[channel], channel))
    taken: dict[int, None] = {}
    rests = {channel: iter(lists[channel]) for channel in order}
    for channel in order:
        wanted = len(taken) + quotas[channel]
        if len(taken) >= wanted:
            continue
        for row in rests[channel]:
            taken[row] = None  # a row taken before keeps its place and adds nothing
            if len(taken) >= wanted:
                break
    while len(taken) < limit and rests:
        for channel in order:
            if channel not in rests:
                continue
            before = len(taken)
            for row in rests[channel]:
                taken[row] = None
                if len(taken) > before:
                    break
            else:
                del rests[channel]
            if len(taken) >= limit:
                break
    return list(taken)


def reference_merge(lists: Sequence[Sequence[int]], counts: Sequence[int], limit: int) -> list[int]:
    """The merge of the paper's published code (taoqi98/UniFedRec), in the order in which it takes rows.

    Each channel takes the first max(int(R q_c) - 1, 1) rows of its own list, where q_c is its share of the clicks;
    missing rows then come from the largest channel's list, from position int(R q_c) on. Two of its defects are
    reproduced: the largest channel's row at position int(R q_c) - 1 is never considered, and int() on a float can lose
    a place (int(100 * 0.29) is 28). Channels with tiny shares can add up to more than `limit` rows; the list is then
    cut off.

    Raises ValueError like `largest_remainder`.
    """
    if any(count < 0 for count in counts) or not (sum_of_counts := sum(counts)):
        raise ValueError("counts must be 0 or more, with at least one above 0")
    quotas = [count / sum_of_counts for count in counts]
    taken: dict[int, None] = {}
    for rows, quota in zip(lists, quotas, strict=True):
        taken.update(dict.fromkeys(rows[: max(int(limit * quota) - 1, 1)]))
    main = max(range(len(quotas)), key=lambda channel: quotas[channel])
    for row in lists[main][int(limit * quotas[main]) :]:
        if len(taken) >= limit:
            break
        taken[row] = None
    return list(taken)[:limit]


Merge = Callable[[Sequence[Sequence[int]], Sequence[int], int], list[int]]
MERGES: Mapping[str, Merge] = {"in_turns": merge, "reference": reference_merge}
"""Merges by their name in the setting `recall_merge`."""

FRESH_HOURS = 6.0
FRESH_SHARE = 0.1
"""Share of a list's places for fresh articles, whose order is still the reader's own."""


def with_fresh(rows: Sequence[int], fresh: frozenset[int], fresh_best_first: Iterable[int]) -> list[int]:
    """`rows` with at least FRESH_SHARE of fresh articles, if there are enough.

    Its length and its head stay.

    Missing ones are taken from `fresh_best_first` and put at the end, in place of the last articles that aren't fresh.
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
