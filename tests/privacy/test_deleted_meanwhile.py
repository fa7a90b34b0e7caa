"""What was computed for a round and has not gone yet, once its reader deletes, erases or forbids what it came from.

Oracles: what the server received, and the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from device_app.privacy.secagg.contribution import Contribution
from device_app.training.computation import Computation
from device_app.training.delivery import RETRY_SEC
from device_app.uplink.in_process import InProcess
from device_app.wire.rounds import RoundOffer
from tests.doubles.lied_to import HONEST, LIST, NEWS, Meets, Victim
from tests.doubles.lying_server import LyingServer
from tests.doubles.news import synthetic_pool
from tests.doubles.round_rig import DIM, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader
from tests.doubles.unsteady import Unsteady, opened, state_of

Change = Callable[[DeviceRig], object]


def delete_a_click(device: DeviceRig) -> object:
    newest = device.stores.clicks.recent(1)[0]
    return device.stores.clicks.delete(newest.id)


def forget_an_interest(device: DeviceRig) -> object:
    return device.stores.clicks.delete_news({click.news_id for click in device.stores.clicks.recent(2)})


def erase(device: DeviceRig) -> object:
    device.stores.erase()
    return True


def lying(backend: BackendRig, honest: InProcess) -> LyingServer:
    """One that signs its offers as the operator does."""
    return LyingServer(honest, LIST, HONEST, backend.clock, key=backend.releases._key)  # type: ignore[arg-type]


CHANGES = pytest.mark.parametrize("change", [delete_a_click, forget_an_interest, erase])


@pytest.fixture
def trains(backend: BackendRig, tmp_path: Path) -> Iterator[tuple[DeviceRig, Unsteady]]:
    """A device that trains by single uploads, and its network."""
    pool = synthetic_pool(240, dim=DIM)
    inner = InProcess(backend.app)
    network = Unsteady(inner)
    device = DeviceRig(tmp_path / "device.sqlite", backend.clock, network)
    device.sync()
    device.read(simulated_reader(pool, np.random.default_rng(1)), pool)
    yield device, network
    device.stop()
    inner.close()
    backend.clock.go_on(3_600.0)
    backend.coordinator.step()  # the round's time is over: the next test may open one


@CHANGES
def test_clicks_deleted_while_a_sum_computes_are_in_nothing_that_leaves(
    backend: BackendRig, honest: InProcess, meets: Meets, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = lying(backend, honest)
    victim: Victim = meets(server)
    summing = victim.device.trainer.summing
    computed = summing._contribution

    def changed(offer: RoundOffer) -> Contribution:
        made = computed(offer)
        assert change(victim.device) is not False
        return made

    monkeypatch.setattr(summing, "_contribution", changed)
    victim.step_through()
    assert server.opened is None
    assert "masked" not in server.stages
    assert victim.charges() == []


def test_a_click_made_while_a_sum_computes_keeps_nobody_from_taking_part(
    backend: BackendRig, honest: InProcess, meets: Meets, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = lying(backend, honest)
    victim = meets(server)
    summing = victim.device.trainer.summing
    computed = summing._contribution

    def changed(offer: RoundOffer) -> Contribution:
        made = computed(offer)
        victim.device.stores.clicks.add(NEWS[-1], "feed", backend.clock())
        return made

    monkeypatch.setattr(summing, "_contribution", changed)
    victim.step_through()
    assert server.opened is not None


@CHANGES
def test_clicks_deleted_while_an_update_computes_are_in_nothing_that_leaves(
    backend: BackendRig, trains: tuple[DeviceRig, Unsteady], change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, network = trains
    computed = Computation.update

    def changed(self: Computation) -> object:
        made = computed(self)
        change(device)
        return made

    monkeypatch.setattr(Computation, "update", changed)
    opened(backend)
    outcome = device.trainer.step()
    assert (outcome.state, network.uploads) == ("declined", [])
    assert device.ledger.spent_today("training") == 0
    assert device.stores.outbox.waiting() == []


@pytest.mark.parametrize(
    "change",
    [{"weakest_scale_to_clip": 1e6}, {"epsilon_per_day_training": 0.0}, {"training": False}],
    ids=lambda change: next(iter(change)),
)
def test_an_update_that_waits_is_dropped_once_its_reader_asks_for_more(
    backend: BackendRig, trains: tuple[DeviceRig, Unsteady], change: dict[str, object]
) -> None:
    """The server takes an upload and answers nothing, and waits for the device to send it again."""
    device, network = trains
    opened(backend, cohort=2)
    network.lose_answers = True
    assert device.trainer.step().state == "waiting"
    network.lose_answers = False
    network.uploads.clear()
    spent = device.ledger.spent_today("training")
    before = device.ledger.settings
    device.ledger.settings = before.model_copy(update=change)
    backend.clock.go_on(RETRY_SEC)
    device.trainer.step()
    assert network.uploads == []
    assert state_of(device, device.stores.participations.list()[0].round) == "declined"
    device.ledger.settings = before
    backend.clock.go_on(RETRY_SEC)
    device.trainer.step()
    assert network.uploads == [], "allowing it again sends nothing old"
    assert device.ledger.spent_today("training") == spent, "it may have arrived unheard"
