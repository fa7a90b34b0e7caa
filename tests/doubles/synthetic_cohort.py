"""Readers with three coordinates and a device that needs no graph, so that other processes start quickly."""

from __future__ import annotations

from functools import partial

import numpy as np

from device_app.training.gradients import Batch, Gradients, Params
from device_app.training.tasks.full_gradient import FullGradientTask
from experiments.datasets.mind import Impressions, RaggedArray
from experiments.datasets.samples import TrainingSamples, training_samples
from experiments.simulation.clients import SimulatedDevice
from experiments.simulation.readers import Library, SimulatedReader

NEWS, READERS = 30, 7


def difference_gradient(params: Params, batch: Batch) -> Gradients:
    """Loss 1/2 |w - mean(positive - mean click)|^2."""
    target = (batch["candidates"][:, 0] - batch["clicks"].mean(axis=1)).mean(axis=0)
    slope = params["w"] - target
    return Gradients(float(slope @ slope) / 2, {"g.w": slope.astype(np.float32)})


def made_up() -> tuple[TrainingSamples, Library]:
    rng = np.random.default_rng(0)
    histories = RaggedArray.of([rng.permutation(NEWS)[:9] for _ in range(READERS)])
    users = tuple(map(str, range(READERS)))
    nothing = RaggedArray.of([[] for _ in users])
    split = Impressions(users, users, np.zeros(READERS, np.int64), histories, nothing, np.zeros(0, np.int64))
    return training_samples(split, NEWS), Library.of(rng.normal(size=(NEWS, 3)).astype(np.float32))


def make_device(samples: TrainingSamples, library: Library) -> SimulatedDevice:
    source = partial(SimulatedReader, samples, library=library)
    return SimulatedDevice(FullGradientTask(negatives=2, samples_limit=2), difference_gradient, source, seed=5)
