"""Secure sums in the database. Oracle: numpy's sum, after kills between any two steps; files on disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection, Engine, event

from backend.db import statements as prepared
from backend.db.engine import reading_session, writing_session
from backend.db.statements import StatementAnswer, ask_sqlite
from backend.db.tables import SecureSumRow
from backend.federation.errors import SumFailed, SumMessageRefused, SumStageClosed, UnknownSum
from backend.federation.secagg.sum_files import SWEEP_AGE_SEC
from backend.federation.secagg.sum_store import SecureSumStore, times_beside_keys
from backend.storage import object_store as local_folder
from backend.storage.durable_files import write_durably
from backend.storage.object_store import LocalFolder, StorageUnavailable
from device_app.privacy.secagg.messages import Reply
from protocol.secagg import AdvertisedKeys, Agreement, Complaints, RevealedShares, SharedKeys, SumTerms
from tests.doubles.clock import StillClock
from tests.doubles.kills import Killed
from tests.doubles.secure_sums import STAGES, SumDevice, add_masked, plain_sum, random_vector, terms

NAME = "round-1"


@dataclass
class SumStoreRig:
    engine: Engine
    folder: Path
    clock: StillClock = field(default_factory=StillClock)

    def store(self) -> SecureSumStore:
        """A server process that has just started."""
        return SecureSumStore(self.engine, LocalFolder(self.folder / "sums"), self.clock)

    def begun(self, cohort: int, **changes: Any) -> tuple[SecureSumStore, list[SumDevice]]:
        agreed: SumTerms = terms(cohort, length=40, **changes)
        store = self.store()
        store.begin(agreed, stage_sec=60.0)
        devices = [SumDevice.new(n, agreed, random_vector(40)) for n in range(cohort)]
        for device in devices:
            device.start()
        return store, devices

    def files(self) -> list[str]:
        """Return the endings of the files' names; a file of two names counts once."""
        found = {path.stat().st_ino: path.suffix for path in (self.folder / "sums").iterdir()}
        return sorted(found.values())


@pytest.fixture
def rig(engine: Engine, tmp_path: Path) -> SumStoreRig:
    return SumStoreRig(engine, tmp_path)


def deliver(store: SecureSumStore, device: SumDevice, round_name: str = NAME) -> bool:
    assert device.step is not None
    stage, payload, name = device.step.state.stage, device.step.sealed.payload, device.pseudonym
    if stage == "keys":
        return store.exchange.advertise(round_name, name, AdvertisedKeys.model_validate_json(payload))
    if stage == "shares":
        return store.exchange.share(round_name, name, SharedKeys.model_validate_json(payload))
    if stage == "complaints":
        return store.exchange.complain(round_name, name, Complaints.model_validate_json(payload))
    if stage == "masked":
        return add_masked(store.exchange, round_name, name, payload)
    if stage == "agree":
        return store.exchange.agree(round_name, name, Agreement.model_validate_json(payload))
    return store.exchange.reveal(round_name, name, RevealedShares.model_validate_json(payload))


def answer(store: SecureSumStore, device: SumDevice, round_name: str = NAME) -> Reply:
    ask: dict[str, Callable[[str, str], Reply]] = {
        "keys": store.exchange.roster, "shares": store.exchange.shares, "complaints": store.exchange.sharers,
        "masked": store.exchange.survivors, "agree": store.exchange.agreements,
    }  # fmt: skip
    return ask[device.state.stage](round_name, device.pseudonym)


def sum_at_stage(rig: SumStoreRig, stage: str, cohort: int = 4) -> tuple[SecureSumStore, list[SumDevice]]:
    store, devices = rig.begun(cohort)
    stages = ("keys", "shares", "complaints", "masked", "unmask")
    for _ in stages[: stages.index(stage)]:
        for device in devices:
            deliver(store, device)
        store.stages.step(NAME)
        for device in devices:
            device.receive(answer(store, device))
    return store, devices


