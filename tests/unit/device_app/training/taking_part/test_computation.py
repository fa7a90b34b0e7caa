"""One round's computation on one release. Oracles: the round's manifest, and how often its task is made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.db.engine import reading_session
from backend.db.tables_federation import RoundRow
from device_app.errors import NotEligible
from device_app.store.parameters import PrivateParameters
from device_app.sync.installed_release import Release, current_release
from device_app.training.computation import Computation, ComputationFactory
from device_app.training.tasks import TASKS
from device_app.training.tasks.task import LocalTask, TaskInputs
from device_app.wire.releases import BlobRef
from device_app.wire.rounds import RoundManifest
from tests.doubles.round_rig import ENCODER, BackendRig, DeviceRig
from tests.doubles.unsteady import opened


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
    opened(backend)
    release: Release = current_release(device.stores.releases)
    return factory(device, drawn).make(release, manifest_of(backend), device.trainer._reading.samples(ENCODER))


def test_the_update_is_of_the_shapes_said_before_and_the_task_is_made_once(
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
    assert len(made) == 1
    assert drawn == ["round-1"]
    assert update.samples > 0


def test_the_same_draw_gives_the_same_update_and_computing_leaves_no_trace(
    backend: BackendRig, device: DeviceRig
) -> None:
    one = computation(device, backend)
    first, again = one.update().shared.tensors, one.update().shared.tensors

    assert first.keys() == again.keys()
    for name, each in first.items():
        np.testing.assert_array_equal(each, again[name])
    assert device.ledger.spent_today("training") == 0
    assert device.stores.participations.list() == []


def test_without_samples_a_task_that_needs_them_says_neither_shapes_nor_an_update(
    backend: BackendRig, device: DeviceRig
) -> None:
    opened(backend)
    one = factory(device).make(current_release(device.stores.releases), manifest_of(backend), None)
    for asked in (one.shapes, one.update):
        with pytest.raises(NotEligible, match="another round was opened"):
            asked()


def test_a_task_that_computes_what_it_did_not_say_gives_zeros_of_what_it_said(
    backend: BackendRig, device: DeviceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which tensors come out may hang on the clicks, and may not show."""
    one = computation(device, backend)
    monkeypatch.setattr(type(one._task), "shapes", lambda *_: {"g.other": (2,)})
    update = one.update()
    assert {name: each.tolist() for name, each in update.shared.tensors.items()} == {"g.other": [0.0, 0.0]}
    assert update.samples == 1


def test_a_reader_of_whose_news_the_server_gives_no_vectors_gives_zeros(backend: BackendRig, device: DeviceRig) -> None:
    opened(backend)
    held = device.trainer._reading.samples(ENCODER)
    bare = replace(held, vectors={})
    one = factory(device).make(current_release(device.stores.releases), manifest_of(backend), bare)
    assert (bare.available, bare.learnable) == (0, held.learnable)
    assert one.shapes() == manifest_of(backend).shapes
    assert not any(each.any() for each in one.update().shared.tensors.values())
