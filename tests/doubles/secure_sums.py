"""Devices and a server of a secure sum, connected without HTTP.

Every message passes through its JSON form.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
from sqlalchemy import Connection

from backend.federation.secagg.exchange import MemberExchange, nothing
from backend.federation.secagg.messages import SumRecord
from backend.federation.secagg.secure_sum import OpenedSum, SecureSumServer
from device_app.privacy.sealed import Charge
from device_app.privacy.secagg.messages import Contribution, MaskedInput, Reply, Step, SumState, begin_sum
from device_app.privacy.secagg.transitions import SumParticipant
from protocol.ring import RingVector, ring_dtype
from protocol.secagg import (
    AdvertisedKeys,
    Agreement,
    Agreements,
    Complaints,
    RevealedShares,
    Roster,
    SharedKeys,
    Sharers,
    Shares,
    SumTerms,
    Survivors,
)


def restarted_server(server: SecureSumServer) -> SecureSumServer:
    """Return the same sum in a new process, from the stored data."""
    record = SumRecord.model_validate_json(server.record.model_dump_json())
    return SecureSumServer(record, copy.deepcopy(server.messages), server.total.copy())


CHUNK_BYTES = 60_001
"""Odd on purpose: chunks of an upload don't end at ring elements."""
STAGES = ("keys", "shares", "complaints", "masked", "agree", "unmask")


class FreeLedger:
    """Records charges and refuses none."""

    def __init__(self) -> None:
        self.charges: list[Charge] = []

    def spend(self, charge: Charge) -> None:
        self.charges.append(charge)


def terms(cohort: int, length: int = 4, **changes: object) -> SumTerms:
    """Terms of a small sum of integers: f = 0, X = 1000."""
    given: dict[str, object] = {
        "round": "round-1",
        "cohort": cohort,
        "cohort_minimum": 2,
        "length": length,
        "fraction_bits": 0,
        "bound": 1_000.0,
    }
    return SumTerms.model_validate(given | changes)


