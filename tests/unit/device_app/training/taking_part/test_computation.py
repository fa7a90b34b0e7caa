"""One round's computation on one release. Oracles: the round's manifest, and how often its task is made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.db.engine import reading_session
from backend.db.tables import RoundRow
from device_app.store.preferences import PrivateParameters
from device_app.sync.installed_release import Release, current_release
from device_app.training.computation import ENOUGH_CLICKS, Computation, ComputationFactory
from device_app.training.samples import EmptyHistory, StoredSamples
from device_app.training.tasks import TASKS
from device_app.training.tasks.task import LocalTask, TaskInputs
from protocol.releases import BlobRef
from protocol.rounds import RoundManifest
from tests.doubles.flaky_network import open_round
from tests.doubles.round_rig import ENCODER, BackendRig, DeviceRig


def manifest_of(backend: BackendRig) -> RoundManifest:
    with reading_session(backend.engine) as session:
        return RoundManifest.model_validate_json(session.get_one(RoundRow, 1).manifest)


def nothing(ref: BlobRef) -> bytes:
    raise AssertionError(f"{ref.sha256} was asked for")


def factory(device: DeviceRig, drawn: list[str] | None = None) -> ComputationFactory:
    def draw(round_id: str) -> np.random.Generator:
        if drawn is not None:
            drawn.append(round_id)
        return np.random.default_rng(0)

    private = PrivateParameters(device.stores.database)
    return ComputationFactory(device.trainer._reading, private, nothing, device.clock, draw=draw)


def computation(device: DeviceRig, backend: BackendRig, drawn: list[str] | None = None) -> Computation:
    open_round(backend)
    release: Release = current_release(device.stores.releases)
    return factory(device, drawn).make(release, manifest_of(backend))


def test_update_has_the_shapes_announced_for_an_empty_reader(
    backend: BackendRig, device: DeviceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, made = list[str](), list[TaskInputs]()
    one = computation(device, backend, drawn)
    kind = TASKS[manifest_of(backend).task]

    def counted(given: TaskInputs) -> LocalTask:
        made.append(given)
        return kind.make(given)

    monkeypatch.setattr(one, "_kind", replace(kind, make=counted))
    said = one.shapes()
    update = one.update()

    assert {name: each.shape for name, each in update.shared.tensors.items()} == dict(said)
    assert said == manifest_of(backend).shapes
    assert [type(given.reading) for given in made] == [EmptyHistory, StoredSamples]
    assert drawn == ["round-1"]
    assert update.samples > 0


def test_repeated_computation_gives_the_same_update_and_stores_nothing(backend: BackendRig, device: DeviceRig) -> None:
    one = computation(device, backend)
    first, again = one.update().shared.tensors, one.update().shared.tensors

    assert first.keys() == again.keys()
    for name, each in first.items():
        np.testing.assert_array_equal(each, again[name])
    assert device.ledger.spent_today("training") == 0
    assert device.stores.participations.list() == []


def test_update_shape_is_announced_before_reading_personal_data(
    backend: BackendRig, device: DeviceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the time between a check-in and what follows it would reveal something about the reader."""
    read = list[str]()
    for name in ("mark", "samples", "clicked", "uncounted", "count"):

        def recorded(*_: object, name: str = name) -> None:
            read.append(name)

        monkeypatch.setattr(StoredSamples, name, recorded)
    one = computation(device, backend)
    assert one.shapes() == manifest_of(backend).shapes
    assert one.one_click() is None
    assert read == []


def test_reader_with_too_few_clicks_contributes_zeros(backend: BackendRig, device: DeviceRig) -> None:
    one = computation(device, backend)
    for click in device.stores.clicks.recent(1_000)[ENOUGH_CLICKS - 1 :]:
        device.stores.clicks.delete(click.id)
    assert device.stores.clicks.count() == ENOUGH_CLICKS - 1
    update = one.update()
    assert update.samples == 0
    assert {name: each.shape for name, each in update.shared.tensors.items()} == manifest_of(backend).shapes
    assert not any(each.any() for each in update.shared.tensors.values())


def test_task_whose_outputs_differ_from_the_declared_ones_contributes_zeros(
    backend: BackendRig, device: DeviceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task's output tensors may depend on the clicks, which must not be visible."""
    one = computation(device, backend)
    monkeypatch.setattr(type(one._task), "shapes", lambda *_: {"g.other": (2,)})
    update = one.update()
    assert {name: each.tolist() for name, each in update.shared.tensors.items()} == {"g.other": [0.0, 0.0]}
    assert update.samples == 0


def test_reader_without_news_vectors_contributes_zeros(
    backend: BackendRig, device: DeviceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = computation(device, backend)
    held = device.trainer._reading.samples(ENCODER)
    monkeypatch.setattr(StoredSamples, "samples", lambda *_: replace(held, vectors={}))
    assert held.available > 0
    assert one.shapes() == manifest_of(backend).shapes
    assert not any(each.any() for each in one.update().shared.tensors.values())
