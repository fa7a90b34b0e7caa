"""Running sums in memory and in the storage: which of the two a vector is added to. Oracle: numpy's sum."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from hashlib import sha256
from io import FileIO
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from sqlalchemy import Connection, bindparam, event, update

from backend.db.engine import writing_session
from backend.db.prepared import Prepared
from backend.db.tables_federation import SecureSumRow
from backend.errors import DiskFull
from backend.federation.secagg import exchange, sum_files
from backend.federation.secagg.errors import SumFailed, SumMessageRefused, SumStageClosed
from backend.federation.secagg.running_sums import RunningSums, SumName
from backend.federation.secagg.store import SecureSumStore
from backend.storage import durable_files
from backend.storage.local_folder import LocalFolder
from device_app.wire.ring import RingVector, ring_dtype
from device_app.wire.secagg import SumTerms
from tests.doubles.secure_sums import SumDevice, plain_sum, random_vector, terms
from tests.unit.backend.federation.test_secagg_store import NAME, SumStoreRig, answer, brought_to, deliver, rig

__all__ = ["rig"]
TERMS = terms(3, length=40)


@pytest.fixture
def running(tmp_path: Path) -> RunningSums:
    return RunningSums(LocalFolder(tmp_path / "sums"))


def kept(running: RunningSums) -> tuple[SumName, RingVector]:
    total = random_vector(40)
    name = running.keep(total)
    running.hold(name, total)
    return name, total


def damage(folder: Path) -> None:
    """Of the one sum there, under whatever name it is read."""
    for file in folder.glob("*.sum"):
        file.write_bytes(bytes(160))


def opened_equals_numpys(rig: SumStoreRig, devices: list, members: int) -> bool:  # type: ignore[type-arg]
    store = rig.store()
    assert store.stages.step(NAME) == "unmask"
    for device in devices:
        device.hear(answer(store, device))
        deliver(store, device)
    return bool((store.stages.opened(NAME).vector == plain_sum(devices, range(members))).all())


def test_a_commit_without_room_leaves_no_sum_behind_and_the_vector_counts_when_it_comes_again(rig: SumStoreRig) -> None:
    store, devices = brought_to(rig, "masked")
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


def test_a_folder_that_does_not_come_to_the_full_disk_keeps_no_sum_that_nobody_names(
    rig: SumStoreRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red while only what was stored to the end was removed: the file has its name before its folder is synced."""
    store, devices = brought_to(rig, "masked")
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


