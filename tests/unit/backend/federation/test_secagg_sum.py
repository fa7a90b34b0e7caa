"""The server half of a secure sum. Oracles: an example worked out by hand, numpy's sum, tracemalloc."""

from __future__ import annotations

import copy
import gc
import tracemalloc
from collections.abc import Iterable
from types import FunctionType, ModuleType
from typing import ClassVar

import numpy as np
import pytest

from backend.federation.errors import SumFailed, SumMessageConflict, SumMessageRefused, SumStageClosed, UnknownPseudonym
from backend.federation.secagg import secure_sum as server_module
from backend.federation.secagg import unmask as unmask_module
from backend.federation.secagg.messages import InMemoryMessages
from backend.federation.secagg.secure_sum import SecureSumServer
from device_app.privacy.secagg import transitions as client_module
from protocol import ring as masks_module
from protocol.secagg import Complaints, RevealedShare, RevealedShares
from tests.doubles.secure_sums import (
    STAGES,
    SumDevice,
    answer,
    chunks,
    cohort,
    deliver,
    plain_sum,
    restarted_server,
    run_sum,
    terms,
)


class TableStream:
    """A mask from a table of worked numbers, looked up by the first byte of its 'seed'."""

    TABLE: ClassVar = {1: (100, 7), 2: (200, 50), 3: (31, 77), 12: (17, 90), 13: (60, 201), 23: (9, 9)}

    def __init__(self, seed: bytes, start: int) -> None:
        assert start == 0
        self.values = self.TABLE[seed[0]]

    def fill(self, out: memoryview) -> None:
        out[:] = bytes(self.values)


@pytest.fixture
def worked_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the specification's masks instead of random ones: b_u by member, s_uv by pair."""
    own = iter(bytes([member]) * 32 for member in (1, 2, 3))
    monkeypatch.setattr(client_module, "token_bytes", lambda _: next(own))

    def pair(*arguments: object) -> bytes:
        low, high = sorted(arguments[-1])  # type: ignore[call-overload]
        return bytes([10 * low + high]) * 32

    for module in (client_module, unmask_module):
        monkeypatch.setattr(module, "pair_seed", pair)
    monkeypatch.setattr(masks_module, "ChaChaStream", TableStream)


def worked_devices() -> tuple[SecureSumServer, list[SumDevice]]:
    server, devices = cohort(terms(3, length=2, bits=8, bound=1.0), threshold=2)
    for device, values in zip(devices, ((10, 250), (5, 3), (7, 9)), strict=True):
        device.vector = np.array(values, dtype=np.uint8)
    return server, devices


@pytest.mark.usefixtures("worked_masks")
def test_worked_example_of_the_specification_is_reproduced() -> None:
    server, devices = worked_devices()
    opened = run_sum(server, devices)
    assert [list(device.payload or b"") for device in devices] == [[187, 36], [197, 228], [225, 132]]
    assert opened.vector.tolist() == [22, 6]


@pytest.mark.usefixtures("worked_masks")
def test_worked_example_with_a_dropout_after_sharing_is_reproduced() -> None:
    server, devices = worked_devices()
    opened = run_sum(server, devices, {"masked": {2}})
    assert opened.vector.tolist() == [15, 253]


def sum_at_stage(
    stage: str, mode: str = "semi_honest", size: int = 5, length: int = 50
) -> tuple[SecureSumServer, list[SumDevice]]:
    """Return devices at a stage, with all earlier ones closed and no message of it delivered."""
    server, devices = cohort(terms(size, length=length, mode=mode))
    stages = [one for one in STAGES if one != "agree" or mode == "active"]
    for device in devices:
        device.start()
    for _ in stages[: stages.index(stage)]:
        for device in devices:
            deliver(server, device)
        server.close()
        for device in devices:
            device.receive(answer(server, device))
    return server, devices


def stored_state(server: SecureSumServer) -> object:
    return server.record.model_dump_json(), copy.deepcopy(server.messages), server.total.tobytes()


@pytest.mark.parametrize("mode", ["semi_honest", "active"])
def test_sum_resumes_from_storage_after_every_message(mode: str) -> None:
    server, devices = cohort(terms(4, length=50, mode=mode))
    stages = [stage for stage in STAGES if stage != "agree" or mode == "active"]
    for device in devices:
        device.start()
    for stage in stages:
        for device in devices:
            server = restarted_server(server)
            deliver(server, device)
        server = restarted_server(server)
        if stage != "unmask":
            server.close()
            server = restarted_server(server)
            devices = [device.revived() for device in devices]
            for device in devices:
                device.receive(answer(server, device))
    assert (restarted_server(server).open().vector == plain_sum(devices, range(4))).all()


