"""A round of a model with a private parameter, which is in no release, upload or charge; the round succeeds."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch
from safetensors.numpy import load

from backend.federation.systems import COMPOSED
from backend.federation.systems.composition import SystemSpec
from device_app.feed.model_cache import ModelCache
from device_app.privacy.private_parameters import PrivateParameterShared, SharedUpdate, divide
from device_app.store.preferences import PrivateParameters
from device_app.sync.installed_release import current_release
from device_app.training.computation import ComputationFactory
from device_app.training.gradients import PRIVATE_RATE, OnnxGradients, stepped
from exporters.graphs import ranker_graphs
from exporters.signature import parameters
from models.builders.user import lstur
from models.shapes import private_names
from protocol.protections import LocalLaplace
from protocol.releases import ModelEntry
from protocol.tensors import pack
from tests.doubles.clock import StillClock
from tests.doubles.graphs import kept_graph
from tests.doubles.in_process import InProcess
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import BASIS, DIM, ENCODER, BackendRig, DeviceRig, hand_made_draft
from tests.doubles.simulated_reader import simulated_reader

LSTUR_SYSTEM = COMPOSED["lstur/local/mean"]


class RecordingTransport(httpx.BaseTransport):
    """The backend, which records every update it receives."""

    def __init__(self, inner: httpx.BaseTransport) -> None:
        self.inner = inner
        self.uploads: list[bytes] = []
        self.requests: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request.read())
        if request.method == "PUT":
            self.uploads.append(self.requests[-1])
        return self.inner.handle_request(request)


def test_private_parameter_is_trained_and_never_sent(tmp_path: Path) -> None:
    (tmp_path / "backend").mkdir()
    backend = BackendRig.make(tmp_path / "backend", StillClock(NOW + timedelta(days=1)))
    draft = hand_made_draft(backend.releases)
    values = np.random.default_rng(0).normal(scale=0.1, size=(BASIS, DIM)).astype(np.float32)
    own_keys = draft.models["recall"].model_copy(
        update={"private": ("basis_keys",), "weights": backend.releases.add_blob(pack({"basis_values": values}))}
    )
    backend.releases.commit(replace(draft, models=draft.models | {"recall": own_keys}), note="own keys")
    inner = InProcess(backend.app)
    network, pool = RecordingTransport(inner), synthetic_pool(240, dim=DIM)
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


LSTUR = "ranker.lstur"


def lstur_entry(backend: BackendRig) -> ModelEntry:
    """Return a small LSTUR as a release has it: real graphs, and weights without the reader's vector."""
    torch.manual_seed(3)
    model = lstur("ini", dim=DIM)
    specs = {spec.purpose: spec for spec in ranker_graphs(model)}
    graphs = {purpose: kept_graph(model, specs[purpose]) for purpose in ("score", "gradient")}
    private = private_names(model)
    weights = {name: each.numpy() for name, each in parameters(model).items() if name not in private}
    return ModelEntry(
        architecture="lstur_ini",
        role="ranker",
        graphs={name: backend.releases.add_blob(graph) for name, graph in graphs.items()},
        weights=backend.releases.add_blob(pack(weights)),
        private=private,
    )


