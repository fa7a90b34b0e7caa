"""When a device does not train: its reader did not agree, or requires more protection than offered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backend.federation.systems import COMPOSED
from device_app.settings import PrivacySettings
from device_app.training.computation import Computation
from tests.doubles.flaky_network import EPSILON, FlakyNetwork, open_round, state_of
from tests.doubles.round_rig import TRAINS, BackendRig, DeviceRig


@pytest.mark.parametrize(
    ("privacy", "why"),
    [
        (PrivacySettings(counting=False), "training is not switched on"),
        (PrivacySettings(training=True, counting=False), "limit"),
    ],
)
def test_device_whose_reader_did_not_agree_to_training_sends_nothing(
    backend: BackendRig, device: DeviceRig, privacy: PrivacySettings, why: str
) -> None:
    open_round(backend)
    requests = device.stores.byte_log.entries(1).total
    device.privacy = privacy
    outcome = device.trainer.step()

    assert outcome.state == "idle"
    assert why in str(outcome.why) == str(device.trainer.why_not())
    assert device.stores.byte_log.entries(1).total == requests
    assert backend.coordinator.status("round-1").joined == 0


def test_paused_device_sends_nothing(backend: BackendRig, device: DeviceRig) -> None:
    open_round(backend)
    device.paused = True

    assert "paused" in str(device.trainer.step().why)
    assert backend.coordinator.status("round-1").joined == 0


@pytest.mark.parametrize(
    ("privacy", "why"),
    [
        (TRAINS.model_copy(update={"weakest_scale_to_clip": 0.5}), "weaker than the settings require"),
        (TRAINS.model_copy(update={"epsilon_per_day_training": EPSILON - 1}), "left today"),
    ],
)
def test_offer_below_the_readers_requirements_is_declined_and_recorded(
    backend: BackendRig, device: DeviceRig, privacy: PrivacySettings, why: str
) -> None:
    open_round(backend)
    device.privacy = privacy
    outcome = device.trainer.step()

    assert outcome.state == "declined"
    mine = device.stores.participations.get("round-1")
    assert mine is not None
    assert (mine.state, mine.epsilon, mine.sent_bytes) == ("declined", 0.0, 0)
    assert why in str(mine.detail)
    assert device.ledger.spent_today("training") == 0
    assert device.trainer.step().state == "idle", "a declined round is not asked for again"


def test_reader_without_training_data_takes_part_like_any_other(
    tmp_path: Path, backend: BackendRig, network: FlakyNetwork
) -> None:
    fresh = DeviceRig(tmp_path / "fresh" / "device.sqlite", backend.clock, network)
    fresh.sync()
    open_round(backend)
    outcome = fresh.trainer.step()
    spent = fresh.ledger.spent_today("training")
    fresh.stop()

    assert (outcome.state, spent) == ("uploaded", EPSILON)


def test_ranker_with_an_unsupported_feature_is_not_trained(
    backend: BackendRig, device: DeviceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_round(backend, "small_ranker/local/mean")
    monkeypatch.setattr("device_app.training.computation.FEATURES", {"recency": None})
    outcome = device.trainer.step()

    assert outcome.state == "declined"
    assert "no gradient of 'ranker.features'" in str(outcome.why)
    assert device.ledger.spent_today("training") == 0


@pytest.mark.parametrize(
    ("system", "model"), [("uni_fedrec", "ranker.features"), ("small_ranker/local/mean", "recall")]
)
def test_task_on_an_unsuitable_model_is_declined(
    backend: BackendRig, device: DeviceRig, monkeypatch: pytest.MonkeyPatch, system: str, model: str
) -> None:
    architecture = backend.releases.require_current().models[model].architecture
    wrong = replace(COMPOSED[system], model=model, architecture=architecture)
    monkeypatch.setitem(backend.coordinator._systems, system, wrong)
    open_round(backend, system)
    outcome = device.trainer.step()

    assert outcome.state == "declined"
    assert f"no gradient of '{model}' for '{wrong.task}'" in str(outcome.why)
    assert device.ledger.spent_today("training") == 0


@pytest.mark.parametrize("at", ["update", "shapes"])
def test_pause_takes_effect_until_the_update_is_paid_for(
    backend: BackendRig, device: DeviceRig, network: FlakyNetwork, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    open_round(backend)
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
