"""A device's part in a secure sum, without I/O: it yields sealed messages and is sent the server's answers.

keys -> shares -> complaints -> masked -> (agree) -> unmask        Bonawitz et al. 2017, figure 4; ALGORITHMS 3.5
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass, replace
from secrets import token_bytes
from typing import Protocol, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pydantic import BaseModel

from device_app.errors import SumAborted
from device_app.privacy.sealed import JSON, OCTETS, Charge, Sealed, close, digest, json_payload
from device_app.privacy.sum_state import HeldShares, SumState
from device_app.wire.masks import SEED_BYTES, masked_bytes
from device_app.wire.neighbourhood import choose_neighbourhood
from device_app.wire.pairing import (
    channel_keys,
    check_agreement,
    check_distinct,
    check_keys,
    close_box,
    open_box,
    pair_seed,
    seed_commitment,
    sign_agreement,
)
from device_app.wire.ring import RingVector, ring_dtype
from device_app.wire.secagg import (
    Agreement,
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
    required_threshold,
)
from device_app.wire.shamir import SharingError, split_bytes

Reply = Roster | Shares | Sharers | Survivors | Agreements | None
R = TypeVar("R", Roster, Shares, Sharers, Survivors, Agreements)
M = TypeVar("M", bound=BaseModel)


class Spender(Protocol):
    """The ledger, as far as a secure sum needs it."""

    def spend(self, charge: Charge) -> object:
        """Write the charge down, or raise BudgetSpent."""


@dataclass(frozen=True, eq=False)
class Contribution:
    """What a device adds to a sum: its clipped, encoded and perhaps noisy vector, and what the opened sum costs it.

    The charge is that of the opened sum at the smallest number of survivors that the round's terms allow, since the
    device has to pay before it can know how many will survive. paid is called in the transaction that pays.
    """

    vector: RingVector
    charge: Charge
    paid: Callable[[], None] | None = None


@dataclass(frozen=True, eq=False)
class MaskedInput:
    """Ring elements, little-endian, one after the other: uniform noise to whoever lacks the masks."""

    round: str
    payload: bytes


@dataclass(frozen=True, eq=False)
class Step:
    """A message to send. `state` (and for stage masked the payload) must be on the disk before the message leaves."""

    state: SumState
    sealed: Sealed[object]


def take_part(
    state: SumState,
    contribution: Contribution,
    ledger: Spender,
    *,
    payload: bytes | None = None,
    directory: Collection[bytes] | None = None,
    smallest: int = 2,
    threads: int = 1,
) -> Generator[Step, Reply, SumState]:
    """Go through the stages from wherever `state` stands; each answer of the server is sent in, None for the last.

    Args:
        state: from `begin_sum`, or as it was kept when the device was killed.
        contribution: read once, at stage masked; a device that was killed later doesn't need the same one again.
        ledger: charged before the masked vector is sealed.
        payload: the masked vector as it was kept, when `state` stands at stage masked.
        directory: verify keys of all devices that may be members, where there is such a list.
        smallest: the fewest members, this device among them, that its masks may be shared with and its vector be opened
            with; what the reader asks for.
        threads: for making masks; can't change what is sent.

    Raises SumAborted if the server's answers are not those of an honest one, or the masked vector was not kept;
    BudgetSpent.

    Formal guarantees: with an honest-but-curious server and fewer than t colluding members the masked vector, and all
    messages together, tell nothing of this device's vector beyond the sum over the survivors, at least t of them
    (Bonawitz et al. 2017, theorem 6.3, under the usual assumptions on X25519, HKDF, ChaCha20 and the AEAD). In mode
    'active' the same holds for a server that deviates, with fewer than n/3 colluding members (theorem 6.5), provided
    that `directory` says who is a device; without a directory a server can invent members, and signatures only keep
    honest devices to one view: then nothing but this device's own share of noise hides its vector
    (`prices.SumPrices.alone`). In the sparse form as many members hold shares, and as many of them give a secret, as
    `wire.neighbourhood` has it for the cohort that the server names. Of one member, either the share of the seed or
    that of the key is revealed, never both, and once. The sum itself is exact: what it tells is bounded only by noise
    inside it (`discrete_noise`). That this device takes part isn't hidden. A complaint comes before anything is paid or
    masked and names members only: it tells the server which boxes failed, and nothing of a key or a share. Who was
    complained of is in no sum with this device, whatever the server says.
    """
    secure_sum = _Part(state.terms, contribution, ledger, directory, smallest, threads)
    if state.stage == "masked" and (payload is None or digest(payload) != state.masked_sha256):
        raise secure_sum.abort("the masked vector was not kept, and a second one must not be made")
    if state.stage == "keys":
        reply = yield Step(state, _seal(state.keys, state.terms, "Public keys for a secure sum, made for this round."))
        state = secure_sum.share(state, secure_sum.expect(reply, Roster))
    if state.stage == "shares":
        assert state.shared is not None
        words = f"Encrypted shares of this round's keys for {len(state.shared.boxes)} other devices."
        reply = yield Step(state, _seal(state.shared, state.terms, words))
        state = secure_sum.open_boxes(state, secure_sum.expect(reply, Shares))
    if state.stage == "complaints":
        assert state.complaints is not None
        accused = len(state.complaints.members)
        words = f"How many other devices' encrypted shares could not be opened, and whose: {accused or 'none'}."
        reply = yield Step(state, _seal(state.complaints, state.terms, words))
        state, payload = secure_sum.mask(state, secure_sum.expect(reply, Sharers))
    if state.stage == "masked":
        reply = yield Step(state, _seal_masked(state, payload))
        state = secure_sum.hear_survivors(state, secure_sum.expect(reply, Survivors))
    if state.stage == "agree":
        words = "A signature on the list of devices whose vectors arrived."
        reply = yield Step(state, _seal(_agreement(state), state.terms, words))
        state = secure_sum.hear_agreements(state, secure_sum.expect(reply, Agreements))
    assert state.revealed is not None
    words = "Shares of other devices' round keys, which open the sum and no single vector."
    reply = yield Step(state, _seal(state.revealed, state.terms, words))
    if reply is not None:
        raise SumAborted(state.terms.round, "after unmasking there is nothing more to answer")
    return state


class _Part:
    """The transitions between a device's states; the public text is `take_part`."""

    def __init__(
        self,
        terms: SumTerms,
        contribution: Contribution,
        ledger: Spender,
        directory: Collection[bytes] | None,
        smallest: int,
        threads: int,
    ) -> None:
        self.smallest, self.threads = smallest, threads
        self.terms, self.contribution, self.ledger, self.directory = terms, contribution, ledger, directory
        self.context = terms.digest()
        self._encryption: X25519PrivateKey | None = None
        self._channels: dict[int, tuple[bytes, bytes]] = {}

    def expect(self, reply: Reply, kind: type[R]) -> R:
        if not isinstance(reply, kind):
            raise self.abort(f"the server answered {type(reply).__name__} where {kind.__name__} was due")
        return reply

    def abort(self, why: str) -> SumAborted:
        return SumAborted(self.terms.round, why)

    def share(self, state: SumState, roster: Roster) -> SumState:
        """Round 1: check the roster, draw b_u, share it and s_u among the members."""
        try:
            self._check_roster(state, roster)
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
        if len(shares.boxes) + 1 < (least := self._least(roster)):
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
        vector = self.contribution.vector
        if vector.shape != (self.terms.length,) or vector.dtype != ring_dtype(self.terms.bits):
            raise ValueError(
                f"vector: {vector.dtype} {vector.shape}, the terms say {self.terms.length} of {self.terms.bits} bits"
            )
        entries = {entry.member: entry for entry in roster.members}
        try:
            self._check_sharers(state, roster, sharers)
            held = tuple(one for one in state.held if one.member in set(sharers.members))
            secret = X25519PrivateKey.from_private_bytes(state.mask_secret)
            pairs = {
                one.member: pair_seed(self.context, secret, entries[one.member].keys.mask_key, (roster.me, one.member))
                for one in held
                if one.member != roster.me
            }
        except SecaggError as broken:
            raise self.abort(str(broken)) from broken
        payload = masked_bytes(
            vector,
            plus=[seed, *(pair for peer, pair in pairs.items() if peer > roster.me)],
            minus=[pair for peer, pair in pairs.items() if peer < roster.me],
            threads=self.threads,
        )
        masked_sha256 = digest(payload)
        self.ledger.spend(replace(self.contribution.charge, payload_sha256=masked_sha256))
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
        if strangers := sorted(set(survivors.members) - shared):
            raise self.abort(f"member {strangers[0]} is named a survivor and has not shared its keys")
        if roster.me not in survivors.members:
            raise self.abort("the server says that this device's vector is not in the sum")
        if len(survivors.members) < (least := self._least(roster)):
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

    def _check_roster(self, state: SumState, roster: Roster) -> None:
        terms, holders = self.terms, len(roster.members)
        if roster.round != terms.round:
            raise SecaggError(f"the roster is of {roster.round}")
        if not terms.cohort_minimum <= roster.cohort <= terms.cohort:
            raise SecaggError(f"{roster.cohort} members, the terms say {terms.cohort_minimum} to {terms.cohort}")
        due = choose_neighbourhood(roster.cohort) if terms.graph == "sparse" else None
        wanted = roster.cohort if due is None else due.degree + 1
        if holders != wanted:
            raise SecaggError(f"the roster names {holders} members, of a cohort of {roster.cohort} it must be {wanted}")
        if holders < self.smallest:
            raise SecaggError(f"the roster names {holders} members, at least {self.smallest} are asked for")
        least, most = (max(2, required_threshold(terms, holders)), holders) if due is None else (due.threshold,) * 2
        if not least <= roster.threshold <= most:
            raise SecaggError(f"the threshold is {roster.threshold}, this device accepts {least} to {most}")
        check_distinct(tuple(entry.keys for entry in roster.members))
        mine = next(entry.keys for entry in roster.members if entry.member == roster.me)
        if mine != state.keys:
            raise SecaggError("the roster shows other keys for this device than it sent")
        for entry in roster.members:
            if self.directory is not None and entry.keys.verify_key not in self.directory:
                raise SecaggError(f"member {entry.member} is not in the directory")
            if terms.mode == "active":
                check_keys(self.context, entry.keys)

    def _check_sharers(self, state: SumState, roster: Roster, sharers: Sharers) -> None:
        if roster.me not in sharers.members:
            raise SecaggError("the server has left this device out: it has complained of another, or another of it")
        if unknown := sorted(set(sharers.members) - {one.member for one in state.held}):
            raise SecaggError(f"member {unknown[0]} is to be in the sum, and this device holds no share of its keys")
        if len(sharers.members) < (least := self._least(roster)):
            raise SecaggError(f"{len(sharers.members)} members are in the sum, at least {least} are needed")

    def _least(self, roster: Roster) -> int:
        """The fewest members of its roster, itself among them, with whom this device goes on.

        In the sparse form it sees its neighbours only: the whole cohort is the server's to count.
        """
        whole = len(roster.members) == roster.cohort
        return max(roster.threshold, self.smallest, self.terms.cohort_minimum if whole else 0)

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


def _agreement(state: SumState) -> Agreement:
    assert state.roster is not None
    identity = Ed25519PrivateKey.from_private_bytes(state.identity_secret)
    return sign_agreement(state.terms.digest(), state.roster, state.survivors, identity)


def _seal(message: M, terms: SumTerms, words: str) -> Sealed[object]:
    """Seal a message that no click has had a part in: keys, shares and signatures are random."""
    return close(message, json_payload(message), JSON, Charge("none", "secure_sum", subject=terms.round), words)


def _seal_masked(state: SumState, payload: bytes | None) -> Sealed[object]:
    """Seal the masked vector that the state names by its hash, paid for when it was made."""
    assert payload is not None
    assert state.masked_sha256 is not None
    words = f"A vector of {state.terms.length:,} numbers under masks that only the whole group's sum comes out of."
    charge = Charge("none", "secure_sum", payload_sha256=state.masked_sha256, subject=state.terms.round)
    return close(MaskedInput(state.terms.round, payload), payload, OCTETS, charge, words)