@pytest.mark.parametrize("mode", ["semi_honest", "active"])
def test_server_killed_after_every_message_opens_the_exact_sum_once(rig: SumStoreRig, mode: str) -> None:
    _, devices = rig.begun(4, mode=mode)
    for stage in STAGES:
        if stage == "agree" and mode != "active":
            continue
        for device in devices:
            assert deliver(rig.store(), device) is False
            assert deliver(rig.store(), device) is True
        if stage != "unmask":
            assert rig.store().stages.step(NAME) != stage
            for device in devices:
                device.receive(answer(rig.store(), device))
    assert rig.store().stages.poll(NAME).is_due
    first, again = rig.store().stages.opened(NAME), rig.store().stages.opened(NAME)
    assert (first.vector == plain_sum(devices, range(4))).all()
    assert (again.vector == first.vector).all(), "opening changes nothing, so a server killed meanwhile opens it again"
    with writing_session(rig.engine) as session:
        rig.store().finish(session, NAME)
    assert rig.store().stage(NAME)[0] == "opened"
    assert rig.store().under_way() == []
    with pytest.raises(SumStageClosed):
        rig.store().stages.opened(NAME)
    with writing_session(rig.engine) as session, pytest.raises(SumStageClosed):
        rig.store().finish(session, NAME)


def test_sum_whose_opening_was_rolled_back_can_still_be_opened(rig: SumStoreRig) -> None:
    store, devices = sum_at_stage(rig, "unmask")
    for device in devices:
        deliver(store, device)

    def killed_before_the_commit() -> None:
        with writing_session(rig.engine) as session:
            store.finish(session, NAME)
            raise Killed

    with pytest.raises(Killed):
        killed_before_the_commit()
    assert (rig.store().stages.opened(NAME).vector == plain_sum(devices, range(4))).all()


def test_storage_failure_after_the_commit_keeps_the_receipt(rig: SumStoreRig, monkeypatch: pytest.MonkeyPatch) -> None:
    store, devices = sum_at_stage(rig, "masked")

    def down(*_: object) -> None:
        raise StorageUnavailable("ConnectTimeoutError")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFolder, "delete", down)
        assert [deliver(store, device) for device in devices] == [False] * 4
        store.stages.step(NAME)
        for device in devices:
            device.receive(answer(store, device))
            deliver(store, device)
        assert (store.stages.opened(NAME).vector == plain_sum(devices, range(4))).all()
        store.stages.fail(NAME, "cancelled")
        assert store.stage(NAME)[0] == "failed"
        assert len(rig.files()) == 4
    store.clear()
    assert len(rig.files()) == 3, "those that no row names go when they are an hour old"


