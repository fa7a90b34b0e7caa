"""Results computed but not yet sent, for a round or a page, when the reader deletes, erases or forbids their source.

Oracles: what the server received, the ledger, and the device's own files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.composition import build_device
from device_app.errors import BackendUnreachable
from device_app.privacy.clipping import Clipped
from device_app.privacy.protections.local_laplace import LaplaceProtection
from device_app.privacy.sealed import Sealed
from device_app.privacy.secagg.messages import Contribution
from device_app.settings import DeviceSettings, PerformanceSettings
from device_app.training.computation import Computation
from device_app.training.delivery import RETRY_SEC
from device_app.training.samples import StoredSamples
from device_app.training.tasks.recall_gradient import RecallTask
from device_app.training.tasks.split_gradient import LISTED, VECTORS, SplitGradientTask, split_gradient_task
from device_app.training.tasks.task import Update
from device_app.training.union_draws import NOTHING_DRAWN, UnionDraws
from protocol.rounds import RoundOffer, SumStage, UploadReceipt
from protocol.tensors import pack
from tests.doubles.attacked_device import HONEST, LIST, NEWS, Meets, Victim
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.flaky_network import EPSILON, FlakyNetwork, open_round, state_of
from tests.doubles.in_process import InProcess
from tests.doubles.malicious_server import MaliciousServer
from tests.doubles.new_page import new_page
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.pages_reader import FOLLOWS_A_LINK, enter
from tests.doubles.round_rig import DIM, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader

Change = Callable[[DeviceRig], object]


def delete_a_click(device: DeviceRig) -> object:
    newest = device.stores.clicks.recent(1)[0]
    return device.stores.clicks.delete(newest.id)


def forget_an_interest(device: DeviceRig) -> object:
    return device.stores.clicks.delete_news({click.news_id for click in device.stores.clicks.recent(2)})


def erase(device: DeviceRig) -> object:
    device.stores.erase()
    return True


def malicious(backend: BackendRig, honest: InProcess) -> MaliciousServer:
    """A malicious server that signs its offers as the operator does."""
    return MaliciousServer(honest, LIST, HONEST, backend.clock, key=backend.releases._key)  # type: ignore[arg-type]


CHANGES = pytest.mark.parametrize("change", [delete_a_click, forget_an_interest, erase])


@pytest.fixture
def trains(backend: BackendRig, tmp_path: Path) -> Iterator[tuple[DeviceRig, FlakyNetwork]]:
    """A device that trains by single uploads, and its network."""
    pool = synthetic_pool(240, dim=DIM)
    inner = InProcess(backend.app)
    network = FlakyNetwork(inner)
    device = DeviceRig(tmp_path / "device.sqlite", backend.clock, network)
    device.sync()
    device.read(simulated_reader(pool, np.random.default_rng(1)), pool)
    yield device, network
    device.stop()
    inner.close()
    backend.clock.go_on(3_600.0)
    backend.coordinator.step()  # the round's time is over: the next test may open one


@CHANGES
def test_clicks_deleted_during_a_sum_never_leave_the_device(
    backend: BackendRig, honest: InProcess, meets: Meets, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = malicious(backend, honest)
    victim: Victim = meets(server)
    summing = victim.device.trainer.summing
    computed = summing._contribution

    def changed(offer: RoundOffer) -> Contribution | None:
        made = computed(offer)
        assert change(victim.device) is not False
        return made

    monkeypatch.setattr(summing, "_contribution", changed)
    victim.step_through()
    assert server.opened is None
    assert "masked" not in server.stages
    assert victim.charges() == []


def test_click_during_a_computation_does_not_stop_participation(
    backend: BackendRig, honest: InProcess, meets: Meets, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = malicious(backend, honest)
    victim = meets(server)
    summing = victim.device.trainer.summing
    computed = summing._contribution

    def changed(offer: RoundOffer) -> Contribution | None:
        made = computed(offer)
        victim.device.stores.clicks.add(NEWS[-1], "feed", backend.clock())
        return made

    monkeypatch.setattr(summing, "_contribution", changed)
    victim.step_through()
    assert server.opened is not None


@pytest.mark.parametrize("arrived", [False, True])
def test_deleting_a_click_drops_a_vector_that_was_paid_for_but_not_sent(
    backend: BackendRig, honest: InProcess, meets: Meets, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    """A vector that has not arrived is dropped; if it has arrived, the other devices open the sum."""
    server = malicious(backend, honest)
    victim = meets(server)
    summing = victim.device.trainer.summing
    send, ask = summing._uplink.sum_message, summing._uplink.sum_answer
    sent: list[tuple[str, SumStage]] = []
    cut = True

    def sum_message(offer: RoundOffer, stage: SumStage, sealed: Sealed[object]) -> UploadReceipt:
        if cut and stage == "masked" and not arrived:
            raise BackendUnreachable("http://backend", "cut off")
        sent.append((offer.manifest.round, stage))
        return send(offer, stage, sealed)

    def sum_answer(sealed: Sealed[RoundOffer], stage: SumStage) -> object:
        return None if cut and stage == "masked" else ask(sealed, stage)

    monkeypatch.setattr(summing._uplink, "sum_message", sum_message)
    monkeypatch.setattr(summing._uplink, "sum_answer", sum_answer)
    assert victim.device.trainer.step().state == "waiting"
    (part,), paid = summing.parts.under_way(), victim.charges()
    assert (part.payload is None, part.sent, len(paid)) == (arrived, arrived, 1), "the vector is kept until it arrives"
    delete_a_click(victim.device)
    victim.device.trainer.forget_unsent()
    cut = False
    victim.device.trainer.step()
    assert ((part.round, "masked") in sent) == ((part.round, "unmask") in sent) == arrived
    assert victim.charges() == paid


def meanwhile(monkeypatch: pytest.MonkeyPatch, device: DeviceRig, change: Change) -> None:
    """Let the reader make a change while an update is computed."""
    computed = Computation.update

    def changed(self: Computation) -> object:
        made = computed(self)
        change(device)
        return made

    monkeypatch.setattr(Computation, "update", changed)


def sealed_in_clear(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Record the tensors of updates before noise is added."""
    clear = list[np.ndarray]()
    seal = LaplaceProtection.seal

    def recording(self: LaplaceProtection, clipped: Clipped, **rest: object) -> object:
        clear.extend(clipped.tensors.values())
        return seal(self, clipped, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(LaplaceProtection, "seal", recording)
    return clear


@pytest.mark.parametrize("change", [delete_a_click, forget_an_interest])
def test_deleting_clicks_while_an_update_is_computed_turns_it_into_zeros(
    backend: BackendRig, trains: tuple[DeviceRig, FlakyNetwork], change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that sent nothing would reveal that its reader deletes something at that time."""
    device, network = trains
    clear = sealed_in_clear(monkeypatch)
    meanwhile(monkeypatch, device, change)
    open_round(backend)
    outcome = device.trainer.step()
    assert (outcome.state, len(network.uploads), device.ledger.spent_today("training")) == ("uploaded", 1, EPSILON)
    assert clear
    assert not any(each.any() for each in clear)


def test_deleting_a_click_after_the_union_turns_the_gradients_into_zeros(
    backend: BackendRig, trains: tuple[DeviceRig, FlakyNetwork], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients of rows use the samples drawn for the union, hours or days before.

    Regression: the device took its place and left, so a server that opened such rounds again and again knew when a
    reader deletes.
    """
    device, network = trains
    reading, run = device.trainer._reading, RecallTask.run
    task = split_task(reading)
    assert task.unchanged is not None
    assert task.unchanged()
    delete_a_click(device)
    assert not task.unchanged()

    def of_the_draw(*given: object, **more: object) -> Update:
        return replace(run(*given, **more), unchanged=task.unchanged)  # type: ignore[arg-type]

    monkeypatch.setattr(RecallTask, "run", of_the_draw)
    clear = sealed_in_clear(monkeypatch)
    open_round(backend)
    outcome = device.trainer.step()
    assert (outcome.state, len(network.uploads), device.ledger.spent_today("training")) == ("uploaded", 1, EPSILON)
    assert clear
    assert not any(each.any() for each in clear)


def split_task(reading: StoredSamples) -> SplitGradientTask:
    """Return the task of a device that has just drawn for the union."""
    draws = UnionDraws()
    draws.keep("round-1", replace(NOTHING_DRAWN, mark=reading.mark()))
    model = SimpleNamespace(features=())
    given = SimpleNamespace(
        draws=draws,
        reading=reading,
        manifest=SimpleNamespace(round="round-2", follows="round-1", model="a", negatives=4, samples_limit=32),
        release=SimpleNamespace(manifest=SimpleNamespace(dimensions=2, models={"a": model})),
        materials={LISTED: b'["n1"]', VECTORS: pack({VECTORS: np.ones((1, 2), np.float32)})}.__getitem__,
    )
    return split_gradient_task(given)  # type: ignore[arg-type]


def test_data_erased_during_an_update_never_leaves_the_device(
    backend: BackendRig, trains: tuple[DeviceRig, FlakyNetwork], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, network = trains
    meanwhile(monkeypatch, device, erase)
    open_round(backend)
    outcome = device.trainer.step()
    assert (outcome.state, network.uploads) == ("declined", [])
    assert device.ledger.spent_today("training") == 0
    assert device.stores.outbox.waiting() == []


def sent_and_not_answered(backend: BackendRig, device: DeviceRig, network: FlakyNetwork) -> float:
    """Let the server take an upload without answering, so that it is due to be sent again; return its cost."""
    open_round(backend, cohort=2)
    network.lose_answers = True
    assert device.trainer.step().state == "waiting"
    network.lose_answers = False
    network.uploads.clear()
    return device.ledger.spent_today("training")


@pytest.mark.parametrize(
    "change",
    [{"weakest_scale_to_clip": 1e6}, {"epsilon_per_day_training": 0.0}, {"training": False}],
    ids=lambda change: next(iter(change)),
)
def test_waiting_update_is_dropped_when_privacy_is_tightened(
    backend: BackendRig, trains: tuple[DeviceRig, FlakyNetwork], change: dict[str, object]
) -> None:
    """The server takes an upload without answering, and waits for the device to send it again."""
    device, network = trains
    spent = sent_and_not_answered(backend, device, network)
    before = device.privacy
    device.privacy = before.model_copy(update=change)
    backend.clock.go_on(RETRY_SEC)
    device.trainer.step()
    assert network.uploads == []
    assert state_of(device, device.stores.participations.list()[0].round) == "declined"
    device.privacy = before
    backend.clock.go_on(RETRY_SEC)
    device.trainer.step()
    assert network.uploads == [], "allowing it again sends nothing old"
    assert device.ledger.spent_today("training") == spent, "it may have arrived unheard"


def test_click_deleted_while_an_update_waits_drops_the_update(
    backend: BackendRig, trains: tuple[DeviceRig, FlakyNetwork]
) -> None:
    """The server takes the upload without answering; the reader deletes a click; the server waits for more."""
    device, network = trains
    spent = sent_and_not_answered(backend, device, network)
    delete_a_click(device)
    device.trainer.forget_unsent()
    for _ in range(3):
        backend.clock.go_on(RETRY_SEC)
        device.trainer.step()
    assert network.uploads == []
    assert device.stores.outbox.waiting() == []
    assert state_of(device, device.stores.participations.list()[0].round) == "declined"
    assert device.ledger.spent_today("training") == spent, "it may have arrived unheard, and nothing is drawn again"


@pytest.mark.parametrize("how", ["a click", "an interest", "a search"])
def test_deleting_on_a_page_drops_waiting_messages(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeBackend()
    device = build_device(DeviceSettings(data_dir=tmp_path), transport=server.transport(), clock=StillClock(NOW))
    device.sync()
    feed = new_page(device)
    device.reading.open(feed.items[0].card.id, feed.feed_id)
    saved = device.library.save_search("ships")
    dropped: list[str] = []
    monkeypatch.setattr(device.parts.trainer, "forget_unsent", lambda: dropped.append(how))
    if how == "a click":
        device.library.delete_click(device.library.history().entries[0].click_id)
    elif how == "an interest":
        device.interests.forget(device.interests.clusters()[0].key)
    else:
        device.library.delete_search(saved.id)
    device.close()
    assert dropped == [how]


@pytest.mark.parametrize("address", ["/search?q=headline", "/topic/{topic}"])
def test_search_results_found_during_an_erase_are_discarded(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tests/conformance/test_search_of_all does the same to the browser's device."""
    server = FakeBackend(pool_codes=True)
    settings = DeviceSettings(data_dir=tmp_path, performance=PerformanceSettings(default_list_limit=50))
    device = build_device(settings, transport=server.transport(), clock=StillClock(NOW))
    device.sync()
    app = create_app(device=device)
    home = f"http://127.0.0.1:{settings.port}"
    client = enter(TestClient(app, base_url=home, headers=FOLLOWS_A_LINK, follow_redirects=False), app.state.page_key)
    path = address.format(topic=server.pool.cards[0].topic)
    eraser = threading.Thread(target=device.privacy.erase)
    is_unread = device.whole_pool.is_unread  # asked between finding and keeping

    def erased_first() -> bool:
        if not eraser.ident:
            eraser.start()
            eraser.join(0.3)  # it waits for what is being found
        return is_unread()

    monkeypatch.setattr(device.whole_pool, "is_unread", erased_first)
    answer = client.get(path)
    eraser.join(60)
    assert not eraser.is_alive()
    assert (answer.status_code, answer.headers["location"]) == (303, "/welcome")
    stores = device.parts.stores
    assert (device.lists._found, stores.news.count(), stores.preferences.get("list/" + path[1:])) == ({}, 0, None)
    assert client.get("/welcome").status_code == 200
    device.close()
