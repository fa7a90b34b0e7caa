"""Decide which members to leave out when members report boxes that they can't open.

A complaint proves nothing: either the accused member sent a bad box, or the complaining member claims this of a good
one. Nobody reveals a key to settle it. But two honest members never conflict, so in every conflict at least one of the
two is malicious. Complaints are counted by network address, since one machine may hold all places of an address.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from backend.federation.secagg.graph import EACH_ITS_OWN, Sources


@dataclass(frozen=True)
class ComplaintVerdict:
    """The result of judging complaints.

    left_out: the sum continues without these members. malicious: the members that are known to be malicious.
    """

    left_out: frozenset[int] = frozenset()
    malicious: frozenset[int] = frozenset()


def judge(complaints: Mapping[int, Collection[int]], limit: int, sources: Sources = EACH_ITS_OWN) -> ComplaintVerdict:
    """Return members to leave out, such that no two of the remaining members conflict.

    Two members conflict if one of them complains about the other. A source whose members conflict with members of more
    than `limit` other sources is named malicious: each of its members with a conflict is left out, and the other side
    stays. The source with the most conflicting sources is named first, and its conflicts then no longer count against
    the others. In each remaining conflict both members are left out, since neither can be believed, unless one of them
    is out already.

    Formal guarantees: if the malicious members come from at most `limit` sources, however they collude, then no source
    without a malicious member is named, since only malicious members conflict with its members; and c malicious members
    cause at most c honest members of other sources to be left out, since each pair that is left out contains a
    malicious member of its own. If more than `limit` sources are named, then malicious members come from more than
    `limit` sources; in that case any member may be left out and nobody is named. An honest member that shares a source
    with a malicious one may be named with it.

    Args:
        complaints: for each member, the members whose boxes it couldn't open. Members that sent no message are not
            a key here and are out of the sum anyway.
        limit: k, at least 1. With k = floor((r - t) / 2) for r members and a threshold of t, c <= k malicious
            members can't bring the number of members below t.
        sources: the network address of each member.
    """
    if limit < 1:
        raise ValueError(f"limit: at least 1, got {limit}")
    pairs = sorted({(min(one, other), max(one, other)) for one, accused in complaints.items() for other in accused})
    by_source = sources.by_source({member for pair in pairs for member in pair})
    source_of = {member: number for number, group in enumerate(by_source) for member in group}
    at_odds: defaultdict[int, set[int]] = defaultdict(set)
    for one, other in ((source_of[one], source_of[other]) for one, other in pairs):
        if one != other:
            at_odds[one].add(other)
            at_odds[other].add(one)
    named: set[int] = set()
    while at_odds and len(at_odds[worst := max(at_odds, key=lambda group: (len(at_odds[group]), -group))]) > limit:
        named.add(worst)
        for other in at_odds.pop(worst):
            at_odds[other].discard(worst)
    malicious = {member for group in named for member in by_source[group]}
    excluded = set(malicious)
    for one, other in pairs:
        # A member that sent no message is out already, so a complaint about it needs nobody else to be left out.
        if not excluded & {one, other} and one in complaints and other in complaints:
            excluded |= {one, other}
    return ComplaintVerdict(frozenset(excluded), frozenset(malicious) if len(named) <= limit else frozenset())