def test_kill_between_a_sums_file_and_its_commit_counts_the_vector_once(
    rig: SumStoreRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, devices = sum_at_stage(rig, "masked")
    deliver(store, devices[0])

    def killed(path: Path, content: bytes) -> None:
        write_durably(path, content)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(local_folder, "write_durably", killed)
        with pytest.raises(Killed):
            deliver(store, devices[1])
    assert rig.files() == [".sum", ".sum"], "one of them nobody names"
    for device in devices[1:]:
        assert deliver(rig.store(), device) is False
    assert rig.store().stages.step(NAME) == "unmask"
    for device in devices:
        device.receive(answer(store, device))
        deliver(store, device)
    assert (rig.store().stages.opened(NAME).vector == plain_sum(devices, range(4))).all()


def test_leftovers_of_a_kill_are_deleted_after_an_hour(rig: SumStoreRig) -> None:
    store, devices = sum_at_stage(rig, "masked")
    deliver(store, devices[0])
    for name in ("old.coming", "young.coming", "old.sum"):
        path = rig.folder / "sums" / name
        path.write_bytes(b"x")
    for path in (rig.folder / "sums").iterdir():
        if not path.name.startswith("young"):
            os.utime(path, (0, path.stat().st_mtime - SWEEP_AGE_SEC - 60))
    rig.store()
    assert rig.files() == [".coming", ".sum"]
    assert deliver(rig.store(), devices[1]) is False


def test_stage_ends_when_complete_or_at_its_deadline(rig: SumStoreRig) -> None:
    store, devices = sum_at_stage(rig, "masked", cohort=5)
    for device in devices[1:]:
        deliver(store, device)
    assert store.stages.step(NAME) == "masked"
    rig.clock.go_on(119.0)  # in which a device trains: twice as long as any other
    assert store.stages.step(NAME) == "masked"
    rig.clock.go_on(1.0)
    assert store.stages.step(NAME) == "unmask"
    assert (store.stage(NAME)[1] - rig.clock()).total_seconds() == 60.0
    assert not store.stages.poll(NAME).is_due
    for device in devices[1:]:
        device.receive(answer(store, device))
        deliver(store, device)
    assert store.stages.poll(NAME).is_due
    assert (store.stages.opened(NAME).vector == plain_sum(devices, range(1, 5))).all()


@pytest.mark.parametrize("stage", ["keys", "shares", "masked", "unmask"])
def test_stage_ends_if_the_clock_was_set_back_by_over_five_minutes(rig: SumStoreRig, stage: str) -> None:
    """Regression: each stage was assumed to last as long as the longest allowed."""
    if stage == "keys":
        store = rig.store()
        with writing_session(rig.engine) as session:
            store.begin_within(session, terms(4), stage_sec=60.0, keys_sec=60.0 * times_beside_keys(terms(4)))
    else:
        store, _ = sum_at_stage(rig, stage)
    rig.clock.go_on(-299.0)
    assert not store.stages.poll(NAME).is_due
    rig.clock.go_on(-2.0)
    assert store.stages.poll(NAME).is_due


def test_sum_with_too_few_devices_at_a_deadline_fails_with_a_reason(rig: SumStoreRig) -> None:
    store, devices = sum_at_stage(rig, "masked", cohort=5)
    for device in devices[:2]:
        deliver(store, device)
    rig.clock.go_on(120.0)
    assert store.stages.step(NAME) == "failed"
    assert store.under_way() == []
    with reading_session(rig.engine) as session:
        row = session.get_one(SecureSumRow, NAME)
        assert (row.total, "2 members sent a masked vector; 3 are needed." in row.record) == (None, True)
    assert rig.files() == []
    with pytest.raises(SumStageClosed):
        deliver(store, devices[3])


def test_sum_with_too_few_shares_at_the_deadline_is_not_opened(rig: SumStoreRig) -> None:
    store, devices = sum_at_stage(rig, "unmask", cohort=5)
    for device in devices[:2]:
        deliver(store, device)
    rig.clock.go_on(60.0)
    assert store.stages.poll(NAME).is_due
    with pytest.raises(SumFailed, match="2 of the 3 shares"):
        store.stages.opened(NAME)
    assert store.stage(NAME)[0] == "failed"


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_running_sum_lost_on_disk_fails_the_sum(rig: SumStoreRig, harm: str) -> None:
    store, devices = sum_at_stage(rig, "unmask")
    for device in devices:
        deliver(store, device)
    for file in (rig.folder / "sums").glob("*.sum"):
        file.unlink() if harm == "missing" else file.write_bytes(bytes(160))
    with pytest.raises(SumFailed, match=harm):
        store.stages.opened(NAME)
    assert store.stage(NAME)[0] == "failed"


def test_refused_vector_leaves_no_file_or_trace(rig: SumStoreRig) -> None:
    store, devices = sum_at_stage(rig, "masked")
    payload = devices[0].payload or b""
    for wrong in (payload + b"x", payload[:-1]):
        with pytest.raises(SumMessageRefused):
            add_masked(store.exchange, NAME, devices[0].pseudonym, wrong)
    assert rig.files() == []
    assert deliver(store, devices[0]) is False
    assert rig.files() == [".sum"]


def test_many_devices_at_once_are_each_counted_once(rig: SumStoreRig) -> None:
    store, devices = sum_at_stage(rig, "masked", cohort=8)
    failures: list[BaseException] = []

    def upload(device: SumDevice) -> None:
        try:
            deliver(store, device)
            assert deliver(rig.store(), device) is True
        except BaseException as failed:
            failures.append(failed)

    threads = [threading.Thread(target=upload, args=(device,)) for device in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.stages.step(NAME) == "unmask"
    for device in devices:
        device.receive(answer(store, device))
        deliver(store, device)
    assert (store.stages.opened(NAME).vector == plain_sum(devices, range(8))).all()
    assert rig.files() == [".sum"]


def test_rows_and_files_never_hold_a_single_devices_vector(rig: SumStoreRig) -> None:
    store, devices = sum_at_stage(rig, "masked")
    for device in devices:
        deliver(store, device)
        held = b"".join(path.read_bytes() for path in rig.folder.rglob("*") if path.is_file())
        for other in devices:
            assert other.vector.tobytes()[32:64] not in held
    store.stages.step(NAME)
    for device in devices:
        device.receive(answer(store, device))
        deliver(store, device)
    opened = store.stages.opened(NAME)
    held = b"".join(path.read_bytes() for path in rig.folder.rglob("*") if path.is_file())
    assert opened.vector.tobytes() not in held, "the opened sum is handed on, not stored"
    assert np.frombuffer((rig.folder / "sums").glob("*.sum").__next__().read_bytes(), "<u4").size == 40


def test_unknown_or_already_used_sum_names_are_refused(rig: SumStoreRig) -> None:
    store, _ = rig.begun(4)
    with pytest.raises(ValueError, match=r"terms\.round: there is a secure sum round-1"):
        store.begin(terms(4), stage_sec=60.0)
    with pytest.raises(ValueError, match="stage_sec"):
        store.begin(terms(4, round="round-2"), stage_sec=0.0)
    with pytest.raises(UnknownSum):
        store.stage("round-2")
    with pytest.raises(UnknownSum):
        store.stages.step("round-2")


def test_database_cost_of_a_message_is_independent_of_cohort_size(
    rig: SumStoreRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []

    def received(*arguments: Any) -> None:
        statements.append(arguments[2])

    def asked(connection: Connection, text: str, given: Sequence[Any] = ()) -> StatementAnswer:
        statements.append(text)
        return ask_sqlite(connection, text, given)

    monkeypatch.setattr(prepared, "ask_sqlite", asked)

    def of_one_round_trip(cohort: int, name: str) -> list[list[str]]:
        agreed = terms(cohort, length=40, round=name)
        store = rig.store()
        store.begin(agreed, stage_sec=60.0)
        devices = [SumDevice.new(n, agreed, random_vector(40)) for n in range(cohort)]
        for device in devices:
            device.start()
        counted = []
        for stage in ("keys", "shares", "complaints", "masked", "unmask"):
            *others, last = devices
            for device in others:
                deliver(store, device, name)
            statements.clear()
            deliver(store, last, name)
            if stage != "unmask":
                assert store.stages.step(name) != stage
                answer(store, last, name)
            counted.append([one.split()[0] for one in statements])
            assert "INSERT" in counted[-1], "the message itself was heard"
            for device in devices:
                if stage != "unmask":
                    device.receive(answer(store, device, name))
        assert (store.stages.opened(name).vector == plain_sum(devices, range(cohort))).all()
        return counted

    event.listen(rig.engine, "before_cursor_execute", received)
    try:
        assert of_one_round_trip(4, "round-1") == of_one_round_trip(12, "round-2")
    finally:
        event.remove(rig.engine, "before_cursor_execute", received)
