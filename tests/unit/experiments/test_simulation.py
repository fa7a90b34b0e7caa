"""Simulated rounds. Oracles: torch's autograd through all readers' samples at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from backend.federation.optimizers import Adam, Sgd, StatefulOptimizer
from backend.federation.strategies.fedavg import FedAvg
from device_app.training.gradients import GradientFn
from device_app.training.tasks.full_gradient import FullGradientTask
from device_app.training.tasks.task import Update
from experiments.datasets.mind import Impressions, RaggedArray
from experiments.datasets.samples import TrainingSamples, training_samples
from experiments.simulation.central import train_centrally
from experiments.simulation.clients import OneProcess, SimulatedDevice, WeightedReaders, ranker_inputs
from experiments.simulation.readers import Library, SimulatedReader
from experiments.simulation.rounds import Rounds, simulate
from models.builders.rankers import nrms
from models.user.papers import NrmsUser
from tests.doubles.engines import TorchEngine, onnx_engine

DIM, NEWS, READERS = 8, 40, 6
Weights = dict[str, NDArray[np.float32]]
TINY_ROUNDING = 2e-6


def made_up_samples() -> TrainingSamples:
    """Readers with 6 to 14 clicks, and so 2 to 4 samples each."""
    rng = np.random.default_rng(0)
    histories = [rng.permutation(NEWS)[: 6 + 8 * (reader % 2)] for reader in range(READERS)]
    nothing = RaggedArray.of([[] for _ in histories])
    users = tuple(f"u{reader}" for reader in range(READERS))
    times, labels = np.zeros(READERS, np.int64), np.zeros(0, np.int64)
    return training_samples(Impressions(users, users, times, RaggedArray.of(histories), nothing, labels), NEWS)


def made_up_library() -> Library:
    return Library.of(np.random.default_rng(1).normal(size=(NEWS, DIM)).astype(np.float32))


def tiny_model() -> NrmsUser:
    torch.manual_seed(2)
    return nrms(heads=2, head_dim=4, attention_dim=5)


def weights_of(model: nn.Module) -> Weights:
    return {name: value.detach().numpy().copy() for name, value in model.named_parameters()}


def torch_device(seed: int = 5, *, limit: int = 3) -> SimulatedDevice:
    samples, library = made_up_samples(), made_up_library()
    return SimulatedDevice(
        FullGradientTask(negatives=4, samples_limit=limit),
        TorchEngine(tiny_model(), ranker_inputs(DIM)),
        lambda reader: SimulatedReader(samples, reader, library),
        seed,
    )


def pooled_mean(device: SimulatedDevice, model: NrmsUser, cohort: list[int], round_number: int) -> Weights:
    """The gradient of mean_u L_u, by one backward pass through every reader's loss."""
    losses = []
    for reader in cohort:
        rng = np.random.default_rng((device.seed, round_number, reader))
        drawn = device.source(reader).draw(negatives=4, limit=3, rng=rng)
        losses.append(model.loss(*map(torch.from_numpy, (drawn.clicks, drawn.click_mask, drawn.candidates))))
    named = dict(model.named_parameters())
    found = torch.autograd.grad(torch.stack(losses).mean(), list(named.values()))
    return {name: each.numpy() for name, each in zip(named, found, strict=True)}


@pytest.mark.parametrize("engine", [TorchEngine, onnx_engine])
def test_noiseless_round_steps_along_the_pooled_gradient(engine: Callable[..., GradientFn]) -> None:
    samples, library, model = made_up_samples(), made_up_library(), tiny_model()
    device = SimulatedDevice(
        FullGradientTask(negatives=4, samples_limit=3),
        engine(model, ranker_inputs(DIM)),
        lambda reader: SimulatedReader(samples, reader, library),
        seed=5,
    )
    plan = Rounds(rounds=1, cohort=4, readers=READERS, seed=3)
    before = weights_of(model)
    after = simulate(OneProcess(device), before, plan, FedAvg(), Sgd(learning_rate=1.0)).weights
    pooled = pooled_mean(device, model, plan.cohort_of(0), 0)
    for name, gradient in pooled.items():
        np.testing.assert_allclose(before[name] - after[name], gradient, atol=TINY_ROUNDING, err_msg=name)
    assert max(np.abs(each).max() for each in pooled.values()) > 100 * TINY_ROUNDING  # there is something to see


def test_cohort_has_distinct_readers_and_depends_on_seed_and_round() -> None:
    plan = Rounds(rounds=5, cohort=20, readers=40, seed=1)
    cohorts = [plan.cohort_of(number) for number in range(5)]
    assert all(len(set(cohort)) == 20 for cohort in cohorts)
    assert len({tuple(cohort) for cohort in cohorts}) == 5
    assert plan.cohort_of(2) == cohorts[2]
    with pytest.raises(ValueError, match="cohort: must be between 1 and the 40 readers, got 41"):
        Rounds(rounds=1, cohort=41, readers=40, seed=1)


def a_quarter(update: Update, rng: np.random.Generator) -> Weights:
    return {name: np.full_like(each, 0.25) for name, each in update.tensors.items()}


def a_samples_share(update: Update, rng: np.random.Generator) -> Weights:
    return {name: each + np.float32(0.25 / update.samples) for name, each in update.tensors.items()}


def test_server_sums_the_protected_updates() -> None:
    plan, before = Rounds(rounds=1, cohort=4, readers=READERS, seed=3), weights_of(tiny_model())
    after = simulate(
        OneProcess(replace(torch_device(), protect=a_quarter)), before, plan, FedAvg(), Sgd(learning_rate=1.0)
    ).weights
    for name, value in before.items():
        np.testing.assert_allclose(value - after[name], 0.25, atol=1e-6)


def test_weighted_round_is_the_mean_of_protected_updates_by_their_samples() -> None:
    """Oracle: FedNewsRec's eq. 6, in NumPy."""
    plan, model = Rounds(rounds=1, cohort=4, readers=READERS, seed=3), tiny_model()
    device, before = replace(torch_device(limit=9), protect=a_samples_share), weights_of(model)
    updates = [device.update(before, reader, 0) for reader in plan.cohort_of(0)]
    sizes = [update.samples for update in updates]
    assert len(set(sizes)) > 1, "readers have different weights"
    after = simulate(WeightedReaders(device), before, plan, FedAvg(), Sgd(learning_rate=1.0)).weights
    for name, value in before.items():
        expected = np.average([update.tensors[f"g.{name}"] for update in updates], axis=0, weights=sizes)
        np.testing.assert_allclose(value - after[name], expected, atol=1e-6, err_msg=name)


def test_central_training_lowers_the_loss_and_is_reproducible() -> None:
    model, library, samples = tiny_model(), made_up_library(), made_up_samples()
    runs = [
        train_centrally(
            TorchEngine(model, ranker_inputs(DIM)),
            samples,
            library,
            weights_of(model),
            StatefulOptimizer(Adam(0.03)),
            steps=60,
            batch=8,
            negatives=4,
            seed=1,
        )
        for _ in range(2)
    ]
    assert np.mean(runs[0].losses[-10:]) < np.mean(runs[0].losses[:10]) - 0.3
    for name, value in runs[0].weights.items():
        np.testing.assert_array_equal(value, runs[1].weights[name])


def test_library_refuses_non_finite_vectors() -> None:
    with pytest.raises(ValueError, match=r"vectors must be finite and have shape \[n, D\]"):
        Library.of(np.full((2, 3), np.nan, np.float32))