# Of complaints two devices say the same: another message than that is in test_secagg_complaints.
@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "complaints"])
def test_repeated_message_changes_nothing_and_a_different_one_is_refused(stage: str) -> None:
    server, devices = sum_at_stage(stage, "active")
    first, other = devices[0], devices[1]
    assert deliver(server, first) is False
    before = stored_state(server)
    assert deliver(server, first) is True
    impostor = SumDevice(first.pseudonym, other.state, other.vector, payload=other.payload)
    impostor.start()
    with pytest.raises((SumMessageConflict, SumMessageRefused)):
        deliver(server, impostor)
    assert stored_state(server) == before


@pytest.mark.parametrize("stage", STAGES)
def test_message_from_a_stranger_to_the_sum_is_refused(stage: str) -> None:
    server, devices = sum_at_stage(stage, "active")
    devices[0].pseudonym = "s" * 22
    if stage == "keys":
        for device in devices[1:]:
            deliver(server, device)
        server.advertise("t" * 22, SumDevice.new(9, server.record.terms, devices[0].vector).start().state.keys)
        with pytest.raises(SumMessageRefused, match="complete"):
            deliver(server, devices[0])
    else:
        with pytest.raises(UnknownPseudonym):
            deliver(server, devices[0])


@pytest.mark.parametrize("stage", STAGES)
def test_message_after_its_stage_is_refused(stage: str) -> None:
    server, devices = sum_at_stage(stage, "active", size=7)
    for device in devices[1:]:
        deliver(server, device)
    if stage == "unmask":
        server.open()
    else:
        server.close()
    before = stored_state(server)
    with pytest.raises(SumStageClosed):
        deliver(server, devices[0])
    assert stored_state(server) == before


def test_masked_vector_after_unmasking_is_discarded() -> None:
    server, devices = sum_at_stage("masked")
    late, rest = devices[0], devices[1:]
    for device in rest:
        deliver(server, device)
    server.close()
    for device in rest:
        device.receive(answer(server, device))
        deliver(server, device)
    opened = server.open().vector.copy()
    with pytest.raises(SumStageClosed):
        deliver(server, late)
    assert (server.total == opened).all()
    assert (opened == plain_sum(devices, range(1, 5))).all()


@pytest.mark.parametrize(("change", "words"), [(-1, "too short"), (1, "too long"), (10**6, "too long")])
def test_vector_of_another_length_is_refused_without_changing_the_sum(change: int, words: str) -> None:
    server, devices = sum_at_stage("masked")
    payload = devices[0].payload or b""
    wrong = payload[:change] if change < 0 else payload + bytes(change)
    with pytest.raises(SumMessageRefused, match=words):
        server.add_masked(devices[0].pseudonym, chunks(wrong))
    assert not server.total.any()
    assert deliver(server, devices[0]) is False


def test_interrupted_upload_leaves_the_sum_unchanged() -> None:
    server, devices = sum_at_stage("masked")

    def broken() -> Iterable[bytes]:
        yield (devices[0].payload or b"")[:100]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        server.add_masked(devices[0].pseudonym, broken())
    assert not server.total.any()
    assert server.messages.count("masked") == 0


def test_member_that_shared_no_keys_cannot_add_a_vector() -> None:
    server, devices = sum_at_stage("shares")
    for device in devices[1:]:
        deliver(server, device)
    server.close()
    with pytest.raises(SumMessageRefused, match="not shared keys"):
        server.complain(devices[0].pseudonym, Complaints(members=()))
    for device in devices[1:]:
        device.receive(answer(server, device))
        deliver(server, device)
    server.close()
    with pytest.raises(SumMessageRefused, match="not shared keys"):
        server.add_masked(devices[0].pseudonym, [bytes(200)])


def test_device_outside_the_sum_cannot_send_shares_for_unmasking() -> None:
    server, devices = sum_at_stage("masked")
    for device in devices[1:]:
        deliver(server, device)
    server.close()
    with pytest.raises(SumMessageRefused, match="not in the sum"):
        server.reveal(devices[0].pseudonym, RevealedShares(seeds=(), keys=()))


def test_shares_of_both_secrets_are_never_requested_or_accepted() -> None:
    server, devices = sum_at_stage("masked")
    for device in devices[1:]:
        deliver(server, device)
    server.close()
    helper = devices[1]
    step = helper.receive(answer(server, helper))
    revealed = step.state.revealed
    assert revealed is not None
    assert {one.member for one in revealed.keys} == {1}
    assert {one.member for one in revealed.seeds} == {2, 3, 4, 5}
    own = next(one for one in helper.state.held if one.member == 1)
    both = RevealedShare(member=1, share=own.seed_share)
    with pytest.raises(ValueError, match="together they would open its vector"):
        RevealedShares(seeds=(both, *revealed.seeds), keys=revealed.keys)
    with pytest.raises(SumMessageRefused, match="not those of the expected members"):
        server.reveal(helper.pseudonym, RevealedShares(seeds=(both, *revealed.seeds), keys=()))
    with pytest.raises(SumMessageRefused, match="not those of the expected members"):
        server.reveal(helper.pseudonym, RevealedShares(seeds=revealed.seeds[1:], keys=revealed.keys))


