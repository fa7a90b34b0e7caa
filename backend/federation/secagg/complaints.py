"""Who is left out of a secure sum when members complain that they can't open one another's boxes.

A complaint proves nothing: either the one sent a bad box, or the other says so of a good one. Nobody shows a key to
settle it. But two honest members are never at odds, so of any two who are, at least one lies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ComplaintVerdict:
    """Of complaints. left_out: the sum goes on without these; liars: who of them is known to have lied."""

    left_out: frozenset[int] = frozenset()
    liars: frozenset[int] = frozenset()


def judge(complaints: Mapping[int, Collection[int]], limit: int) -> ComplaintVerdict:
    """Leave out a set after which no two members are at odds.

    Who is at odds with more than `limit` others, by complaining of them or by being complained of, is left out alone
    and has lied; whoever is so with the most comes first, and counts no longer against the others. Of the pairs that
    remain both are left out, since neither can be believed; a pair of which one is out already costs nobody more.

    Formal guarantees: if at most `limit` members lie, however they work together, then none who is honest is named a
    liar, since only liars are at odds with it; and c liars have at most c honest members left out, since every pair
    that is left out holds a liar of its own: at most 2c members in all. If more than `limit` are named, more have lied
    than that; then anybody may be left out and nobody is named.

    Args:
        complaints: by member, those whose boxes it couldn't open; members who said nothing at all are no key of it, and
            are out of the sum anyway.
        limit: k, at least 1. With k = floor((r - t) / 2) of r members and a threshold of t, c <= k liars can't bring
            the sum below t.
    """
    if limit < 1:
        raise ValueError(f"limit: at least 1, got {limit}")
    pairs = sorted({(min(one, other), max(one, other)) for one, accused in complaints.items() for other in accused})
    at_odds: defaultdict[int, set[int]] = defaultdict(set)
    for one, other in pairs:
        at_odds[one].add(other)
        at_odds[other].add(one)
    named: set[int] = set()
    while at_odds and len(at_odds[worst := max(at_odds, key=lambda member: (len(at_odds[member]), -member))]) > limit:
        named.add(worst)
        for other in at_odds.pop(worst):
            at_odds[other].discard(worst)
    gone = set(named)
    for one, other in pairs:
        # Who didn't answer is out, so a complaint of it needs no second.
        if not gone & {one, other} and one in complaints and other in complaints:
            gone |= {one, other}
    return ComplaintVerdict(frozenset(gone), frozenset(named) if len(named) <= limit else frozenset())
