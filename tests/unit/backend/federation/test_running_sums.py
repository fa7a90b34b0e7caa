"""Running sums in memory and in the storage: to which of the two a vector is added. Oracle: numpy's sum."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from sqlalchemy import Connection, event

from backend.db.engine import writing_session
from backend.errors import DiskFull
from backend.federation.errors import SumFailed, SumMessageRefused, SumStageClosed
from backend.federation.secagg import exchange
from backend.federation.secagg.sum_files import RunningSums
from backend.storage import durable_files
from backend.storage.object_store import LocalFolder
from protocol.ring import RingVector, ring_dtype
from protocol.secagg import SumTerms
from tests.doubles.secure_sums import SumDevice, add_masked, plain_sum, random_vector, terms
from tests.unit.backend.federation.test_secagg_store import NAME, SumStoreRig, answer, deliver, rig, sum_at_stage

__all__ = ["rig"]
TERMS = terms(3, length=40)


@pytest.fixture
def running_sums(tmp_path: Path) -> RunningSums:
    return RunningSums(LocalFolder(tmp_path / "sums"))


def keep_sum(running: RunningSums) -> tuple[str, RingVector]:
    total = random_vector(40)
    name = running.keep(total)
    running.hold(name, total)
    return name, total


def damage(folder: Path) -> None:
    """Damage the only sum, whatever its name."""
    for file in folder.glob("*.sum"):
        file.write_bytes(bytes(160))


def opened_equals_numpys(rig: SumStoreRig, devices: list, members: int) -> bool:  # type: ignore[type-arg]
    store = rig.store()
    assert store.stages.step(NAME) == "unmask"
    for device in devices:
        device.receive(answer(store, device))
        deliver(store, device)
    return bool((store.stages.opened(NAME).vector == plain_sum(devices, range(members))).all())


def test_commit_refused_by_a_full_disk_leaves_no_sum_and_a_retry_is_counted(rig: SumStoreRig) -> None:
    store, devices = sum_at_stage(rig, "masked")
    deliver(store, devices[0])

    def refuse(connection: Connection) -> None:
        if connection.get_execution_options().get("ownfeed_writes"):
            raise DiskFull("the database: database or disk is full")

    event.listen(rig.engine, "commit", refuse)
    for _ in range(3):
        with pytest.raises(DiskFull):
            deliver(store, devices[1])
    event.remove(rig.engine, "commit", refuse)
    assert rig.files() == [".sum"]
    assert [deliver(store, device) for device in devices[1:]] == [False] * 3
    assert opened_equals_numpys(rig, devices, 4)


def test_folder_sync_failure_leaves_no_orphaned_sum(rig: SumStoreRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: only completely stored files were removed, but a file has its name before its folder is synced."""
    store, devices = sum_at_stage(rig, "masked")
    deliver(store, devices[0])

    def refuse(folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))

    with monkeypatch.context() as full:
        full.setattr(durable_files, "sync_folder", refuse)
        for _ in range(3):
            with pytest.raises(OSError, match="No space left"):
                deliver(store, devices[1])
    assert rig.files() == [".sum"]
    assert [deliver(store, device) for device in devices[1:]] == [False] * 3
    assert opened_equals_numpys(rig, devices, 4)


