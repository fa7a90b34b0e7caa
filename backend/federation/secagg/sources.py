"""Where the members of a secure sum come from: members of one network address may all be one machine's.

A round gives one address a few places (`places_per_address`), so who is believed is counted in addresses, not in
members: else one machine's three would outvote the honest in a small sum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from backend.federation.secagg.decoding import tolerated


@dataclass(frozen=True)
class Sources:
    """Where members come from, by member; one that isn't in it is a source of its own."""

    known: Mapping[int, Hashable] = field(default_factory=dict)

    def of(self, members: Collection[int]) -> frozenset[Hashable]:
        """The different sources of these members."""
        return frozenset(self.known.get(member, member) for member in members)

    def crowds(self, members: Collection[int]) -> list[frozenset[int]]:
        """These members by source, the largest crowd first, of equals the one with the lowest member."""
        found: defaultdict[Hashable, set[int]] = defaultdict(set)
        for member in members:
            found[self.known.get(member, member)].add(member)
        return sorted(map(frozenset, found.values()), key=lambda crowd: (-len(crowd), min(crowd)))

    def within(self, members: Collection[int], limit: int) -> int:
        """The most sources of which any so many together have at most `limit` of these members."""
        held = accumulate(len(crowd) for crowd in self.crowds(members))
        return sum(many <= limit for many in held)

    def lying_at_most(self, holders: Collection[int], threshold: int) -> int:
        """Of how many sources all holders of a secret may answer with false shares, and it is found all the same.

        Those that together hold no more shares than decoding corrects; and one of any size, if `threshold` shares are
        left without it, since a secret is also tried without each. Holders as `secagg.unmask` has them: at least one
        false share is corrected.

        Formal guarantees: while no more sources than this lie, a secret that isn't found was shared falsely by its
        owner.
        """
        corrected = self.within(holders, tolerated(len(holders), threshold))
        left = len(holders) - max(map(len, self.crowds(holders)), default=0)
        return max(corrected, int(left >= threshold))


EACH_ITS_OWN = Sources()