def with_false_shares(malicious: int, answering: int) -> tuple[SecureSumServer, list[SumDevice]]:
    """Return a sum at its end to which some answered with shares of zeros."""
    server, devices = sum_at_stage("unmask", size=7)
    for place, device in enumerate(devices[:answering]):
        revealed = device.state.revealed
        assert revealed is not None
        if place < malicious:
            false = tuple(RevealedShare(member=one.member, share=bytes(33)) for one in revealed.seeds)
            server.reveal(device.pseudonym, RevealedShares(seeds=false, keys=()))
        else:
            deliver(server, device)
    return server, devices


@pytest.mark.parametrize("malicious", [1, 2, 3])
def test_false_shares_are_detected_while_enough_true_ones_exist(malicious: int) -> None:
    server, devices = with_false_shares(malicious, 7)
    assert server.record.threshold == 4
    assert (server.open().vector == plain_sum(devices, range(7))).all()


@pytest.mark.parametrize(("malicious", "answering"), [(1, 4), (4, 7)])
def test_false_shares_among_too_few_true_ones_fail_the_sum(malicious: int, answering: int) -> None:
    server, _ = with_false_shares(malicious, answering)
    with pytest.raises(SumFailed, match="false"):
        server.open()
    assert (server.stage, server.messages) == ("failed", InMemoryMessages())
    assert not server.total.any()


def test_failed_sum_accepts_and_returns_nothing() -> None:
    server, devices = sum_at_stage("masked")
    server.fail("cancelled by the operator")
    assert (server.record.reason, server.messages) == ("cancelled by the operator", InMemoryMessages())
    for use in (lambda: deliver(server, devices[0]), server.close, server.open, lambda: answer(server, devices[0])):
        with pytest.raises(SumStageClosed):
            use()


def reachable(root: object) -> list[object]:
    """Return every object reachable from one, without modules, classes and functions."""
    seen, found, queue = {id(root)}, [root], [root]
    while queue:
        for one in gc.get_referents(queue.pop()):
            if id(one) not in seen and not isinstance(one, ModuleType | type | FunctionType):
                seen.add(id(one))
                found.append(one)
                queue.append(one)
    return found


def holds(root: object, needles: list[bytes]) -> bool:
    """Return whether any bytes or array under `root` contain one of the needles."""
    for one in reachable(root):
        raw = one.tobytes() if isinstance(one, np.ndarray) else one
        if isinstance(raw, bytes | bytearray | memoryview) and any(needle in bytes(raw) for needle in needles):
            return True
    return False


@pytest.mark.parametrize("gone", [{}, {"masked": {2}}, {"unmask": {2}}])
def test_server_never_holds_an_unmasked_vector_of_one_device(gone: dict[str, set[int]]) -> None:
    server, devices = cohort(terms(5, length=300))
    plain = [device.vector.tobytes()[64:128] for device in devices]
    left = list(range(5))
    for at, stage in enumerate(("keys", "shares", "complaints", "masked", "unmask")):
        left = [place for place in left if place not in gone.get(stage, set())]
        for place in left:
            devices[place].start() if at == 0 else devices[place].receive(answer(server, devices[place]))
            deliver(server, devices[place])
            assert not holds(server, plain)
            masked = [device.payload[64:128] for device in devices if device.payload]
            if server.messages.count("masked") != 1:
                assert not holds(server, masked), "nor a single masked one, beside the sum"
        if stage != "unmask":
            server.close()
    opened = server.open()
    assert not holds(server, plain)
    assert holds(server, [opened.vector.tobytes()[64:128]]), "the search finds what is there"


def test_search_for_unmasked_vectors_finds_a_planted_one() -> None:
    server, devices = cohort(terms(5, length=300))
    server.total[:] = devices[3].vector
    assert holds(server, [devices[3].vector.tobytes()[64:128]])


def test_uploads_are_streamed_with_memory_for_a_few_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    # tracemalloc sees numpy's memory and not that of pages of one's own.
    monkeypatch.setattr(server_module, "zero_vector", np.zeros)
    length = 200_000
    tracemalloc.start()
    server, devices = sum_at_stage("masked", size=6, length=length)
    assert server.total.size == length
    gc.collect()
    inputs = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    for device in devices:
        deliver(server, device)
    server.close()
    for device in devices:
        device.receive(answer(server, device))
        deliver(server, device)
    server.open()
    extra = tracemalloc.get_traced_memory()[1] - inputs
    tracemalloc.stop()
    assert extra < 3 * 4 * length, f"{extra / 4 / length:.2f} vectors beside the running sum and the inputs"