def test_failed_write_does_not_replace_an_existing_sum(
    running_sums: RunningSums, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vector of nothing but zeros leaves a sum as it was."""
    name, total = keep_sum(running_sums)
    monkeypatch.setattr(durable_files, "sync_folder", Mock(side_effect=OSError(errno.ENOSPC, "No space left")))
    with pytest.raises(OSError, match="No space left"):
        running_sums.keep(total)
    assert (running_sums.read(name, TERMS) == total).all()


def test_running_sum_in_memory_is_taken_once_and_only_by_its_name(running_sums: RunningSums) -> None:
    name, total = keep_sum(running_sums)
    other = running_sums.keep(np.zeros(40, dtype=total.dtype))
    assert (running_sums.take(other, TERMS) == 0).all(), "another worker has stored that one since"
    assert running_sums.take(name, TERMS) is not total, "what was passed over is no longer held"
    name, total = keep_sum(running_sums)
    assert running_sums.take(name, TERMS) is total
    again = running_sums.take(name, TERMS)
    assert again is not total, "somebody else adds to it"
    assert (again == total).all()


def test_sum_is_opened_from_storage_not_from_memory(running_sums: RunningSums, tmp_path: Path) -> None:
    name, total = keep_sum(running_sums)
    damage(tmp_path / "sums")
    with pytest.raises(SumFailed, match="damaged"):
        running_sums.read(name, TERMS)
    assert (running_sums.take(name, TERMS) == total).all(), "the next vector mends it"


def test_running_sums_with_equal_contents_are_separate_objects(running_sums: RunningSums) -> None:
    """Regression: the name was the hash alone."""
    total = random_vector(40)
    first, second = running_sums.keep(total), running_sums.keep(total)
    assert running_sums.remove(first)
    assert (running_sums.read(second, TERMS) == total).all()
    with pytest.raises(SumFailed, match="missing"):
        running_sums.read(first, TERMS)


def test_equal_vectors_in_two_running_sums_leave_both_correct(rig: SumStoreRig) -> None:
    """Regression: the name was the hash alone, so the next vector of one sum took the other's object."""
    store, first = sum_at_stage(rig, "masked")
    others = [SumDevice.new(n, terms(4, length=40, round="round-2"), random_vector(40)) for n in range(4)]
    store.begin(others[0].state.terms, stage_sec=60.0)
    for device in others:
        device.start()
    for _ in ("keys", "shares", "complaints"):
        for device in others:
            deliver(store, device, "round-2")
        store.stages.step("round-2")
        for device in others:
            device.receive(answer(store, device, "round-2"))
    same = first[0].payload or b""
    assert add_masked(store.exchange, NAME, first[0].pseudonym, same) is False
    assert add_masked(store.exchange, "round-2", others[0].pseudonym, same) is False
    for device in first[1:]:
        assert deliver(store, device) is False
    for device in others[1:]:
        assert deliver(rig.store(), device, "round-2") is False
    assert opened_equals_numpys(rig, first, 4)


def test_alternating_workers_sum_exactly(rig: SumStoreRig) -> None:
    first, devices = sum_at_stage(rig, "masked", cohort=6)
    second = rig.store()
    for number, device in enumerate(devices):
        assert deliver((first, first, second)[number % 3], device) is False
    assert opened_equals_numpys(rig, devices, 6)


def test_vector_of_a_rolled_back_message_is_in_no_sum(rig: SumStoreRig) -> None:
    store, devices = sum_at_stage(rig, "masked")
    deliver(store, devices[0])

    def undone(_: Connection) -> None:
        raise RuntimeError("the place is gone")

    payload = devices[1].payload or b""
    with pytest.raises(RuntimeError, match="the place is gone"):
        add_masked(store.exchange, NAME, devices[1].pseudonym, payload, undone)
    for device in devices[1:]:
        assert deliver(store, device) is False
    assert opened_equals_numpys(rig, devices, 4)


def test_truncated_vector_is_in_no_sum(rig: SumStoreRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails if the sum to which half of the vector was added is kept: the next vector would be added to it."""
    store, devices = sum_at_stage(rig, "masked")
    deliver(store, devices[0])
    whole = exchange._read_blocks

    def half(file: FileIO, agreed: SumTerms) -> Iterator[RingVector]:
        yield next(whole(file, agreed))[:20]
        raise OSError("the disk is gone")

    monkeypatch.setattr(exchange, "_read_blocks", half)
    with pytest.raises(OSError, match="the disk is gone"):
        deliver(store, devices[1])
    monkeypatch.undo()
    for device in devices[1:]:
        assert deliver(store, device) is False
    assert opened_equals_numpys(rig, devices, 4)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("length", [1, 16_383, 16_384, 16_385, 50_000])
def test_vector_of_any_length_is_added_in_chunks(tmp_path: Path, bits: int, length: int) -> None:
    agreed = terms(3, length=length, bits=bits)
    vector = np.random.default_rng(length).integers(0, 2**bits, length, dtype=np.uint64).astype(ring_dtype(bits))
    path = tmp_path / "vector"
    path.write_bytes(vector.tobytes())
    with path.open("rb", buffering=0) as file:
        read = [block.copy() for block in exchange._blocks(file, agreed)]
    assert (np.concatenate(read) == vector).all()
    assert max(block.nbytes for block in read) <= exchange.BLOCK_BYTES
    for wrong in (vector.tobytes()[:-1], vector.tobytes() + b"0"):
        path.write_bytes(wrong)
        with path.open("rb", buffering=0) as file, pytest.raises(SumMessageRefused):
            exchange._blocks(file, agreed)


def test_damaged_running_sum_is_never_opened_wrongly(rig: SumStoreRig) -> None:
    store, devices = sum_at_stage(rig, "masked")
    deliver(store, devices[0])
    damage(rig.folder / "sums")
    with pytest.raises(SumFailed, match="damaged"):
        deliver(rig.store(), devices[1])
    for device in devices[1:]:
        assert deliver(store, device) is False
    assert opened_equals_numpys(rig, devices, 4), "the process that made the sum still had it"


def test_repeated_vector_does_not_touch_the_running_sum(rig: SumStoreRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: each copy wrote the whole sum again, and the next vector read it from the storage."""
    store, devices = sum_at_stage(rig, "masked")
    deliver(store, devices[0])
    asked: list[str] = []
    put, read_into = LocalFolder.put, LocalFolder.read_into

    def putting(folder: LocalFolder, key: str, content: bytes) -> None:
        asked.append("put")
        put(folder, key, content)

    def reading(folder: LocalFolder, key: str, into: memoryview) -> None:
        asked.append("read")
        read_into(folder, key, into)

    monkeypatch.setattr(LocalFolder, "put", putting)
    monkeypatch.setattr(LocalFolder, "read_into", reading)
    assert [deliver(store, devices[0]) for _ in range(3)] == [True] * 3
    assert asked == []
    for device in devices[1:]:
        assert deliver(store, device) is False
    assert asked == ["put"] * 3
    assert opened_equals_numpys(rig, devices, 4)


def test_repeated_vector_after_the_end_is_answered_with_the_stage(
    rig: SumStoreRig,
) -> None:
    """Regression: between removing the running sum and updating its row, the answer was that the sum had failed."""
    store, devices = sum_at_stage(rig, "masked")
    for device in devices:
        deliver(store, device)
    payload = devices[0].payload or b""
    assert opened_equals_numpys(rig, devices, 4)
    assert add_masked(store.exchange, NAME, devices[0].pseudonym, payload) is True
    with writing_session(rig.engine) as session:
        store.finish(session, NAME)
    for file in (rig.folder / "sums").glob("*.sum"):
        file.unlink()
    with pytest.raises(SumStageClosed):
        add_masked(store.exchange, NAME, devices[0].pseudonym, payload)
    assert rig.files() == []
