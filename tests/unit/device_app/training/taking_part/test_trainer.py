"""A device's training against the real routes in one process."""

from __future__ import annotations

import numpy as np
import pytest

from device_app.privacy.protections.local_laplace import LaplaceProtection
from device_app.store.participations import CountLog
from tests.doubles.flaky_network import SYSTEMS_TRIED, FlakyNetwork, each_system, open_round, state_of
from tests.doubles.round_rig import BackendRig, DeviceRig


@each_system
def test_device_takes_part_and_receives_the_next_release(backend: BackendRig, device: DeviceRig, system: str) -> None:
    open_round(backend, system)
    outcome = device.trainer.step()

    assert (outcome.state, outcome.why) == ("uploaded", None)
    assert device.trainer.stage is None
    mine = device.stores.participations.get("round-1")
    assert mine is not None
    assert (mine.state, mine.system, mine.epsilon) == ("uploaded", system, SYSTEMS_TRIED[system])
    assert mine.sent_bytes == backend.coordinator.status("round-1").received_bytes > 0
    assert device.ledger.spent_today("training") == SYSTEMS_TRIED[system]
    assert device.stores.outbox.waiting() == []

    backend.coordinator.step()
    assert device.sync()
    assert device.release() == "r2"
    assert device.trainer.step().state == "idle"
    assert state_of(device) == "applied"


def test_uploaded_update_is_clipped_and_noisy(
    backend: BackendRig, device: DeviceRig, network: FlakyNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear = {}
    seal = LaplaceProtection.seal

    def recording(self: LaplaceProtection, clipped: object, **rest: object) -> object:
        clear.update(clipped.tensors)  # type: ignore[attr-defined]
        return seal(self, clipped, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(LaplaceProtection, "seal", recording)
    open_round(backend)
    device.trainer.step()
    from safetensors.numpy import load

    sent = load(network.uploads[0])
    assert sent.keys() == clear.keys() == {"g.basis_keys", "g.basis_values"}
    for name, value in clear.items():
        assert np.abs(value).max() <= 0.1
        noise = sent[name] - value
        assert (noise != 0).all()
        assert 0.004 < np.abs(noise).mean() < 0.03, "the mean absolute value of Laplace(0, 0.01) is 0.01"


def test_device_joins_a_round_only_once(backend: BackendRig, device: DeviceRig) -> None:
    open_round(backend, cohort=5)
    device.trainer.step()
    outcome = device.trainer.step()

    assert outcome.state == "idle"
    assert "has already taken part" in str(outcome.why)
    assert backend.coordinator.status("round-1").joined == 1


def test_restored_device_skips_rounds_opened_before_the_restore(backend: BackendRig, device: DeviceRig) -> None:
    """It may have taken part in one of them on an earlier day, whose budget isn't today's."""
    open_round(backend, cohort=5)
    backend.clock.go_on(60)
    CountLog(device.stores.database).pass_over(backend.clock())  # as `charge_for_restored_copy` does
    outcome = device.trainer.step()
    assert (outcome.state, backend.coordinator.status("round-1").joined) == ("idle", 0)
    assert "has already taken part" in str(outcome.why)

    backend.clock.go_on(600)
    backend.coordinator.step()
    open_round(backend, cohort=5)
    assert device.trainer.step().state == "uploaded"
    assert backend.coordinator.status("round-2").joined == 1


def test_backend_outage_is_reported_as_an_outcome_not_raised(device: DeviceRig, network: FlakyNetwork) -> None:
    network.cut_off = True
    outcome = device.trainer.step()

    assert outcome.state == "idle"
    assert "does not answer" in str(outcome.why)


def test_log_names_every_request_of_a_round(backend: BackendRig, device: DeviceRig) -> None:
    before = device.stores.byte_log.entries(1).total
    open_round(backend)
    device.trainer.step()
    page = device.stores.byte_log.entries(1)
    lines = [(entry.method, entry.url.removeprefix("http://backend")) for entry in page.rows[: page.total - before]]

    assert [method for method, _ in reversed(lines)] == ["GET", "POST", "PUT"]
    assert lines[-1][1] == "/v1/rounds/current"
    assert lines[-2][1] == "/v1/rounds/check-in"
    assert lines[0][1].startswith("/v1/rounds/round-1/updates/")


def test_ranker_round_trains_features_and_keeps_the_recall_model(backend: BackendRig, device: DeviceRig) -> None:
    open_round(backend, "small_ranker/local/mean")
    device.trainer.step()
    backend.coordinator.step()
    before, after = (backend.releases.manifest(one) for one in ("r1", "r2"))
    moved = {
        name: np.abs(backend.releases.weights(after, name)[key] - value).max()
        for name in before.models
        for key, value in backend.releases.weights(before, name).items()
    }

    assert moved["recall"] == moved["ranker.cosine"] == 0
    assert moved["ranker.features"] > 0
