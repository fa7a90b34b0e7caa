"""A device's part in a secure sum.

Each of the server's answers changes its state, which determines the next message.
"""

from collections.abc import Collection
from secrets import token_bytes
from typing import TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from device_app.errors import SumAborted
from device_app.privacy.secagg.messages import (
    ChargingLedger,
    Contribution,
    HeldShares,
    Reply,
    RosterRules,
    Step,
    SumState,
    step_of,
)
from protocol.pairing import (
    channel_keys,
    check_agreement,
    check_alive,
    close_box,
    open_box,
    pair_seed,
    seed_commitment,
)
from protocol.ring import SEED_BYTES
from protocol.secagg import (
    Agreements,
    Box,
    Complaints,
    MemberSignature,
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
from protocol.shamir import SharingError, split_bytes

R = TypeVar("R", Roster, Shares, Sharers, Survivors, Agreements)


class SumTransitions:
    """Steps from one `SumState` to the next, one for each answer of the server.

    `SumParticipant` states the guarantees. Each raises SumAborted if the answer is not an honest server's.
    """

    def __init__(
        self, terms: SumTerms, contribution: Contribution, ledger: ChargingLedger, rules: RosterRules, threads: int
    ) -> None:
        self.terms, self.contribution, self.ledger = terms, contribution, ledger
        self.rules, self.threads = rules, threads
        self.context = terms.digest()
        self._encryption: X25519PrivateKey | None = None
        self._channels: dict[int, tuple[bytes, bytes]] = {}

    def expect(self, reply: Reply, kind: type[R]) -> R:
        """Return the reply if it is of the expected kind, and abort otherwise."""
        if not isinstance(reply, kind):
            raise self.abort(f"the server answered {type(reply).__name__} where {kind.__name__} was due")
        return reply

    def abort(self, why: str) -> SumAborted:
        """Return the error that ends this device's part."""
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
        """Store the valid shares, and complain about boxes that contain none.

        This step is between rounds 1 and 2 and is not in the paper.
        """
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
        """Round 2: pay, add the self mask and pair masks.

        The lower member adds a pair's mask, the higher subtracts it.
        """
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

    def receive_survivors(self, state: SumState, survivors: Survivors) -> SumState:
        """Round 3's first half; round 4 if the server is trusted to follow the protocol."""
        roster = state.roster
        assert roster is not None
        shared = {one.member for one in state.held}
        if unknown := sorted(set(survivors.members) - shared):
            raise self.abort(f"member {unknown[0]} is listed as a survivor but has not shared its keys")
        if roster.me not in survivors.members:
            raise self.abort("the server says that this device's vector is not in the sum")
        if len(survivors.members) < (least := self.rules.least(roster)):
            raise self.abort(f"{len(survivors.members)} members survived, at least {least} are needed")
        agreeing = state.model_copy(update={"stage": "agree", "survivors": survivors.members})
        return agreeing if self.terms.mode == "active" else self._reveal(agreeing)

    def receive_agreements(self, state: SumState, agreements: Agreements) -> SumState:
        """Check that at least t members have signed the survivors that this device was sent.

        This is the second half of round 3. In the sparse form they have signed that this device is one of the
        survivors.
        """
        roster = state.roster
        assert roster is not None
        check = self._check_survivors if roster.is_whole else self._check_alive
        entries = {entry.member: entry for entry in roster.members}
        agreed = {roster.me}
        for one in agreements.signatures:
            if one.member not in state.survivors:
                raise self.abort(f"member {one.member} signed but is not a survivor")
            try:
                check(state, roster, one, entries[one.member].keys.verify_key)
            except SecaggError as broken:
                raise self.abort(f"{broken} (member {one.member})") from broken
            agreed.add(one.member)
        if len(agreed) < roster.threshold:
            raise self.abort(f"{len(agreed)} members agreed on the survivors, the threshold is {roster.threshold}")
        return self._reveal(state)

    def _check_survivors(self, state: SumState, roster: Roster, one: MemberSignature, verify_key: bytes) -> None:
        check_agreement(self.context, roster.digest(), state.survivors, verify_key, one.signature)

    def _check_alive(self, state: SumState, roster: Roster, one: MemberSignature, verify_key: bytes) -> None:
        if not one.lists_as_alive(roster.me):
            raise SecaggError("a member's list of survivors leaves this device out")
        check_alive(self.context, one.member, one.alive or b"", verify_key, one.signature)

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
        """Return the keys of the boxes to another member and of those from it."""
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


class SumParticipant:
    """A device's part in a secure sum, without I/O.

    It accepts the server's answers and returns sealed messages.

        keys -> shares -> complaints -> masked -> (agree) -> unmask        Bonawitz et al. 2017, figure 4

    It continues from the stage of `state`.

    Args:
        state: from `begin_sum`, or as stored before a restart.
        contribution: read once, in the `masked` stage; after a later restart the same one isn't needed again.
        ledger: charged before the masked vector is sealed.
        payload: the stored masked vector, if `state` is in the `masked` stage.
        directory: verify keys of all devices that may be members, where there is such a list.
        smallest: the fewest members, including this device, with whom its masks may be shared and its vector opened; a
        setting of the reader.
        threads: number for making masks; can't change what is sent.

    Raises SumAborted if the server's answers are not those of an honest one, or the masked vector was not stored;
    BudgetSpent.

    Formal guarantees: with an honest-but-curious server and fewer than t colluding members the masked vector, and all
    messages together, reveal nothing of this device's vector beyond the sum over the survivors, at least t of them
    (Bonawitz et al. 2017, theorem 6.3, under the usual assumptions on X25519, HKDF, ChaCha20 and the AEAD). In mode
    'active' the same holds for a server that deviates, with c < n/3 colluding members (theorem 6.5): the colluding
    members count among the t, so that t - c members of the sum, more than a third of the roster, are honest. It holds
    provided that `directory` says who is a device; without a directory a server can invent members, and signatures only
    ensure that honest devices have the same view: then nothing but this device's own share of noise hides its vector
    (`cost_of_sums.SumPrices.alone`). In the sparse form the number of holders and the threshold are those of
    `protocol.secagg` for the cohort that the server names; in mode 'active', with at most its c colluding members
    around any one device, no sum of fewer than `COMPANY` honest devices can be opened, whatever the server claims about
    who shared keys or dropped out (docs/decisions/004). For each member, either the share of the seed or that of the
    key is revealed, never both, and only once. The sum itself is exact: what it reveals is bounded only by noise inside
    it (`noise_share`). It is not hidden that this device takes part. A complaint is sent before anything is paid or
    masked, and names members only: it reveals to the server which boxes failed, but nothing about a key or a share. A
    member that this device complained about is in no sum with it, whatever the server claims.
    """

    def __init__(
        self,
        state: SumState,
        contribution: Contribution,
        ledger: ChargingLedger,
        *,
        payload: bytes | None = None,
        directory: Collection[bytes] | None = None,
        smallest: int = 2,
        threads: int = 1,
    ) -> None:
        self._state, self._payload = state, payload
        rules = RosterRules(state.terms, directory, smallest)
        self._transitions = SumTransitions(state.terms, contribution, ledger, rules, threads)

    def step(self) -> Step:
        """Return the message of the current stage.

        Raises SumAborted if the masked vector was not kept.
        """
        return step_of(self._state, self._payload)

    def receive(self, reply: Reply) -> Step:
        """Process the server's answer to the current message, and return the next message.

        Raises SumAborted if the answer is not an honest server's, and BudgetSpent.
        """
        state, sum_ = self._state, self._transitions
        match state.stage:
            case "keys":
                self._state = sum_.share(state, sum_.expect(reply, Roster))
            case "shares":
                self._state = sum_.open_boxes(state, sum_.expect(reply, Shares))
            case "complaints":
                self._state, self._payload = sum_.mask(state, sum_.expect(reply, Sharers))
            case "masked":
                self._state = sum_.receive_survivors(state, sum_.expect(reply, Survivors))
            case "agree":
                self._state = sum_.receive_agreements(state, sum_.expect(reply, Agreements))
            case "unmask":
                raise sum_.abort("no message is expected after unmasking")
        return self.step()
