"""Who is left out of a secure sum when members complain that they can't open one another's boxes.

A complaint proves nothing: either the one sent a bad box, or the other says so of a good one. Nobody shows a key to
settle it. But two honest members are never at odds, so of any two who are, at least one lies. Members from one network
address have one voice, since one machine may hold all of their places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from backend.federation.secagg.sources import EACH_ITS_OWN, Sources


@dataclass(frozen=True)
class ComplaintVerdict:
    """Of complaints. left_out: the sum goes on without these; liars: who of them is known to have lied."""

    left_out: frozenset[int] = frozenset()
    liars: frozenset[int] = frozenset()


def judge(complaints: Mapping[int, Collection[int]], limit: int, sources: Sources = EACH_ITS_OWN) -> ComplaintVerdict:
    """Leave out a set after which no two members are at odds.

    A source whose members are at odds with those of more than `limit` other sources, by complaining of them or by being
    complained of, is named: whoever of it is at odds with anybody is left out alone and has lied. The source that is so
    with the most comes first, and counts no longer against the others. Of the pairs that remain both are left out,
    since neither can be believed; a pair of which one is out already costs nobody more.

    Formal guarantees: if the liars come from at most `limit` sources, however they work together, then no source
    without a liar is named, since only liars are at odds with its members; and c liars have at most c honest members of
    other sources left out, since every pair that is left out holds a liar of its own. If more than `limit` sources are
    named, liars are of more than that; then anybody may be left out and nobody is named. Who shares a liar's source may
    be taken for it.

    Args:
        complaints: by member, those whose boxes it couldn't open; members who said nothing at all are no key of it, and
            are out of the sum anyway.
        limit: k, at least 1. With k = floor((r - t) / 2) of r members and a threshold of t, c <= k liars can't bring
            the sum below t.
        sources: whose places one machine may hold.
    """
    if limit < 1:
        raise ValueError(f"limit: at least 1, got {limit}")
    pairs = sorted({(min(one, other), max(one, other)) for one, accused in complaints.items() for other in accused})
    crowds = sources.crowds({member for pair in pairs for member in pair})
    crowd_of = {member: number for number, crowd in enumerate(crowds) for member in crowd}
    at_odds: defaultdict[int, set[int]] = defaultdict(set)
    for one, other in ((crowd_of[one], crowd_of[other]) for one, other in pairs):
        if one != other:
            at_odds[one].add(other)
            at_odds[other].add(one)
    named: set[int] = set()
    while at_odds and len(at_odds[worst := max(at_odds, key=lambda crowd: (len(at_odds[crowd]), -crowd))]) > limit:
        named.add(worst)
        for other in at_odds.pop(worst):
            at_odds[other].discard(worst)
    liars = {member for crowd in named for member in crowds[crowd]}
    gone = set(liars)
    for one, other in pairs:
        # Who didn't answer is out, so a complaint of it needs no second.
        if not gone & {one, other} and one in complaints and other in complaints:
            gone |= {one, other}
    return ComplaintVerdict(frozenset(gone), frozenset(liars) if len(named) <= limit else frozenset())
