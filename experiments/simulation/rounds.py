"""Rounds without HTTP: the live task, aggregation, strategy and optimizer with a simulated cohort."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate, gradient_shapes
from backend.federation.optimizers import Optimizer, Weights
from backend.federation.strategies.fedavg import FedAvg
from experiments.simulation.clients import Clients

AfterRound = Callable[[int, Mapping[str, NDArray[np.float32]]], None]
"""Called with the number of finished rounds and the new weights."""


@dataclass(frozen=True)
class Rounds:
    """The number of rounds, readers per round, and all readers."""

    rounds: int
    cohort: int
    readers: int
    seed: int

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"rounds: must be at least 1, got {self.rounds}")
        if not 1 <= self.cohort <= self.readers:
            raise ValueError(f"cohort: must be between 1 and the {self.readers} readers, got {self.cohort}")

    def cohort_of(self, round_number: int) -> list[int]:
        """Draw a round's readers without replacement."""
        rng = np.random.default_rng((self.seed, round_number))
        return [int(reader) for reader in rng.choice(self.readers, size=self.cohort, replace=False)]


@dataclass(frozen=True)
class Trained:
    """The final weights, and the cohort's mean loss before each step."""

    weights: dict[str, NDArray[np.float32]]
    losses: tuple[float, ...]


def simulate(
    clients: Clients,
    weights: Weights,
    plan: Rounds,
    strategy: FedAvg,
    optimizer: Optimizer,
    *,
    after_round: AfterRound | None = None,
) -> Trained:
    """Run the rounds. As on the server, no more than a few sums of updates are held at a time."""
    current = {name: np.array(value, dtype=np.float32) for name, value in weights.items()}
    losses = []
    for round_number in range(plan.rounds):
        total = Aggregate(gradient_shapes(current))
        loss = 0.0
        for block in clients.partial_sums(current, plan.cohort_of(round_number), round_number):
            total.add_sum(block.sums, block.readers)
            loss += block.loss / plan.cohort
        current = strategy.apply(total, current, optimizer)
        losses.append(loss)
        if after_round is not None:
            after_round(round_number + 1, current)
    return Trained(current, tuple(losses))
