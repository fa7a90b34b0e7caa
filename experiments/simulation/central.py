"""Central training on all samples: the baseline of federated training."""

import numpy as np

from backend.federation.optimizers import Optimizer, Weights
from device_app.training.gradients import GRADIENT_PREFIX, GradientFn
from device_app.training.tasks.full_gradient import ranker_batch
from experiments.datasets.samples import TrainingSamples
from experiments.simulation.readers import Library
from experiments.simulation.rounds import AfterRound, Trained


def train_centrally(
    grad: GradientFn,
    samples: TrainingSamples,
    library: Library,
    weights: Weights,
    optimizer: Optimizer,
    *,
    steps: int,
    batch: int,
    negatives: int,
    seed: int,
    after_step: AfterRound | None = None,
) -> Trained:
    """Train on shuffled batches, epoch after epoch; negatives are drawn at each use."""
    rng = np.random.default_rng(seed)
    if not 1 <= batch <= len(samples):
        raise ValueError(f"batch: must be between 1 and the {len(samples)} samples, got {batch}")
    current = {name: np.array(value, dtype=np.float32) for name, value in weights.items()}
    losses = []
    order = rng.permutation(len(samples))
    for step in range(steps):
        if len(order) < batch:
            order = rng.permutation(len(samples))
        rows, order = order[:batch], order[batch:]
        drawn = library.samples(samples.clicks[rows], samples.candidates(rows, negatives, rng))
        found = grad(current, ranker_batch(drawn, slice(None)))
        gradient = {name.removeprefix(GRADIENT_PREFIX): each.astype(np.float64) for name, each in found.tensors.items()}
        current = optimizer.step(current, gradient)
        losses.append(found.loss)
        if after_step is not None:
            after_step(step + 1, current)
    return Trained(current, tuple(losses))