def test_what_is_not_kept_takes_no_name_of_what_it_was(running: RunningSums, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector of nothing but zeros leaves a sum as it was, whose hash is a name that servers of before read."""
    name, total = kept(running)
    monkeypatch.setattr(durable_files, "sync_folder", Mock(side_effect=OSError(errno.ENOSPC, "No space left")))
    with pytest.raises(OSError, match="No space left"):
        running.keep(total, name)
    assert (running.read(name, TERMS) == total).all()
    assert (running.read(SumName(name.total), TERMS) == total).all()


def test_a_sum_in_memory_is_taken_once_and_by_its_name_only(running: RunningSums) -> None:
    name, total = kept(running)
    other = running.keep(np.zeros(40, dtype=total.dtype))
    assert (running.take(other, TERMS) == 0).all(), "another worker has stored that one since"
    assert running.take(name, TERMS) is not total, "what was passed over is no longer held"
    name, total = kept(running)
    assert running.take(name, TERMS) is total
    again = running.take(name, TERMS)
    assert again is not total, "somebody else adds to it"
    assert (again == total).all()


def test_what_is_opened_is_read_from_the_storage_whatever_is_held(running: RunningSums, tmp_path: Path) -> None:
    name, total = kept(running)
    damage(tmp_path / "sums")
    with pytest.raises(SumFailed, match="damaged"):
        running.read(name, TERMS)
    assert (running.take(name, TERMS) == total).all(), "the next vector mends it"


def test_equal_sums_are_two_objects_and_a_late_removal_takes_its_own(running: RunningSums) -> None:
    """Red while the name was the hash alone."""
    total = random_vector(40)
    first, second = running.keep(total), running.keep(total)
    assert running.remove(first)
    assert (running.read(second, TERMS) == total).all()
    with pytest.raises(SumFailed, match="missing"):
        running.read(first, TERMS)


def test_a_sum_that_a_row_of_before_names_by_its_hash_alone_is_read_and_removed(
    running: RunningSums, tmp_path: Path
) -> None:
    total = random_vector(40)
    name, folder = SumName(sha256(total.data).hexdigest()), tmp_path / "sums"
    (folder / f"{name.total}.sum").write_bytes(total.tobytes())
    running.sweep({str(name.total)}, before=time.time() + 60)
    assert (running.read(name, TERMS) == total).all()
    damage(folder)
    with pytest.raises(SumFailed, match="damaged"):
        running.read(name, TERMS)
    assert running.remove(name)
    assert list(folder.iterdir()) == []


def test_members_of_two_sums_who_send_the_same_vector_spoil_neither(rig: SumStoreRig) -> None:
    """Red while the name was the hash alone: the next vector of one sum took the other's object."""
    store, first = brought_to(rig, "masked")
    others = [SumDevice.new(n, terms(4, length=40, round="round-2"), random_vector(40)) for n in range(4)]
    store.begin(others[0].state.terms, stage_sec=60.0)
    for device in others:
        device.start()
    for _ in ("keys", "shares", "complaints"):
        for device in others:
            deliver(store, device, "round-2")
        store.stages.step("round-2")
        for device in others:
            device.hear(answer(store, device, "round-2"))
    same = first[0].payload or b""
    assert store.exchange.add_masked(NAME, first[0].pseudonym, [same])[1] is False
    assert store.exchange.add_masked("round-2", others[0].pseudonym, [same])[1] is False
    for device in first[1:]:
        assert deliver(store, device) is False
    for device in others[1:]:
        assert deliver(rig.store(), device, "round-2") is False
    assert opened_equals_numpys(rig, first, 4)


class HashNamedSums(RunningSums):
    """As an Ownfeed of before knows running sums: by their hash alone, which must be that of what is read."""

    def read(self, name: SumName, terms: SumTerms) -> RingVector:
        return super().read(SumName(name.total), terms)

    def take(self, name: SumName, terms: SumTerms) -> RingVector:
        return self.read(name, terms)

    def keep(self, total: RingVector, before: SumName = SumName()) -> SumName:
        name = sha256(total.data).hexdigest()
        self.objects.put(f"{name}.sum", total.data)
        return SumName(name)

    def remove(self, name: SumName, after: SumName = SumName()) -> bool:
        return super().remove(SumName(name.total), SumName(after.total))


def hash_named(rig: SumStoreRig, monkeypatch: pytest.MonkeyPatch) -> SecureSumStore:
    """A server of before, which writes one column of the two."""
    store = rig.store()
    monkeypatch.setattr(store._stored, "_running", HashNamedSums(LocalFolder(rig.folder / "sums")))
    return store


@pytest.mark.parametrize("opens", [0, 1])
def test_a_server_of_before_and_this_one_add_to_one_sum_exactly(
    rig: SumStoreRig, monkeypatch: pytest.MonkeyPatch, opens: int
) -> None:
    """A rolling upgrade. Red before: what this one had stored the other took for damaged, and its members left."""
    now, devices = brought_to(rig, "masked", cohort=7)
    before = hash_named(rig, monkeypatch)
    total = sum_files._TOTAL
    one_column = Prepared(
        update(SecureSumRow).where(SecureSumRow.name == bindparam("of")).values(total=bindparam("after"))
    )
    for store, device in zip((now, before, before, now, now, before, now), devices, strict=True):
        monkeypatch.setattr(sum_files, "_TOTAL", one_column if store is before else total)
        assert deliver(store, device) is False
    assert now.stages.step(NAME) == "unmask"
    for device in devices:
        device.hear(answer(now, device))
        deliver(now, device)
    assert ((now, before)[opens].stages.opened(NAME).vector == plain_sum(devices, range(7))).all()
    with writing_session(rig.engine) as session:
        now.finish(session, NAME)
    now.clear()
    left = list((rig.folder / "sums").iterdir())
    rig.clock.go_on(2 * sum_files.SWEEP_AGE_SEC)
    for path in left:
        os.utime(path, (0, 0))
    now.sweep()
    assert rig.files() == [], left


def test_workers_that_take_turns_sum_exactly(rig: SumStoreRig) -> None:
    first, devices = brought_to(rig, "masked", cohort=6)
    second = rig.store()
    for number, device in enumerate(devices):
        assert deliver((first, first, second)[number % 3], device) is False
    assert opened_equals_numpys(rig, devices, 6)


def test_a_vector_whose_message_is_undone_is_in_no_sum(rig: SumStoreRig) -> None:
    store, devices = brought_to(rig, "masked")
    deliver(store, devices[0])

    def undone(_: Connection, __: str) -> None:
        raise RuntimeError("the place is gone")

    payload = devices[1].payload or b""
    with pytest.raises(RuntimeError, match="the place is gone"):
        store.exchange.add_masked(NAME, devices[1].pseudonym, [payload], undone)
    for device in devices[1:]:
        assert deliver(store, device) is False
    assert opened_equals_numpys(rig, devices, 4)


def test_a_vector_whose_file_ends_in_the_middle_is_in_no_sum(rig: SumStoreRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red where the sum that half of it went to is held: the next vector is added to that."""
    store, devices = brought_to(rig, "masked")
    deliver(store, devices[0])
    whole = exchange._stretches

    def half(file: FileIO, agreed: SumTerms) -> Iterator[RingVector]:
        yield next(whole(file, agreed))[:20]
        raise OSError("the disk is gone")

    monkeypatch.setattr(exchange, "_stretches", half)
    with pytest.raises(OSError, match="the disk is gone"):
        deliver(store, devices[1])
    monkeypatch.undo()
    for device in devices[1:]:
        assert deliver(store, device) is False
    assert opened_equals_numpys(rig, devices, 4)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("length", [1, 16_383, 16_384, 16_385, 50_000])
def test_a_vector_is_added_stretch_by_stretch_whatever_its_length(tmp_path: Path, bits: int, length: int) -> None:
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


def test_a_sum_that_is_damaged_under_way_is_never_opened_wrong(rig: SumStoreRig) -> None:
    store, devices = brought_to(rig, "masked")
    deliver(store, devices[0])
    damage(rig.folder / "sums")
    with pytest.raises(SumFailed, match="damaged"):
        deliver(rig.store(), devices[1])
    for device in devices[1:]:
        assert deliver(store, device) is False
    assert opened_equals_numpys(rig, devices, 4), "the process that made the sum still had it"


def test_a_vector_that_comes_again_reads_and_writes_no_running_sum(
    rig: SumStoreRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red before: each copy had the whole sum written once more, and the next vector read it from the storage."""
    store, devices = brought_to(rig, "masked")
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


def test_a_vector_that_comes_again_after_its_sum_ended_is_told_of_the_stage_and_not_of_the_storage(
    rig: SumStoreRig,
) -> None:
    """Red before: between the removal of the running sum and its row's word the answer was that the sum had failed."""
    store, devices = brought_to(rig, "masked")
    for device in devices:
        deliver(store, device)
    payload = devices[0].payload or b""
    assert opened_equals_numpys(rig, devices, 4)
    assert store.exchange.add_masked(NAME, devices[0].pseudonym, [payload])[1] is True
    with writing_session(rig.engine) as session:
        store.finish(session, NAME)
    for file in (rig.folder / "sums").glob("*.sum"):
        file.unlink()
    with pytest.raises(SumStageClosed):
        store.exchange.add_masked(NAME, devices[0].pseudonym, [payload])
    assert rig.files() == []
