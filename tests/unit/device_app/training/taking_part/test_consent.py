"""When a device does not train: its reader did not agree, is reading, or accepts less than is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backend.federation.systems import SYSTEMS
from device_app.settings import PrivacySettings
from device_app.training.computation import Computation
from tests.doubles.round_rig import TRAINS, BackendRig, DeviceRig
from tests.doubles.unsteady import EPSILON, Unsteady, opened, state_of


@pytest.mark.parametrize(
    ("privacy", "why"),
    [
        (PrivacySettings(counting=False), "has not switched training on"),
        (PrivacySettings(training=True, counting=False), "budget"),
    ],
)
def test_a_device_whose_reader_did_not_agree_sends_nothing(
    backend: BackendRig, device: DeviceRig, privacy: PrivacySettings, why: str
) -> None:
    opened(backend)
    requests = device.stores.byte_log.entries(1).total
    device.ledger.own = privacy
    outcome = device.trainer.step()

    assert outcome.state == "idle"
    assert why in str(outcome.why) == str(device.trainer.why_not())
    assert device.stores.byte_log.entries(1).total == requests
    assert backend.coordinator.status("round-1").joined == 0


def test_a_paused_device_sends_nothing(backend: BackendRig, device: DeviceRig) -> None:
    opened(backend)
    device.paused = True

    assert "paused" in str(device.trainer.step().why)
    assert backend.coordinator.status("round-1").joined == 0


@pytest.mark.parametrize(
    ("privacy", "why"),
    [
        (TRAINS.model_copy(update={"weakest_scale_to_clip": 0.5}), "weaker than this reader accepts"),
        (TRAINS.model_copy(update={"epsilon_per_day_training": EPSILON - 1}), "left today"),
    ],
)
def test_an_offer_below_what_the_reader_accepts_is_declined_and_written_down(
    backend: BackendRig, device: DeviceRig, privacy: PrivacySettings, why: str
) -> None:
    opened(backend)
    device.ledger.own = privacy
    outcome = device.trainer.step()

    assert outcome.state == "declined"
    mine = device.stores.participations.get("round-1")
    assert mine is not None
    assert (mine.state, mine.epsilon, mine.sent_bytes) == ("declined", 0.0, 0)
    assert why in str(mine.detail)
    assert device.ledger.spent_today("training") == 0
    assert device.trainer.step().state == "idle", "a declined round is not asked for again"


def test_a_reader_with_nothing_to_learn_from_does_not_check_in(
    tmp_path: Path, backend: BackendRig, network: Unsteady
) -> None:
    fresh = DeviceRig(tmp_path / "fresh" / "device.sqlite", backend.clock, network)
    fresh.sync()
    opened(backend)
    outcome = fresh.trainer.step()
    fresh.stop()

    assert "0 clicks" in str(outcome.why)
    assert backend.coordinator.status("round-1").joined == 0


def test_a_ranker_with_a_feature_this_program_does_not_compute_is_not_trained(
    backend: BackendRig, device: DeviceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(backend, "small_ranker")
    monkeypatch.setattr("device_app.training.computation.FEATURES", {"recency": None})
    outcome = device.trainer.step()

    assert outcome.state == "declined"
    assert "no gradient of 'ranker.features'" in str(outcome.why)
    assert device.ledger.spent_today("training") == 0


@pytest.mark.parametrize(
    ("system", "model"), [("uni_fedrec_as_printed", "ranker.features"), ("small_ranker", "recall")]
)
def test_a_task_on_a_model_it_is_not_for_is_declined(
    backend: BackendRig, device: DeviceRig, monkeypatch: pytest.MonkeyPatch, system: str, model: str
) -> None:
    architecture = backend.releases.require_current().models[model].architecture
    wrong = replace(SYSTEMS[system], model=model, architecture=architecture)
    monkeypatch.setitem(backend.coordinator._systems, system, wrong)
    opened(backend, system)
    outcome = device.trainer.step()

    assert outcome.state == "declined"
    assert f"no gradient of '{model}' for '{wrong.task}'" in str(outcome.why)
    assert device.ledger.spent_today("training") == 0


@pytest.mark.parametrize("at", ["update", "shapes"])
def test_a_pause_counts_until_the_update_is_paid_for(
    backend: BackendRig, device: DeviceRig, network: Unsteady, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    opened(backend)
    stage = getattr(Computation, at)

    def pause_meanwhile(computation: Computation) -> object:
        device.paused = True
        return stage(computation)

    monkeypatch.setattr(Computation, at, pause_meanwhile)
    outcome = device.trainer.step()

    assert outcome.state == "declined"
    assert "paused" in str(outcome.why)
    assert (state_of(device), network.uploads) == ("declined", [])
    assert device.ledger.spent_today("training") == 0


def test_a_device_whose_reader_is_reading_waits(backend: BackendRig, device: DeviceRig) -> None:
    device.idle_sec = 20.0
    device.stop()
    device.start()
    opened(backend)
    device.stores.clicks.add("newsroom:0001", None, backend.clock())
    backend.clock.go_on(5)
    assert "reading just now" in str(device.trainer.step().why) == str(device.trainer.why_not())
    backend.clock.go_on(16)
    device.stores.impressions.record("one more", ["newsroom:0002"], backend.clock())
    assert "reading just now" in str(device.trainer.step().why)
    backend.clock.go_on(21)

    assert device.trainer.step().state == "uploaded"
