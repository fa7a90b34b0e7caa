"""A device's training against the real routes in one process, with crashes at every point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import numpy as np
import pytest

from backend.federation.systems import SYSTEMS
from device_app.privacy.updates import LaplaceProtection
from device_app.settings import PrivacySettings
from device_app.training.delivery import RETRY_SEC
from device_app.uplink.in_process import InProcess
from device_app.wire.protections import LocalLaplace
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW, SyntheticPool, synthetic_pool
from tests.doubles.round_rig import BASIS, DIM, FEATURES, TRAINS, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader

EPSILON = LocalLaplace().epsilon_per_upload(2 * BASIS * DIM)
SYSTEMS_TRIED = {
    "uni_fedrec": EPSILON,
    "small_ranker": LocalLaplace(clip=0.01, scale=0.1).epsilon_per_upload(1 + len(FEATURES)),
}
"""By name, with the price of an upload of the small release: the recall model's, and the ranker's with features."""

each_system = pytest.mark.parametrize("system", SYSTEMS_TRIED)


class Killed(BaseException):
    """Stands for a kill: no handler may see it."""


class Unsteady(httpx.BaseTransport):
    """The backend, which can be cut off, or killed just after it took an upload."""

    def __init__(self, inner: httpx.BaseTransport) -> None:
        self.inner, self.cut_off, self.lose_answers, self.kill_at_upload = inner, False, False, False
        self.uploads: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.cut_off:
            raise httpx.ConnectError("cut off", request=request)
        if request.method == "PUT":
            self.uploads.append(request.read())
            if self.kill_at_upload:
                raise Killed
            response = self.inner.handle_request(request)
            if self.lose_answers:
                raise httpx.ReadError("the answer was lost", request=request)
            return response
        return self.inner.handle_request(request)


@pytest.fixture(scope="module")
def pool() -> SyntheticPool:
    return synthetic_pool(240, dim=DIM)


@pytest.fixture
def backend(tmp_path: Path) -> BackendRig:
    (tmp_path / "backend").mkdir()
    return BackendRig.make(tmp_path / "backend", StillClock(NOW + timedelta(days=1)))


@pytest.fixture
def network(backend: BackendRig) -> Iterator[Unsteady]:
    inner = InProcess(backend.app)
    yield Unsteady(inner)
    inner.close()


@pytest.fixture
def device(tmp_path: Path, backend: BackendRig, network: Unsteady, pool: SyntheticPool) -> Iterator[DeviceRig]:
    device = DeviceRig(tmp_path / "device" / "device.sqlite", backend.clock, network)
    device.sync()
    device.read(simulated_reader(pool, np.random.default_rng(1)), pool)
    yield device
    device.stop()


def opened(
    backend: BackendRig, system: str = "uni_fedrec", *, cohort: int = 1, minimum: int = 1, seconds: float = 60.0
) -> None:
    backend.coordinator.open_round(system, cohort=cohort, cohort_minimum=minimum, seconds=seconds)


def state_of(device: DeviceRig, round_id: str = "round-1") -> str:
    found = device.shelves.participations.get(round_id)
    assert found is not None
    return found.state


@each_system
def test_a_device_takes_part_and_the_next_release_reaches_it(
    backend: BackendRig, device: DeviceRig, system: str
) -> None:
    opened(backend, system)
    outcome = device.trainer.step()

    assert (outcome.state, outcome.why) == ("uploaded", None)
    assert device.trainer.stage is None
    mine = device.shelves.participations.get("round-1")
    assert mine is not None
    assert (mine.state, mine.system, mine.epsilon) == ("uploaded", system, SYSTEMS_TRIED[system])
    assert mine.sent_bytes == backend.coordinator.status("round-1").received_bytes > 0
    assert device.ledger.spent_today("training") == SYSTEMS_TRIED[system]
    assert device.shelves.outbox.waiting() == []

    backend.coordinator.step()
    assert device.sync()
    assert device.release() == "r2"
    assert device.trainer.step().state == "idle"
    assert state_of(device) == "applied"


def test_what_is_uploaded_is_noisy_and_clipped_and_not_the_gradient(
    backend: BackendRig, device: DeviceRig, network: Unsteady, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear = {}
    seal = LaplaceProtection.seal

    def overhear(self: LaplaceProtection, clipped: object, **rest: object) -> object:
        clear.update(clipped.tensors)  # type: ignore[attr-defined]
        return seal(self, clipped, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(LaplaceProtection, "seal", overhear)
    opened(backend)
    device.trainer.step()
    from safetensors.numpy import load

    sent = load(network.uploads[0])
    assert sent.keys() == clear.keys() == {"g.basis_keys", "g.basis_values"}
    for name, value in clear.items():
        assert np.abs(value).max() <= 0.1
        noise = sent[name] - value
        assert (noise != 0).all()
        assert 0.004 < np.abs(noise).mean() < 0.03, "the mean absolute value of Laplace(0, 0.01) is 0.01"


def test_a_round_is_joined_once(backend: BackendRig, device: DeviceRig) -> None:
    opened(backend, cohort=5)
    device.trainer.step()
    outcome = device.trainer.step()

    assert outcome.state == "idle"
    assert "has had its part" in str(outcome.why)
    assert backend.coordinator.status("round-1").joined == 1


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
    requests = device.shelves.byte_log.entries(1).total
    device.ledger.settings = privacy
    outcome = device.trainer.step()

    assert outcome.state == "idle"
    assert why in str(outcome.why) == str(device.trainer.why_not())
    assert device.shelves.byte_log.entries(1).total == requests
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
    device.ledger.settings = privacy
    outcome = device.trainer.step()

    assert outcome.state == "declined"
    mine = device.shelves.participations.get("round-1")
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


@each_system
def test_a_lost_connection_keeps_the_update_and_sends_the_same_bytes_later(
    backend: BackendRig, device: DeviceRig, network: Unsteady, system: str
) -> None:
    opened(backend, system, cohort=2, minimum=1)
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
def test_a_kill_while_sending_is_made_good_after_the_restart_with_the_same_bytes(
    backend: BackendRig, device: DeviceRig, network: Unsteady, system: str
) -> None:
    opened(backend, system)
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
def test_a_kill_between_paying_and_keeping_undoes_both(
    backend: BackendRig, device: DeviceRig, network: Unsteady, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    opened(backend, system)

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(device.shelves.outbox, "put", killed)
        with pytest.raises(Killed):
            device.trainer.step()
    device.stop()
    device.start()
    outcome = device.trainer.step()

    assert device.ledger.spent_today("training") == 0
    assert network.uploads == []
    assert state_of(device) == "failed"
    assert "has had its part" in str(outcome.why), "its place in this round is lost, the next round has another"


def test_an_update_that_can_no_longer_be_sent_is_given_up(
    backend: BackendRig, device: DeviceRig, network: Unsteady
) -> None:
    opened(backend, seconds=30)
    network.lose_answers = True
    device.trainer.step()
    network.lose_answers = False
    backend.clock.go_on(31)
    device.trainer.step()

    assert state_of(device) == "failed"
    assert device.shelves.outbox.waiting() == []
    assert len(network.uploads) == 1


def test_a_backend_that_is_down_is_an_outcome_and_no_error(device: DeviceRig, network: Unsteady) -> None:
    network.cut_off = True
    outcome = device.trainer.step()

    assert outcome.state == "idle"
    assert "does not answer" in str(outcome.why)


def test_a_late_update_is_refused_and_the_reason_is_kept(
    backend: BackendRig, device: DeviceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(backend, cohort=5, minimum=1)
    compute = device.trainer.computation.update

    def slowly(*args: object) -> object:
        backend.clock.go_on(61)
        return compute(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(device.trainer.computation, "update", slowly)
    outcome = device.trainer.step()

    assert outcome.state == "failed"
    mine = device.shelves.participations.get("round-1")
    assert mine is not None
    assert (mine.state, mine.sent_bytes) == ("failed", 0)
    assert "late" in str(mine.detail)


def test_the_log_names_every_request_of_a_round_in_words(backend: BackendRig, device: DeviceRig) -> None:
    before = device.shelves.byte_log.entries(1).total
    opened(backend)
    device.trainer.step()
    page = device.shelves.byte_log.entries(1)
    lines = [(entry.method, entry.url.removeprefix("http://backend")) for entry in page.rows[: page.total - before]]

    assert [method for method, _ in reversed(lines)] == ["GET", "POST", "PUT"]
    assert lines[-1][1] == "/v1/rounds/current"
    assert lines[-2][1] == "/v1/rounds/check-in"
    assert lines[0][1].startswith("/v1/rounds/round-1/updates/")


def test_the_ranker_learns_from_the_features_of_what_was_clicked_and_the_recall_model_stays(
    backend: BackendRig, device: DeviceRig
) -> None:
    opened(backend, "small_ranker")
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


def test_a_ranker_with_a_feature_this_program_does_not_compute_is_not_trained(
    backend: BackendRig, device: DeviceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(backend, "small_ranker")
    monkeypatch.setattr("device_app.training.computation.FEATURES", {"recency": None})
    outcome = device.trainer.step()

    assert outcome.state == "declined"
    assert "no gradient of 'ranker.features'" in str(outcome.why)
    assert device.ledger.spent_today("training") == 0


@pytest.mark.parametrize(("system", "model"), [("uni_fedrec", "ranker.features"), ("small_ranker", "recall")])
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
    stage = getattr(device.trainer.computation, at)

    def pause_meanwhile(*args: object) -> object:
        device.paused = True
        return stage(*args)

    monkeypatch.setattr(device.trainer.computation, at, pause_meanwhile)
    outcome = device.trainer.step()

    assert outcome.state == "declined"
    assert "paused" in str(outcome.why)
    assert (state_of(device), network.uploads) == ("declined", [])
    assert device.ledger.spent_today("training") == 0


def test_a_paused_device_holds_back_what_waits_and_sends_it_when_it_goes_on(
    backend: BackendRig, device: DeviceRig, network: Unsteady
) -> None:
    opened(backend, cohort=2, minimum=1)
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


def test_a_device_whose_reader_is_reading_waits(backend: BackendRig, device: DeviceRig) -> None:
    device.idle_sec = 20.0
    device.stop()
    device.start()
    opened(backend)
    device.shelves.clicks.add("newsroom:0001", None, backend.clock())
    backend.clock.go_on(5)
    assert "reading just now" in str(device.trainer.step().why) == str(device.trainer.why_not())
    backend.clock.go_on(16)
    device.shelves.impressions.record("one more", ["newsroom:0002"], backend.clock())
    assert "reading just now" in str(device.trainer.step().why)
    backend.clock.go_on(21)

    assert device.trainer.step().state == "uploaded"
