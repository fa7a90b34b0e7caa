"""The messages of a device in a secure sum, and the vector it contributes with its charge.

The charge is paid before the vector is masked. Messages are sealed one by one, each for one stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel

from device_app.errors import SumAborted
from device_app.privacy.sealed import JSON, OCTETS, Charge, Sealed, close, digest, json_payload
from device_app.privacy.secagg.state import SumState
from protocol.masks import masked_bytes
from protocol.pairing import sign_agreement, sign_alive
from protocol.ring import RingVector, ring_dtype
from protocol.secagg import Agreement, Agreements, Roster, Sharers, Shares, SumTerms, Survivors, alive_bits
from protocol.text_catalogue import TextCatalogue


class Spender(Protocol):
    """The ledger, as far as a secure sum needs it."""

    def spend(self, charge: Charge) -> object:
        """Write the charge down, or raise BudgetSpent."""


@dataclass(frozen=True, eq=False)
class Contribution:
    """What a device adds to a sum: its vector, and the cost of the opened sum.

    The vector is clipped, encoded and perhaps noisy. The charge is that of the opened sum at the smallest number of
    survivors that the round's terms allow, since the device has to pay before it can know how many will survive. paid
    is called in the transaction that charges.
    """

    vector: RingVector
    charge: Charge
    paid: Callable[[], None] | None = None

    def check(self, terms: SumTerms) -> None:
        """Raise ValueError unless the vector has the length and the type that the terms say."""
        vector = self.vector
        if vector.shape != (terms.length,) or vector.dtype != ring_dtype(terms.bits):
            raise ValueError(
                f"vector: {vector.dtype} {vector.shape}, the terms say {terms.length} of {terms.bits} bits"
            )

    def masked(
        self, ledger: Spender, *, plus: Sequence[bytes], minus: Sequence[bytes], threads: int
    ) -> tuple[bytes, str]:
        """Return the vector with these masks added and subtracted, and its SHA-256.

        It is charged before this returns.

        Raises BudgetSpent, after which nothing of it may leave.

        Formal guarantees: to whoever lacks one of the seeds the payload is uniform noise; the charge is of the opened
        sum.
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
    """Ring elements, little-endian, one after the other.

    They are uniform noise to whoever lacks the masks.
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

    `payload`: the masked vector as it was kept, in the `masked` stage. Only the masked vector depends on clicks, and it
    was paid for when it was made: keys, shares and signatures are random. Raises SumAborted for a masked vector that
    wasn't kept: a second one must not be made.
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
                raise SumAborted(round_id, "the masked vector was not kept, and a second one must not be made")
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
