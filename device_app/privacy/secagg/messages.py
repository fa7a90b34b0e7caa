"""The messages of a device in a secure sum, sealed one by one, and what the server may answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel

from device_app.privacy.sealed import JSON, OCTETS, Charge, Sealed, close, json_payload
from device_app.privacy.secagg.state import SumState
from device_app.wire.pairing import sign_agreement
from device_app.wire.secagg import Agreement, Agreements, Roster, Sharers, Shares, Survivors

Reply = Roster | Shares | Sharers | Survivors | Agreements | None
M = TypeVar("M", bound=BaseModel)


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


def keys_step(state: SumState) -> Step:
    """Stage keys."""
    return _step(state, state.keys, "Public keys for a secure sum, made for this round.")


def shares_step(state: SumState) -> Step:
    """Stage shares."""
    assert state.shared is not None
    words = f"Encrypted shares of this round's keys for {len(state.shared.boxes)} other devices."
    return _step(state, state.shared, words)


def complaints_step(state: SumState) -> Step:
    """Stage complaints."""
    assert state.complaints is not None
    accused = len(state.complaints.members)
    words = f"How many other devices' encrypted shares could not be opened, and whose: {accused or 'none'}."
    return _step(state, state.complaints, words)


def masked_step(state: SumState, payload: bytes | None) -> Step:
    """Stage masked: the vector that the state names by its hash, paid for when it was made."""
    assert payload is not None
    assert state.masked_sha256 is not None
    words = f"A vector of {state.terms.length:,} numbers under masks that only the whole group's sum comes out of."
    charge = Charge("none", "secure_sum", payload_sha256=state.masked_sha256, subject=state.terms.round)
    return Step(state, close(MaskedInput(state.terms.round, payload), payload, OCTETS, charge, words))


def agree_step(state: SumState) -> Step:
    """Stage agree."""
    return _step(state, _agreement(state), "A signature on the list of devices whose vectors arrived.")


def unmask_step(state: SumState) -> Step:
    """Stage unmask."""
    assert state.revealed is not None
    words = "Shares of other devices' round keys, which open the sum and no single vector."
    return _step(state, state.revealed, words)


def _step(state: SumState, message: M, words: str) -> Step:
    """Seal a message that no click has had a part in: keys, shares and signatures are random."""
    charge = Charge("none", "secure_sum", subject=state.terms.round)
    return Step(state, close(message, json_payload(message), JSON, charge, words))


def _agreement(state: SumState) -> Agreement:
    assert state.roster is not None
    identity = Ed25519PrivateKey.from_private_bytes(state.identity_secret)
    return sign_agreement(state.terms.digest(), state.roster, state.survivors, identity)
