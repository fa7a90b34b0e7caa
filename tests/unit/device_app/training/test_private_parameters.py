"""A round of a model with a private parameter: it is in no release, no upload and no bill; the round goes through."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import numpy as np
from safetensors.numpy import load

from device_app.uplink.in_process import InProcess
from device_app.wire.protections import LocalLaplace
from device_app.wire.tensors import pack
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import BASIS, DIM, BackendRig, DeviceRig, hand_made_draft
from tests.doubles.simulated_reader import simulated_reader


class Overheard(httpx.BaseTransport):
    """The backend, with every update that reaches it kept."""

    def __init__(self, inner: httpx.BaseTransport) -> None:
        self.inner = inner
        self.uploads: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            self.uploads.append(request.read())
        return self.inner.handle_request(request)


def test_a_private_parameter_is_trained_with_and_never_sent(tmp_path: Path) -> None:
    (tmp_path / "backend").mkdir()
    backend = BackendRig.make(tmp_path / "backend", StillClock(NOW + timedelta(days=1)))
    draft = hand_made_draft(backend.releases)
    values = np.random.default_rng(0).normal(scale=0.1, size=(BASIS, DIM)).astype(np.float32)
    own_keys = draft.models["recall"].model_copy(
        update={"private": ("basis_keys",), "weights": backend.releases.add_blob(pack({"basis_values": values}))}
    )
    backend.releases.commit(replace(draft, models=draft.models | {"recall": own_keys}), note="own keys")
    inner = InProcess(backend.app)
    network, pool = Overheard(inner), synthetic_pool(240, dim=DIM)
    device = DeviceRig(tmp_path / "device" / "device.sqlite", backend.clock, network)
    device.sync()
    device.read(simulated_reader(pool, np.random.default_rng(1)), pool)

    backend.coordinator.open_round("uni_fedrec", cohort=1, cohort_minimum=1, seconds=60.0)
    outcome = device.trainer.step()
    backend.coordinator.step()
    spent = device.ledger.spent_today("training")
    device.stop()
    inner.close()

    assert (outcome.state, outcome.why) == ("uploaded", None)
    (sent,) = network.uploads
    assert {name: value.shape for name, value in load(sent).items()} == {"g.basis_values": (BASIS, DIM)}
    assert spent == LocalLaplace().epsilon_per_upload(BASIS * DIM)
    published = backend.releases.require_current()
    assert published.release == "r3"
    assert published.models["recall"].private == ("basis_keys",)
    assert set(backend.releases.weights(published, "recall")) == {"basis_values"}
