"""Sending updates with crashes at every point: each is paid for once and sent as the same bytes, or dropped."""

from __future__ import annotations

import pytest

from backend.federation.rounds import plain
from device_app.training.computation import Computation
from device_app.training.delivery import RETRY_SEC
from tests.doubles.flaky_network import SYSTEMS_TRIED, FlakyNetwork, each_system, open_round, state_of
from tests.doubles.kills import Killed
from tests.doubles.round_rig import BackendRig, DeviceRig


@each_system
def test_lost_connection_keeps_the_update_and_resends_the_same_bytes(
    backend: BackendRig, device: DeviceRig, network: FlakyNetwork, system: str
) -> None:
    open_round(backend, system, cohort=2, minimum=1)
    network.lose_answers = True
    assert device.trainer.step().state == "waiting"
    assert state_of(device) == "joined"
    network.lose_answers = False
    device.trainer.step()
    assert len(network.uploads) == 1, "not due yet"
    backend.clock.go_on(RETRY_SEC)
    device.trainer.step()

    assert len(network.uploads) == 2
    assert network.uploads[0] == network.uploads[1]
    assert state_of(device) == "uploaded"
    assert backend.coordinator.status("round-1").uploaded == 1
    assert device.ledger.spent_today("training") == SYSTEMS_TRIED[system], "charged once"


@each_system
def test_upload_interrupted_by_a_kill_resends_the_same_bytes(
    backend: BackendRig, device: DeviceRig, network: FlakyNetwork, system: str
) -> None:
    open_round(backend, system)
    network.kill_at_upload = True
    with pytest.raises(Killed):
        device.trainer.step()
    device.stop()
    network.kill_at_upload = False
    device.start()
    device.trainer.step()

    assert len(network.uploads) == 2
    assert network.uploads[0] == network.uploads[1]
    assert state_of(device) == "uploaded"
    assert backend.coordinator.status("round-1").uploaded == 1
    assert device.ledger.spent_today("training") == SYSTEMS_TRIED[system]


@each_system
def test_device_killed_between_payment_and_storage_has_neither(
    backend: BackendRig, device: DeviceRig, network: FlakyNetwork, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    open_round(backend, system)

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(device.stores.outbox, "put", killed)
        with pytest.raises(Killed):
            device.trainer.step()
    device.stop()
    device.start()
    outcome = device.trainer.step()

    assert device.ledger.spent_today("training") == 0
    assert network.uploads == []
    assert state_of(device) == "failed"
    assert "has already taken part" in str(outcome.why), "its place in this round is lost, the next round has another"


def test_update_is_dropped_after_its_round_ended(backend: BackendRig, device: DeviceRig, network: FlakyNetwork) -> None:
    open_round(backend, seconds=30)
    network.lose_answers = True
    device.trainer.step()
    network.lose_answers = False
    backend.clock.go_on(31)
    device.trainer.step()

    assert state_of(device) == "failed"
    assert device.stores.outbox.waiting() == []
    assert len(network.uploads) == 1


def test_late_update_is_refused_with_a_recorded_reason(
    backend: BackendRig, device: DeviceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_round(backend, cohort=5, minimum=1)
    compute = Computation.update

    def slowly(computation: Computation) -> object:
        backend.clock.go_on(61)
        return compute(computation)

    monkeypatch.setattr(Computation, "update", slowly)
    outcome = device.trainer.step()

    assert outcome.state == "failed"
    mine = device.stores.participations.get("round-1")
    assert mine is not None
    assert (mine.state, mine.sent_bytes) == ("failed", 0)
    assert "late" in str(mine.detail)


def test_update_that_arrives_after_a_full_cohort_is_not_needed(
    backend: BackendRig, device: DeviceRig, network: FlakyNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_round(backend, cohort=2, minimum=1)
    compute = Computation.update

    def unheard(computation: Computation) -> object:
        network.cut_off = True
        return compute(computation)

    with monkeypatch.context() as patch:
        patch.setattr(Computation, "update", unheard)
        assert device.trainer.step().state == "waiting"
    network.cut_off = False
    monkeypatch.setattr(plain, "count_uploaded", lambda session, row: row.cohort)
    backend.clock.go_on(RETRY_SEC)
    device.trainer.step()

    mine = device.stores.participations.get("round-1")
    assert mine is not None
    assert (mine.state, mine.sent_bytes) == ("not needed", 0)
    assert "complete" in str(mine.detail)
    assert device.stores.outbox.waiting() == []


def test_paused_device_holds_its_update_until_resumed(
    backend: BackendRig, device: DeviceRig, network: FlakyNetwork
) -> None:
    open_round(backend, cohort=2, minimum=1)
    network.lose_answers = True
    device.trainer.step()
    network.lose_answers = False
    device.paused = True
    backend.clock.go_on(RETRY_SEC)
    device.trainer.step()
    assert len(network.uploads) == 1
    device.paused = False
    device.trainer.step()

    assert len(network.uploads) == 2
    assert state_of(device) == "uploaded"


@each_system
def test_switching_training_off_drops_a_waiting_update(
    backend: BackendRig, device: DeviceRig, network: FlakyNetwork, system: str
) -> None:
    open_round(backend, system, cohort=2, minimum=1)
    network.lose_answers = True
    device.trainer.step()
    network.lose_answers = False
    spent = device.ledger.spent_today("training")
    before = device.privacy
    device.privacy = before.model_copy(update={"training": False, "counting": False})
    requests = device.stores.byte_log.entries(1).total
    backend.clock.go_on(RETRY_SEC)
    device.trainer.step()
    assert (len(network.uploads), device.stores.byte_log.entries(1).total) == (1, requests)
    assert (state_of(device), device.stores.outbox.waiting()) == ("declined", [])
    assert device.ledger.spent_today("training") == spent, "it may have arrived unheard"

    device.privacy = before
    device.trainer.step()
    assert len(network.uploads) == 1, "switching on again sends nothing old"