def test_private_reader_vector_is_trained_changes_ranking_and_survives_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "backend").mkdir()
    backend = BackendRig.make(tmp_path / "backend", StillClock(NOW + timedelta(days=1)))
    draft = hand_made_draft(backend.releases)
    backend.releases.commit(replace(draft, models=draft.models | {LSTUR: lstur_entry(backend)}), note="with LSTUR")
    inner = InProcess(backend.app)
    network, pool = RecordingTransport(inner), synthetic_pool(240, dim=DIM)
    device = DeviceRig(tmp_path / "device" / "device.sqlite", backend.clock, network)
    device.sync()
    device.read(simulated_reader(pool, np.random.default_rng(1)), pool)
    own = PrivateParameters(device.stores.database)
    model_cache = ModelCache(ranker=LSTUR)

    def scores() -> np.ndarray:
        ranker = model_cache.models(current_release(device.stores.releases)).ranker
        return ranker.with_own(lambda model: own.get(model, ENCODER)).score(pool.vectors[:3], pool.vectors)

    assert dict(own.get(LSTUR, ENCODER)) == {}
    before = scores()
    systems: dict[str, SystemSpec] = backend.coordinator._systems  # type: ignore[assignment]
    systems["lstur/local/mean"] = replace(
        LSTUR_SYSTEM, dropout=0.0
    )  # else the vector is left out of half of the rounds
    backend.coordinator.open_round("lstur/local/mean", cohort=1, cohort_minimum=1, seconds=60.0)
    outcome = device.trainer.step()
    assert (outcome.state, outcome.why) == ("uploaded", None)

    learnt = own.get(LSTUR, ENCODER)
    assert learnt.keys() == {"user_embedding"}
    assert 0 < np.abs(learnt["user_embedding"]).max() <= 2 * PRIVATE_RATE
    after = scores()
    assert not np.array_equal(np.argsort(-after), np.argsort(-before)), "the same release now ranks for this reader"

    (sent,) = network.uploads
    assert "g.user_embedding" not in load(sent)
    assert "g.gru.recurrent.weight" in load(sent)
    value = learnt["user_embedding"].tobytes()
    assert all(b"user_embedding" not in body and value not in body for body in network.requests)
    shared = sum(each.size for each in load(sent).values())
    assert outcome.offer is not None
    protection = outcome.offer.manifest.protection
    assert isinstance(protection, LocalLaplace)
    spent = device.ledger.spent_today("training")
    assert spent == pytest.approx(protection.epsilon_per_upload(shared)), "a private coordinate costs nothing"

    backend.coordinator.step()
    assert device.sync()
    assert device.release() == "r3"
    np.testing.assert_array_equal(own.get(LSTUR, ENCODER)["user_embedding"], learnt["user_embedding"])
    ranker = model_cache.models(current_release(device.stores.releases)).ranker
    assert not np.array_equal(scores(), ranker.score(pool.vectors[:3], pool.vectors)), "serves with it after the swap"
    assert dict(own.get(LSTUR, "another encoder")) == {}, "it lies in the space of its encoder"
    systems["lstur/local/mean"] = replace(LSTUR_SYSTEM, dropout=1 - 1e-9)
    backend.coordinator.open_round("lstur/local/mean", cohort=1, cohort_minimum=1, seconds=60.0)
    used: list[dict[str, np.ndarray]] = []
    made = ComputationFactory.gradients

    def recording(self: ComputationFactory, graph: bytes, **how: Any) -> OnnxGradients:
        used.append(dict(how["own"]))
        return made(self, graph, **how)

    monkeypatch.setattr(ComputationFactory, "gradients", recording)
    assert device.trainer.step().state == "uploaded"
    assert used == [{}], "left out of a round, it counts as zero"
    np.testing.assert_array_equal(own.get(LSTUR, ENCODER)["user_embedding"], learnt["user_embedding"])
    device.stores.erase()
    assert dict(own.get(LSTUR, ENCODER)) == {}
    device.stop()
    inner.close()


def test_step_of_a_private_parameter_follows_the_gradient_and_restarts_after_a_change_of_shape() -> None:
    entry = ModelEntry(architecture="lstur_ini", role="ranker", graphs={}, private=("user_embedding",))
    gradients = {"g.user_embedding": np.asarray([1.0, -2.0], np.float32), "g.other": np.ones(3, np.float32)}
    _, own = divide(gradients, entry)
    assert own.keys() == {"user_embedding"}
    first = stepped({}, own)
    np.testing.assert_allclose(first["user_embedding"], [-PRIVATE_RATE, 2 * PRIVATE_RATE], rtol=1e-6)
    second = stepped(first, own, rate=1.0)
    np.testing.assert_allclose(second["user_embedding"], [-PRIVATE_RATE - 1, 2 * PRIVATE_RATE + 2], rtol=1e-6)
    again = stepped({"user_embedding": np.ones(5, np.float32)}, own)
    np.testing.assert_array_equal(again["user_embedding"], first["user_embedding"])


def test_private_parameter_cannot_be_uploaded() -> None:
    entry = ModelEntry(architecture="lstur_ini", role="ranker", graphs={}, private=("user_embedding",))
    with pytest.raises(PrivateParameterShared, match="user_embedding: a private parameter stays on this device"):
        SharedUpdate({"user_embedding": np.ones(2, np.float32)}, entry)


def test_non_finite_values_are_not_stored(tmp_path: Path) -> None:
    backend = BackendRig.make(tmp_path, StillClock(NOW))
    device = DeviceRig(tmp_path / "device" / "device.sqlite", backend.clock, InProcess(backend.app))
    own = PrivateParameters(device.stores.database)
    with pytest.raises(ValueError, match="parameter user_embedding: has values that are not finite"):
        own.keep(LSTUR, ENCODER, {"user_embedding": np.full(2, np.nan, np.float32)})
    assert dict(own.get(LSTUR, ENCODER)) == {}
    device.stop()
