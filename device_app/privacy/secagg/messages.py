"""The messages of a device in a secure sum, and the vector it contributes with its charge.

The charge is paid before the vector is masked. Messages are sealed one by one, each for one stage.

The members that the server names are checked: their number, identities and keys. The device's state in the sum is
stored, so that after a crash at any point no message is lost or sent in two versions.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pydantic import BaseModel, Field

from device_app.errors import SumAborted
from device_app.privacy.sealed import JSON, OCTETS, Charge, Sealed, close, digest, json_payload
from protocol.ids import Message
from protocol.pairing import check_distinct, check_keys, sign_agreement, sign_alive, sign_keys
from protocol.ring import RingVector, masked_bytes, ring_dtype
from protocol.secagg import (
    AdvertisedKeys,
    Agreement,
    Agreements,
    Complaints,
    RevealedShares,
    Roster,
    SecaggError,
    SharedKeys,
    Sharers,
    Shares,
    SumTerms,
    Survivors,
    alive_bits,
    choose_neighbourhood,
    required_threshold,
)
from protocol.shamir import SHARE_BYTES
from protocol.text_catalogue import TextCatalogue


@dataclass(frozen=True)
class RosterRules:
    """The conditions that a sum's members must meet.

    directory: verify keys of all devices that may be members, if there is such a list. smallest: the fewest members,
    including this device, with whom it shares its masks and lets its vector be opened.

    Formal guarantees: none by itself; the guarantee that at least t honest members are needed to open a vector
    (`SumParticipant`) depends on these checks of threshold and members.
    """

    terms: SumTerms
    directory: Collection[bytes] | None
    smallest: int

    def check(self, keys: AdvertisedKeys, roster: Roster) -> None:
        """Raise SecaggError unless the terms allow this roster.

        It must show these keys for this device.
        """
        terms, holders, context = self.terms, len(roster.members), self.terms.digest()
        if roster.round != terms.round:
            raise SecaggError(f"the roster is for {roster.round}")
        if not terms.cohort_minimum <= roster.cohort <= terms.cohort:
            raise SecaggError(f"{roster.cohort} members, the terms say {terms.cohort_minimum} to {terms.cohort}")
        due = choose_neighbourhood(roster.cohort) if terms.graph == "sparse" else None
        wanted = roster.cohort if due is None else due.degree + 1
        if holders != wanted:
            raise SecaggError(
                f"the roster names {holders} members; with a cohort of {roster.cohort} there must be {wanted}"
            )
        if (last := roster.numbers[-1]) > roster.cohort:
            raise SecaggError(f"member {last} is beyond a cohort of {roster.cohort}")
        if holders < self.smallest:
            raise SecaggError(f"the roster names {holders} members; this device requires at least {self.smallest}")
        least, most = (max(2, required_threshold(terms, holders)), holders) if due is None else (due.threshold,) * 2
        if not least <= roster.threshold <= most:
            raise SecaggError(f"the threshold is {roster.threshold}, this device accepts {least} to {most}")
        check_distinct(tuple(entry.keys for entry in roster.members))
        mine = next(entry.keys for entry in roster.members if entry.member == roster.me)
        if mine != keys:
            raise SecaggError("the roster shows other keys for this device than it sent")
        for entry in roster.members:
            if self.directory is not None and entry.keys.verify_key not in self.directory:
                raise SecaggError(f"member {entry.member} is not in the directory")
            if terms.mode == "active":
                check_keys(context, entry.keys)

    def check_sharers(self, held: Sequence[HeldShares], roster: Roster, sharers: Sharers) -> None:
        """Raise SecaggError unless this device and enough others are in the sum.

        This device must hold shares of all of them.
        """
        if roster.me not in sharers.members:
            raise SecaggError("the server left this device out, because of a complaint by or about this device")
        if unknown := sorted(set(sharers.members) - {one.member for one in held}):
            raise SecaggError(f"member {unknown[0]} is listed in the sum, but this device holds no share of its keys")
        if len(sharers.members) < (least := self.least_sharers(roster)):
            raise SecaggError(f"{len(sharers.members)} members are in the sum, at least {least} are needed")

    def least(self, roster: Roster) -> int:
        """Return the fewest members of the roster with whom this device continues.

        This device is included. In the sparse form it sees its neighbours only; only the server can count the whole
        cohort.
        """
        return max(roster.threshold, self.smallest, self.terms.cohort_minimum if roster.is_whole else 0)

    def least_sharers(self, roster: Roster) -> int:
        """Return the fewest members of the roster, including this device, with whom it masks its vector."""
        due = None if roster.is_whole else choose_neighbourhood(roster.cohort)
        return max(self.least(roster), due.sharers if due else 0)


class ChargingLedger(Protocol):
    """The ledger, as far as a secure sum needs it."""

    def spend(self, charge: Charge) -> object:
        """Record the charge, or raise BudgetSpent."""


@dataclass(frozen=True, eq=False)
class Contribution:
    """What a device adds to a sum: its vector, and the cost of the opened sum.

    The vector is clipped, encoded and perhaps noisy. The charge is that of the opened sum at the smallest number of
    survivors that the round's terms allow, since the device has to pay before it can know how many will survive. paid
    is called in the transaction that records the charge.
    """

    vector: RingVector
    charge: Charge
    paid: Callable[[], None] | None = None

    def check(self, terms: SumTerms) -> None:
        """Raise ValueError unless the vector has the length and type stated in the terms."""
        vector = self.vector
        if vector.shape != (terms.length,) or vector.dtype != ring_dtype(terms.bits):
            raise ValueError(
                f"vector: {vector.dtype} {vector.shape}, the terms say {terms.length} of {terms.bits} bits"
            )

    def masked(
        self, ledger: ChargingLedger, *, plus: Sequence[bytes], minus: Sequence[bytes], threads: int
    ) -> tuple[bytes, str]:
        """Return the vector with these masks added and subtracted, and its SHA-256.

        It is charged before this returns.

        Raises BudgetSpent; then nothing of the vector may be sent.

        Formal guarantees: without all of the seeds the payload is uniform noise; the charge is for the opened sum.
        """
        payload = masked_bytes(self.vector, plus=plus, minus=minus, threads=threads)
        masked_sha256 = digest(payload)
        ledger.spend(replace(self.charge, payload_sha256=masked_sha256))
        return payload, masked_sha256


NO_CONTRIBUTION = Contribution(np.zeros(0, dtype=ring_dtype(32)), Charge("training", "secure_sum"))
"""For stages that read no vector; the answer of the `complaints` stage does, and refuses its length."""
WORDS = TextCatalogue("device_app.privacy", "words.toml")

Reply = Roster | Shares | Sharers | Survivors | Agreements | None
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, eq=False)
class MaskedInput:
    """A masked vector: ring elements, little-endian, in sequence.

    Without the masks they are uniform noise.
    """

    round: str
    payload: bytes


@dataclass(frozen=True, eq=False)
class Step:
    """A message to send.

    Before it leaves, `state` (and the payload of the `masked` stage) must be on the disk.
    """

    state: SumState
    sealed: Sealed[object]


def step_of(state: SumState, payload: bytes | None = None) -> Step:
    """Return the message of the state's stage.

    payload: the stored masked vector, in the `masked` stage. Only the masked vector depends on clicks, and it
    was paid for when it was made: keys, shares and signatures are random. Raises SumAborted if the masked vector was
    not stored: a second one must not be made.
    """
    round_id = state.terms.round
    match state.stage:
        case "keys":
            return _step(state, state.keys, WORDS("sum_keys"))
        case "shares":
            assert state.shared is not None
            return _step(state, state.shared, WORDS("sum_shares", others=len(state.shared.boxes)))
        case "complaints":
            assert state.complaints is not None
            accused = len(state.complaints.members)
            return _step(state, state.complaints, WORDS("sum_complaints", accused=accused or "none"))
        case "masked":
            if payload is None or digest(payload) != state.masked_sha256:
                raise SumAborted(round_id, "the masked vector was not stored, and a second one must not be made")
            words = WORDS("sum_masked", length=state.terms.length)
            charge = Charge("none", "secure_sum", payload_sha256=state.masked_sha256, subject=round_id)
            return Step(state, close(MaskedInput(round_id, payload), payload, OCTETS, charge, words))
        case "agree":
            return _step(state, _agreement(state), WORDS("sum_agree"))
        case "unmask":
            assert state.revealed is not None
            return _step(state, state.revealed, WORDS("sum_unmask"))


def _step(state: SumState, message: M, words: str) -> Step:
    """Seal a message that depends on no click: keys, shares and signatures are random."""
    charge = Charge("none", "secure_sum", subject=state.terms.round)
    return Step(state, close(message, json_payload(message), JSON, charge, words))


def _agreement(state: SumState) -> Agreement:
    assert state.roster is not None
    roster, context = state.roster, state.terms.digest()
    identity = Ed25519PrivateKey.from_private_bytes(state.identity_secret)
    if roster.is_whole:
        return sign_agreement(context, roster, state.survivors, identity)
    return sign_alive(context, roster.me, alive_bits(state.survivors, roster.cohort), identity)


SumStage = Literal["keys", "shares", "complaints", "masked", "agree", "unmask"]


class HeldShares(Message):
    """The two shares that this device holds for one member, or for itself."""

    member: int
    key_share: bytes = Field(min_length=SHARE_BYTES, max_length=SHARE_BYTES)
    seed_share: bytes = Field(min_length=SHARE_BYTES, max_length=SHARE_BYTES)


class SumState(Message):
    """A device's stored state of one secure sum; JSON by `model_dump_json`.

    Never on the wire: it holds every secret. stage names the message that is being sent or was sent last. Messages are
    stored as they were sent, since a second, different message of the same stage could reveal what the first one hid.
    """

    terms: SumTerms
    stage: SumStage
    identity_secret: bytes
    encryption_secret: bytes
    mask_secret: bytes
    roster: Roster | None = None
    seed: bytes | None = None
    own: HeldShares | None = None
    shared: SharedKeys | None = None
    complaints: Complaints | None = None
    held: tuple[HeldShares, ...] = Field(
        default=(), description="Of all whose boxes opened, and from the `masked` stage on of U2; this device included."
    )
    masked_sha256: str | None = None
    survivors: tuple[int, ...] = ()
    revealed: RevealedShares | None = None

    @property
    def keys(self) -> AdvertisedKeys:
        """The message of the `keys` stage.

        Ed25519 signatures are deterministic, so it's the same bytes every time.
        """
        identity = Ed25519PrivateKey.from_private_bytes(self.identity_secret)
        publics = [
            X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
            for secret in (self.encryption_secret, self.mask_secret)
        ]
        return sign_keys(self.terms.digest(), identity, *publics)


def begin_sum(terms: SumTerms, identity: Ed25519PrivateKey | None = None) -> SumState:
    """Return fresh keys for one round.

    `identity` signs them; if there is none (no directory of members), a fresh one is created.
    """
    return SumState(
        terms=terms,
        stage="keys",
        identity_secret=identity.private_bytes_raw() if identity else secrets.token_bytes(32),
        encryption_secret=X25519PrivateKey.generate().private_bytes_raw(),
        mask_secret=X25519PrivateKey.generate().private_bytes_raw(),
    )