def random_vector(length: int, bits: int = 32) -> RingVector:
    """Uniform ring elements."""
    return np.frombuffer(secrets.token_bytes(length * bits // 8), dtype=ring_dtype(bits)).copy()


@dataclass
class SumDevice:
    """One device and its current step."""

    pseudonym: str
    state: SumState
    vector: RingVector
    ledger: FreeLedger = field(default_factory=FreeLedger)
    directory: Collection[bytes] | None = None
    payload: bytes | None = None
    step: Step | None = None
    part: SumParticipant | None = None

    @classmethod
    def new(cls, number: int, terms: SumTerms, vector: RingVector) -> SumDevice:
        return cls(f"device-{number:04}-{'x' * 14}", begin_sum(terms), vector)

    def start(self) -> Step:
        """Start, or resume from the stored state, as after a kill."""
        charge = Charge("training", "secure_sum", subject=self.state.terms.round)
        self.part = SumParticipant(
            self.state, Contribution(self.vector, charge), self.ledger, payload=self.payload, directory=self.directory
        )
        self._keep(self.part.step())
        assert self.step is not None
        return self.step

    def receive(self, reply: Reply) -> Step:
        """Take an answer of the server."""
        assert self.part is not None
        self._keep(self.part.receive(reply))
        assert self.step is not None
        return self.step

    def revived(self) -> SumDevice:
        """Return a new process on the same disk, at the step where the old one stopped."""
        state = SumState.model_validate_json(self.state.model_dump_json())
        again = SumDevice(self.pseudonym, state, self.vector, directory=self.directory, payload=self.payload)
        again.start()
        return again

    def _keep(self, step: Step) -> None:
        self.step, self.state = step, step.state
        if isinstance(step.sealed.message, MaskedInput):
            self.payload = step.sealed.payload


def deliver(server: SecureSumServer, device: SumDevice) -> bool:
    """Hand the device's current message to the server."""
    assert device.step is not None
    stage, payload = device.step.state.stage, device.step.sealed.payload
    if stage == "keys":
        return server.advertise(device.pseudonym, AdvertisedKeys.model_validate_json(payload))
    if stage == "shares":
        return server.share(device.pseudonym, SharedKeys.model_validate_json(payload))
    if stage == "complaints":
        return server.complain(device.pseudonym, Complaints.model_validate_json(payload))
    if stage == "masked":
        return server.add_masked(device.pseudonym, chunks(payload))
    if stage == "agree":
        return server.agree(device.pseudonym, Agreement.model_validate_json(payload))
    return server.reveal(device.pseudonym, RevealedShares.model_validate_json(payload))


def add_masked(
    exchange: MemberExchange, name: str, pseudonym: str, payload: bytes, note: Callable[[Connection], None] = nothing
) -> bool:
    """Hand a masked vector to the server's exchange, in a file as an upload leaves it."""
    with NamedTemporaryFile(prefix="ownfeed-masked-") as file:
        file.write(payload)
        file.flush()
        return exchange.add_received(name, pseudonym, Path(file.name), sha256(payload).hexdigest(), note)


def chunks(payload: bytes) -> Iterable[bytes]:
    """A body in the pieces in which it arrives."""
    return (payload[at : at + CHUNK_BYTES] for at in range(0, len(payload), CHUNK_BYTES))


def answer(server: SecureSumServer, device: SumDevice) -> Reply:
    """Return the server's answer to the device's current stage, through JSON."""
    name = device.pseudonym
    if device.state.stage == "keys":
        return Roster.model_validate_json(server.members.roster(name).model_dump_json())
    if device.state.stage == "shares":
        return Shares.model_validate_json(server.members.shares(name).model_dump_json())
    if device.state.stage == "complaints":
        return Sharers.model_validate_json(server.members.sharers_answer(name).model_dump_json())
    if device.state.stage == "masked":
        return Survivors.model_validate_json(server.members.survivors(name).model_dump_json())
    return Agreements.model_validate_json(server.members.agreements(name).model_dump_json())


def run_sum(
    server: SecureSumServer, devices: list[SumDevice], gone: Mapping[str, Collection[int]] | None = None
) -> OpenedSum:
    """Run the whole protocol.

    gone: by stage, the places in `devices` that vanish before sending that stage's message.
    """
    gone = gone or {}
    left = list(range(len(devices)))
    stages = [stage for stage in STAGES if stage != "agree" or server.record.terms.mode == "active"]
    for at, stage in enumerate(stages):
        left = [place for place in left if place not in gone.get(stage, ())]
        for place in left:
            device = devices[place]
            device.start() if at == 0 else device.receive(answer(server, device))
            assert device.state.stage == stage
            deliver(server, device)
        if stage != "unmask":
            server.close()
    return server.open()


def cohort(terms: SumTerms, *, threshold: int | None = None) -> tuple[SecureSumServer, list[SumDevice]]:
    """A server, and devices with random vectors, as many as the terms' cohort."""
    server = SecureSumServer.begin(terms, threshold=threshold)
    return server, [SumDevice.new(n, terms, random_vector(terms.length, terms.bits)) for n in range(terms.cohort)]


def plain_sum(devices: list[SumDevice], places: Iterable[int]) -> RingVector:
    """The oracle: numpy's sum, which wraps as the ring does."""
    chosen = [devices[place].vector for place in places]
    total = np.zeros_like(chosen[0])
    for vector in chosen:
        total += vector
    return total


def run_until(
    stage: str, mode: str = "active", size: int = 4, **changes: Any
) -> tuple[SecureSumServer, list[SumDevice]]:
    """Run devices until their messages of `stage` have arrived and the server has closed that stage."""
    server, devices = cohort(terms(size, mode=mode, **changes))
    stages = [one for one in STAGES if one != "agree" or mode == "active"]
    for at in range(stages.index(stage) + 1):
        for device in devices:
            device.start() if at == 0 else device.receive(answer(server, device))
            deliver(server, device)
        server.close()
    return server, devices
