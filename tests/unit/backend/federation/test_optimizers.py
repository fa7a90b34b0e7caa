"""Server optimizers. Oracles: numbers worked out by hand, torch.optim.Adam, local SGD steps averaged."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from backend.federation.optimizers import (
    Adam,
    FedAdam,
    Memory,
    MemoryOptimizer,
    PublishedAdam,
    Sgd,
    StatefulOptimizer,
    Weights,
)

WEIGHTS = {"w": np.array([1.0, 1.0], dtype=np.float32)}
GRADIENT = {"w": np.array([0.2, -0.4])}


@pytest.mark.parametrize(
    ("optimizer", "wanted"),
    [
        (FedAdam(0.1, beta1=0.9, beta2=0.99, tau=1e-3), (0.904762, 1.097561)),
        (PublishedAdam(0.1), (0.333333, 1.8)),
        (Adam(0.1), (0.9, 1.1)),
        (Sgd(0.1), (0.98, 1.04)),
    ],
)
def test_first_step_of_an_optimizer_matches_the_specification(
    optimizer: MemoryOptimizer, wanted: tuple[float, float]
) -> None:
    stepped, memory = optimizer.advance(WEIGHTS, GRADIENT, Memory())
    assert stepped["w"] == pytest.approx(wanted, abs=5e-7)
    assert stepped["w"].dtype == np.float32
    assert memory.steps == 1
    assert WEIGHTS["w"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("settings", [{}, {"beta1": 0.5, "beta2": 0.9, "tau": 1e-3}, {"beta1": 0.0}])
def test_adam_matches_torch_over_twenty_steps_with_restarts(settings: dict[str, float]) -> None:
    rng = np.random.default_rng(3)
    start = {"a": rng.normal(size=(3, 4)), "b": rng.normal(size=())}
    ours: Weights = {name: value.astype(np.float32) for name, value in start.items()}
    theirs = {name: torch.tensor(value.astype(np.float32), dtype=torch.float64) for name, value in start.items()}
    reference = torch.optim.Adam(
        list(theirs.values()),
        lr=0.05,
        betas=(settings.get("beta1", 0.9), settings.get("beta2", 0.999)),
        eps=settings.get("tau", 1e-8),
    )
    memory = Memory()
    for _ in range(20):
        gradient = {name: np.asarray(rng.normal(size=value.shape)) for name, value in start.items()}
        for name, value in theirs.items():
            value.grad = torch.tensor(gradient[name])
        reference.step()
        optimizer = StatefulOptimizer(Adam(0.05, **settings), Memory.from_bytes(memory.to_bytes()))
        ours = optimizer.step(ours, gradient)
        memory = optimizer.memory
    assert memory.steps == 20
    for name, value in theirs.items():
        # 20 roundings to float32 of numbers below 4.
        np.testing.assert_allclose(ours[name], value.numpy(), atol=20 * 2.0**-23 * 2, rtol=0)
        assert ours[name].shape == start[name].shape


def test_fedadam_follows_its_formula_over_many_steps() -> None:
    rng = np.random.default_rng(4)
    optimizer = StatefulOptimizer(FedAdam(0.05))
    weights: Weights = {"w": np.zeros(5, np.float32)}
    mean = square = np.zeros(5)
    expected = np.zeros(5)
    for _ in range(10):
        slope = rng.normal(size=5)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        expected = expected - 0.05 * mean / (np.sqrt(square) + 1e-3)
        weights = optimizer.step(weights, {"w": slope})
    np.testing.assert_allclose(weights["w"], expected, atol=1e-6)


def test_steps_along_the_negative_gradient_lower_the_loss() -> None:
    for optimizer in (Sgd(0.1), Adam(0.05), FedAdam(0.05)):
        carried = StatefulOptimizer(optimizer)
        weights: Weights = {"w": np.array([3.0, -2.0], np.float32)}
        for _ in range(300):
            weights = carried.step(weights, {"w": 2 * weights["w"].astype(np.float64)})
        assert float(np.square(weights["w"]).sum()) < 0.05, optimizer


def test_averaged_local_steps_equal_one_step_of_the_mean() -> None:
    rng = np.random.default_rng(5)
    start = rng.normal(size=7).astype(np.float32)
    gradients = rng.normal(size=(4, 7))
    local = start.astype(np.float64) - 0.3 * gradients
    fedavg = Sgd(1.0).step({"w": start}, {"w": (start - local).mean(axis=0)})["w"]
    np.testing.assert_allclose(fedavg, local.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(fedavg, Sgd(0.3).step({"w": start}, {"w": gradients.mean(axis=0)})["w"], atol=1e-6)


def test_weights_without_a_gradient_stay_and_have_no_moments() -> None:
    weights: Weights = WEIGHTS | {"still": np.ones(2, np.float32)}
    for optimizer in (Sgd(0.1), Adam(0.1), FedAdam(0.1)):
        stepped, memory = optimizer.advance(weights, GRADIENT, Memory())
        assert stepped["still"].tolist() == [1.0, 1.0]
        assert not any("still" in name for name in memory.tensors)


def test_optimizer_memory_survives_serialisation_exactly() -> None:
    _, memory = Adam(0.1).advance(WEIGHTS, {"w": np.array([1 / 3, 1e-200])}, Memory(41, {"m.w": np.full(2, 0.1)}))
    again = Memory.from_bytes(memory.to_bytes())
    assert again.steps == 42
    assert {name: value.tobytes() for name, value in again.tensors.items()} == {
        name: value.tobytes() for name, value in memory.tensors.items()
    }
    with pytest.raises(Exception, match=r"header|Header|deserializing"):
        Memory.from_bytes(b"nonsense")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sgd(0.0), "learning_rate"),
        (lambda: Adam(-1.0), "learning_rate"),
        (lambda: Adam(0.1, beta1=1.0), "beta1"),
        (lambda: FedAdam(0.1, beta2=-0.1), "beta2"),
        (lambda: FedAdam(0.1, tau=0.0), "tau"),
        (lambda: FedAdam(float("nan")), "learning_rate"),
    ],
)
def test_invalid_optimizer_settings_are_named_in_the_error(make: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()  # type: ignore[operator]
