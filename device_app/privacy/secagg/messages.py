"""The messages of a device in a secure sum, sealed one by one, and what the server may answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel

from device_app.privacy.sealed import JSON, OCTETS, Charge, Sealed, close, json_payload
from device_app.privacy.secagg.state import SumState
from device_app.prose import Prose
from device_app.wire.pairing import sign_agreement
from device_app.wire.secagg import Agreement, Agreements, Roster, Sharers, Shares, Survivors

WORDS = Prose("device_app.privacy", "words.toml")

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
    return _step(state, state.keys, WORDS("sum_keys"))


def shares_step(state: SumState) -> Step:
    """Stage shares."""
    assert state.shared is not None
    words = WORDS("sum_shares", others=len(state.shared.boxes))
    return _step(state, state.shared, words)


def complaints_step(state: SumState) -> Step:
    """Stage complaints."""
    assert state.complaints is not None
    accused = len(state.complaints.members)
    words = WORDS("sum_complaints", accused=accused or "none")
    return _step(state, state.complaints, words)


def masked_step(state: SumState, payload: bytes | None) -> Step:
    """Stage masked: the vector that the state names by its hash, paid for when it was made."""
    assert payload is not None
    assert state.masked_sha256 is not None
    words = WORDS("sum_masked", length=state.terms.length)
    charge = Charge("none", "secure_sum", payload_sha256=state.masked_sha256, subject=state.terms.round)
    return Step(state, close(MaskedInput(state.terms.round, payload), payload, OCTETS, charge, words))


def agree_step(state: SumState) -> Step:
    """Stage agree."""
    return _step(state, _agreement(state), WORDS("sum_agree"))


def unmask_step(state: SumState) -> Step:
    """Stage unmask."""
    assert state.revealed is not None
    words = WORDS("sum_unmask")
    return _step(state, state.revealed, words)


def _step(state: SumState, message: M, words: str) -> Step:
    """Seal a message that no click has had a part in: keys, shares and signatures are random."""
    charge = Charge("none", "secure_sum", subject=state.terms.round)
    return Step(state, close(message, json_payload(message), JSON, charge, words))


def _agreement(state: SumState) -> Agreement:
    assert state.roster is not None
    identity = Ed25519PrivateKey.from_private_bytes(state.identity_secret)
    return sign_agreement(state.terms.digest(), state.roster, state.survivors, identity)
