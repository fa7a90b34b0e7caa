"""How a device's state in a secure sum goes on with each answer of the server."""

from __future__ import annotations

from secrets import token_bytes
from typing import TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from device_app.errors import SumAborted
from device_app.privacy.secagg.contribution import Contribution, Spender
from device_app.privacy.secagg.messages import Reply
from device_app.privacy.secagg.roster import RosterRules
from device_app.privacy.secagg.state import HeldShares, SumState
from device_app.wire.masks import SEED_BYTES
from device_app.wire.pairing import channel_keys, check_agreement, close_box, open_box, pair_seed, seed_commitment
from device_app.wire.secagg import (
    Agreements,
    Box,
    Complaints,
    RevealedShare,
    RevealedShares,
    Roster,
    RosterEntry,
    SecaggError,
    SharedKeys,
    Sharers,
    Shares,
    SumTerms,
    Survivors,
)
from device_app.wire.shamir import SharingError, split_bytes

R = TypeVar("R", Roster, Shares, Sharers, Survivors, Agreements)


class SumTransitions:
    """Steps from one `SumState` to the next by the server's answers; `take_part` says what they guarantee.

    Each raises SumAborted if the answer is not an honest server's.
    """

    def __init__(
        self, terms: SumTerms, contribution: Contribution, ledger: Spender, rules: RosterRules, threads: int
    ) -> None:
        self.terms, self.contribution, self.ledger = terms, contribution, ledger
        self.rules, self.threads = rules, threads
        self.context = terms.digest()
        self._encryption: X25519PrivateKey | None = None
        self._channels: dict[int, tuple[bytes, bytes]] = {}

    def expect(self, reply: Reply, kind: type[R]) -> R:
        """The reply, if it is of the kind that is due."""
        if not isinstance(reply, kind):
            raise self.abort(f"the server answered {type(reply).__name__} where {kind.__name__} was due")
        return reply

    def abort(self, why: str) -> SumAborted:
        """The error that ends this device's part."""
        return SumAborted(self.terms.round, why)

    def share(self, state: SumState, roster: Roster) -> SumState:
        """Round 1: check the roster, draw b_u, share it and s_u among the members."""
        try:
            self.rules.check(state.keys, roster)
            seed = token_bytes(SEED_BYTES)
            key_shares = split_bytes(state.mask_secret, roster.threshold, roster.numbers)
            seed_shares = split_bytes(seed, roster.threshold, roster.numbers)
            boxes = tuple(
                close_box(
                    self._channel(state, entry, roster.me)[0], roster.me, peer, key_shares[peer], seed_shares[peer]
                )
                for entry in roster.members
                if (peer := entry.member) != roster.me
            )
        except (SecaggError, SharingError) as broken:
            raise self.abort(str(broken)) from broken
        me = roster.me
        return state.model_copy(
            update={
                "stage": "shares",
                "roster": roster,
                "seed": seed,
                "own": HeldShares(member=me, key_share=key_shares[me], seed_share=seed_shares[me]),
                "shared": SharedKeys(seed_commitment=seed_commitment(self.context, me, seed), boxes=boxes),
            }
        )

    def open_boxes(self, state: SumState, shares: Shares) -> SumState:
        """Between rounds 1 and 2, not in the paper: keep the shares, and complain of boxes that don't hold any."""
        roster, own = state.roster, state.own
        assert roster is not None
        assert own is not None
        entries = {entry.member: entry for entry in roster.members}
        held, accused = [own], []
        for box in shares.boxes:
            if box.member == roster.me or box.member not in entries:
                raise self.abort(f"a box from member {box.member}, who is not on the roster")
            try:
                held.append(self._open(state, entries[box.member], box, roster.me))
            except SecaggError:
                accused.append(box.member)
        if len(shares.boxes) + 1 < (least := self.rules.least(roster)):
            raise self.abort(f"{len(shares.boxes) + 1} members shared their keys, at least {least} are needed")
        return state.model_copy(
            update={
                "stage": "complaints",
                "held": tuple(sorted(held, key=lambda one: one.member)),
                "complaints": Complaints(members=tuple(accused)),
            }
        )

    def mask(self, state: SumState, sharers: Sharers) -> tuple[SumState, bytes]:
        """Round 2: pay, add self mask and pair masks; the lower member adds, the higher takes away."""
        roster, seed = state.roster, state.seed
        assert roster is not None
        assert seed is not None
        self.contribution.check(self.terms)
        entries = {entry.member: entry for entry in roster.members}
        try:
            self.rules.check_sharers(state.held, roster, sharers)
            held = tuple(one for one in state.held if one.member in set(sharers.members))
            secret = X25519PrivateKey.from_private_bytes(state.mask_secret)
            pairs = {
                one.member: pair_seed(self.context, secret, entries[one.member].keys.mask_key, (roster.me, one.member))
                for one in held
                if one.member != roster.me
            }
        except SecaggError as broken:
            raise self.abort(str(broken)) from broken
        payload, masked_sha256 = self.contribution.masked(
            self.ledger,
            plus=[seed, *(pair for peer, pair in pairs.items() if peer > roster.me)],
            minus=[pair for peer, pair in pairs.items() if peer < roster.me],
            threads=self.threads,
        )
        after = state.model_copy(
            update={
                "stage": "masked",
                "held": held,
                "masked_sha256": masked_sha256,
            }
        )
        return after, payload

    def hear_survivors(self, state: SumState, survivors: Survivors) -> SumState:
        """Round 3's first half, or round 4 where the server is trusted to follow the protocol."""
        roster = state.roster
        assert roster is not None
        shared = {one.member for one in state.held}
        if unknown := sorted(set(survivors.members) - shared):
            raise self.abort(f"member {unknown[0]} is named a survivor and has not shared its keys")
        if roster.me not in survivors.members:
            raise self.abort("the server says that this device's vector is not in the sum")
        if len(survivors.members) < (least := self.rules.least(roster)):
            raise self.abort(f"{len(survivors.members)} members survived, at least {least} are needed")
        heard = state.model_copy(update={"stage": "agree", "survivors": survivors.members})
        return heard if self.terms.mode == "active" else self._reveal(heard)

    def hear_agreements(self, state: SumState, agreements: Agreements) -> SumState:
        """Round 3's second half: at least t members have signed the survivors that this device was told."""
        roster = state.roster
        assert roster is not None
        entries = {entry.member: entry for entry in roster.members}
        told = roster.digest()
        agreed = {roster.me}
        for one in agreements.signatures:
            if one.member not in state.survivors:
                raise self.abort(f"member {one.member} signed and is no survivor")
            try:
                key = entries[one.member].keys.verify_key
                check_agreement(self.context, told, state.survivors, key, one.signature)
            except SecaggError as broken:
                raise self.abort(f"{broken} (member {one.member})") from broken
            agreed.add(one.member)
        if len(agreed) < roster.threshold:
            raise self.abort(f"{len(agreed)} members agreed on the survivors, the threshold is {roster.threshold}")
        return self._reveal(state)

    def _reveal(self, state: SumState) -> SumState:
        alive = set(state.survivors)
        revealed = RevealedShares(
            seeds=tuple(
                RevealedShare(member=one.member, share=one.seed_share) for one in state.held if one.member in alive
            ),
            keys=tuple(
                RevealedShare(member=one.member, share=one.key_share) for one in state.held if one.member not in alive
            ),
        )
        return state.model_copy(update={"stage": "unmask", "revealed": revealed})

    def _channel(self, state: SumState, entry: RosterEntry, me: int) -> tuple[bytes, bytes]:
        """The keys (of boxes to, of boxes from) another member."""
        if entry.member not in self._channels:
            # Loading a key computes its public half: done once, not for every member.
            secret = self._encryption or X25519PrivateKey.from_private_bytes(state.encryption_secret)
            self._encryption = secret
            up, down = channel_keys(self.context, secret, entry.keys.encryption_key, (me, entry.member))
            self._channels[entry.member] = (up, down) if me < entry.member else (down, up)
        return self._channels[entry.member]

    def _open(self, state: SumState, entry: RosterEntry, box: Box, me: int) -> HeldShares:
        key = self._channel(state, entry, me)[1]
        key_share, seed_share = open_box(key, box.member, me, box.box)
        return HeldShares(member=box.member, key_share=key_share, seed_share=seed_share)
