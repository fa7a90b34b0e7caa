"""A malicious server of a secure sum that gives each device its own account of who takes part and who dropped out.

The devices are the real ones from stage complaints on: `RosterRules` and `SumTransitions` decide what they accept, sign
and reveal. Keys and shares are stand-ins, since the server opens a secret exactly when it has t shares of it, and
a mask exactly when it has the key of one of its two ends.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from backend.federation.secagg.graph import MaskGraph
from device_app.errors import SumAborted
from device_app.privacy.sealed import Charge
from device_app.privacy.secagg.messages import Contribution, HeldShares, RosterRules, SumState, step_of
from device_app.privacy.secagg.transitions import SumTransitions
from protocol.pairing import sign_agreement, sign_alive, sign_keys
from protocol.secagg import (
    Agreements,
    MemberSignature,
    Roster,
    RosterEntry,
    SecaggError,
    Sharers,
    Survivors,
    alive_bits,
    choose_neighbourhood,
    required_threshold,
)
from protocol.shamir import SHARE_BYTES
from tests.doubles.secure_sums import FreeLedger, terms


@dataclass
class Account:
    """What the server claims to one device: U2, and who of it dropped out afterwards."""

    sharers: set[int]
    dropped: set[int] = field(default_factory=set)

    @property
    def survivors(self) -> set[int]:
        return self.sharers - self.dropped


@dataclass
class AttackResult:
    """What the server can open: the members of each unmasked sum, and how many devices stayed."""

    sums: list[frozenset[int]]
    revealed: int

    @property
    def vectors(self) -> int:
        return sum(len(members) == 1 for members in self.sums)

    @property
    def smallest(self) -> int:
        return min(map(len, self.sums), default=0)


class SplitViews:
    """A cohort on a circle drawn by the server, whose colluding members surround member `target`.

    Honest devices have the usual settings, in the named mode. Up to 100 members the graph is complete.
    """

    def __init__(self, members: int, colluding: int, mode: str = "active") -> None:
        chosen = choose_neighbourhood(members)
        graph = "sparse" if chosen else "complete"
        self.terms = terms(members, mode=mode, graph=graph, cohort_minimum=max(10, members // 2))
        self.members = members
        self.degree = chosen.degree if chosen else members - 1
        self.threshold = chosen.threshold if chosen else required_threshold(self.terms, members)
        self.graph = MaskGraph.sparse(range(1, members + 1), self.degree) if chosen else MaskGraph(members, self.degree)
        self.near = {one: frozenset(self.graph.closed(one)) for one in range(1, members + 1)}
        self.target = members // 2
        self.colluding = frozenset(range(self.target + 1, self.target + 1 + colluding))
        self.honest = frozenset(self.near) - self.colluding
        self.rules = RosterRules(self.terms, None, 10)
        self.context = self.terms.digest()
        contribution = Contribution(np.zeros(4, dtype=np.uint32), Charge("none", "attacked"))
        self.device = SumTransitions(self.terms, contribution, FreeLedger(), self.rules, 1)
        self._rosters: dict[int, Roster] = {}
        self.identities = {one: Ed25519PrivateKey.generate() for one in self.near}
        self.entries = {
            one: RosterEntry(
                member=one, keys=sign_keys(self.context, key, secrets.token_bytes(32), secrets.token_bytes(32))
            )
            for one, key in self.identities.items()
        }

    @property
    def spare(self) -> int:
        """The number of members of its roster that a device allows to drop out."""
        return self.degree + 1 - self.rules.least(self.roster(self.target))

    def roster(self, member: int) -> Roster:
        if member not in self._rosters:
            self._rosters[member] = self._new_roster(member)
        return self._rosters[member]

    def _new_roster(self, member: int) -> Roster:
        return Roster(
            round=self.terms.round,
            me=member,
            cohort=self.members,
            threshold=self.threshold,
            members=tuple(self.entries[one] for one in sorted(self.near[member])),
        )

    def honest_account(self) -> dict[int, Account]:
        return {one: Account(set(self.near[one])) for one in self.honest}

    # The server's claims: the attacks.

    def by_halves(self) -> dict[int, Account]:
        """Claim to each device that as many of its neighbours dropped out as it tolerates.

        Each member is then claimed dropped to equally many devices.
        """
        reported = self.honest_account()
        width = self.degree // 2
        offsets = [step for pair in zip(range(1, width + 1), range(-1, -width - 1, -1), strict=True) for step in pair]
        dropped = offsets[:: 2 if 2 * self.spare <= self.degree + 2 else 1][: self.spare]
        for one, account in reported.items():
            account.dropped = {(one + step - 1) % self.members + 1 for step in dropped}
        return reported

    def cut_out(self, cluster: int, *, narrow: bool = True) -> dict[int, Account]:
        """Remove the masks between a cluster of members and all others.

        With `narrow`, the cluster doesn't mask with some of the others. Members with spare drops open the mask keys of
        the rest.
        """
        reported = self.honest_account()
        by_distance = sorted(self.near[self.target] - self.colluding, key=lambda one: abs(one - self.target))
        inside, outside = by_distance[:cluster], by_distance[cluster:]
        helpers: set[int] = set()
        if narrow:
            helpers = set(outside[: self.degree + 1 - self.rules.least_sharers(self.roster(self.target))])
        for one in inside:
            reported[one].sharers -= helpers
        inward = set(inside)
        self._open_keys(
            {other for one in inside for other in reported[one].sharers - self.colluding - inward}, reported
        )
        return reported

    def _open_keys(self, needed: Collection[int], reported: Mapping[int, Account]) -> None:
        """Claim to t holders of each of these members' keys that it dropped out, as far as their spare drops allow.

        Computed as the largest flow from holders, each with its spare drops, to keys.
        """
        keys = sorted(needed)
        holders = sorted({one for key in keys for one in self.near[key] & self.honest})
        place = {one: 1 + at for at, one in enumerate(holders)}
        sink = 1 + len(holders) + len(keys)
        capacity = np.zeros((sink + 1, sink + 1), dtype=np.int32)
        for one in holders:
            capacity[0, place[one]] = max(0, len(reported[one].survivors) - self.threshold)
        for at, key in enumerate(keys, 1 + len(holders)):
            capacity[at, sink] = self.threshold - len(self.near[key] & self.colluding)
            for one in self.near[key] & self.honest - {key}:
                if key in reported[one].sharers:
                    capacity[place[one], at] = 1
        flow = maximum_flow(csr_array(capacity), 0, sink).flow.toarray()
        for one in holders:
            for at, key in enumerate(keys, 1 + len(holders)):
                if flow[place[one], at] > 0:
                    reported[one].dropped.add(key)

    # The devices' behaviour, and what the server gets from it.

    def attack(self, reported: Mapping[int, Account], among: Collection[int] | None = None) -> AttackResult:
        """Run stages masked to unmask. among: only these honest devices are followed further, to save time."""
        masked, waiting = {}, {}
        for one in sorted(self.honest if among is None else self.honest & set(among)):
            state = self._masked(one, reported[one].sharers)
            if state is None:
                continue
            masked[one] = state
            try:
                waiting[one] = self.device.receive_survivors(
                    state, Survivors(members=tuple(sorted(reported[one].survivors)))
                )
            except SumAborted:
                continue
        if self.terms.mode == "active":
            waiting = self._agreed(waiting)
        return self._open(masked, waiting)

    def _masked(self, one: int, sharers: Collection[int]) -> SumState | None:
        roster, share = self.roster(one), bytes(SHARE_BYTES)
        held = tuple(HeldShares(member=each, key_share=share, seed_share=share) for each in sorted(self.near[one]))
        try:
            self.rules.check_sharers(held, roster, Sharers(members=tuple(sorted(sharers))))
        except SecaggError:
            return None
        return SumState(
            terms=self.terms,
            stage="masked",
            identity_secret=self.identities[one].private_bytes_raw(),
            encryption_secret=b"",
            mask_secret=b"",
            roster=roster,
            held=tuple(each for each in held if each.member in sharers),
        )

    def _agreed(self, waiting: Mapping[int, SumState]) -> dict[int, SumState]:
        """Stage agree: each device receives every signature that supports its account, and no other."""
        signed = {}
        for one, state in waiting.items():
            signature = step_of(state).sealed.message.signature  # type: ignore[attr-defined]
            alive = None if self.roster(one).is_whole else alive_bits(state.survivors, self.members)
            signed[one] = MemberSignature(member=one, signature=signature, alive=alive)
        revealing = {}
        for one, state in waiting.items():
            handed = []
            for other in state.survivors:
                if other in self.colluding:
                    handed.append(self._forged(other, state))
                elif other != one and other in signed and self._speaks_for(state, waiting[other], signed[other]):
                    handed.append(signed[other])
            # It checks as many as it needs besides its own, and leaves if there are too few.
            enough = len(handed) >= self.threshold - 1
            try:
                answer = Agreements(signatures=tuple(handed[: self.threshold - 1] if enough else handed[:1]))
                revealing[one] = self.device.receive_agreements(state, answer)
            except SumAborted:
                continue
        return revealing

    def _speaks_for(self, state: SumState, signer: SumState, signed: MemberSignature) -> bool:
        if signed.alive is None:
            return signer.survivors == state.survivors
        assert state.roster is not None
        return signed.lists_as_alive(state.roster.me)

    def _forged(self, member: int, state: SumState) -> MemberSignature:
        """Let a colluding member sign whatever a device should receive."""
        roster = state.roster
        assert roster is not None
        if roster.is_whole:
            signature = sign_agreement(self.context, roster, state.survivors, self.identities[member]).signature
            return MemberSignature(member=member, signature=signature)
        bits = alive_bits([roster.me], self.members)
        signature = sign_alive(self.context, member, bits, self.identities[member]).signature
        return MemberSignature(member=member, signature=signature, alive=bits)

    def _open(self, masked: Mapping[int, SumState], revealing: Mapping[int, SumState]) -> AttackResult:
        seeds = {one: len(self.near[one] & self.colluding) for one in self.near}
        keys = dict(seeds)
        for state in revealing.values():
            assert state.revealed is not None
            for share in state.revealed.seeds:
                seeds[share.member] += 1
            for share in state.revealed.keys:
                keys[share.member] += 1
        known = self.colluding | {one for one, shares in keys.items() if shares >= self.threshold}
        bare = {one for one in masked if seeds[one] >= self.threshold}
        left = {
            one: {each.member for each in masked[one].held if each.member != one and not {one, each.member} & known}
            for one in bare
        }
        return AttackResult(list(_closed_parts(left)), len(revealing))


def _closed_parts(left: Mapping[int, Collection[int]]) -> Iterable[frozenset[int]]:
    """Sets of members whose remaining masks cancel among themselves, as small as possible."""
    seen: set[int] = set()
    for start in left:
        if start in seen:
            continue
        part, queue, closed = set(), [start], True
        while queue:
            one = queue.pop()
            if one in part:
                continue
            part.add(one)
            for other in left[one]:
                if other not in left or one not in left[other]:
                    closed = False
                else:
                    queue.append(other)
        seen |= part
        if closed:
            yield frozenset(part)
