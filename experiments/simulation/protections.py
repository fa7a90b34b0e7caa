"""How simulated devices protect an update: the live mechanisms with a seeded generator.

Formal guarantees: none, since the noise can be drawn again from the seed. The figures say what the same noise from a
cryptographic source would cost.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import dp_accounting
import numpy as np
from numpy.typing import NDArray

from device_app.privacy.clipping import clip_elementwise
from device_app.privacy.noise_sources import laplace
from device_app.privacy.private_parameters import SharedUpdate
from device_app.training.tasks.task import Update
from protocol.protections import LocalLaplace
from protocol.releases import ModelEntry

LABORATORY = ModelEntry(architecture="laboratory", role="ranker", graphs={})


@dataclass(frozen=True)
class GeneratorNoise:
    """A numpy generator as a source of noise bits; for simulations only."""

    rng: np.random.Generator

    def uniform_bits(self, n: int) -> bytes:
        return self.rng.bytes(n)


@dataclass(frozen=True)
class ElementwiseLaplace:
    """Elementwise clip and Laplace noise on the device (Uni-FedRec, eq. 8; FedNewsRec, eqs. 4 and 5)."""

    protection: LocalLaplace

    def __call__(self, update: Update, rng: np.random.Generator) -> Mapping[str, NDArray[np.float32]]:
        clipped = clip_elementwise(SharedUpdate(update.tensors, LABORATORY), self.protection.clip)
        source = GeneratorNoise(rng)
        return {
            name: np.asarray(tensor + laplace(source, self.protection.scale, tensor.shape), dtype=np.float32)
            for name, tensor in clipped.tensors.items()
        }


@dataclass(frozen=True)
class CentralGaussian:
    """An L2 clip on each device, and each device's share of the sum's noise.

    The sum over a full cohort carries N(0, (noise_multiplier clip)^2) in each coordinate, as if a trusted server had
    added it: what a secure sum with noise inside it opens.
    """

    clip: float
    noise_multiplier: float
    cohort: int

    def __post_init__(self) -> None:
        for name in ("clip", "noise_multiplier", "cohort"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: must be above 0, got {getattr(self, name)}")

    def __call__(self, update: Update, rng: np.random.Generator) -> Mapping[str, NDArray[np.float32]]:
        length = math.sqrt(sum(float(np.square(each, dtype=np.float64).sum()) for each in update.tensors.values()))
        factor = min(1.0, self.clip / length) if length else 1.0
        spread = self.noise_multiplier * self.clip / math.sqrt(self.cohort)
        return {
            name: np.asarray(factor * each + rng.normal(scale=spread, size=each.shape), dtype=np.float32)
            for name, each in update.tensors.items()
        }


@cache  # a search of several seconds, which a study's tables repeat
def noise_multiplier(*, epsilon: float, delta: float, cohort: int, readers: int, rounds: int) -> float:
    """Return the noise over the clip that gives (epsilon, delta) after all rounds, by RDP of the subsampled Gaussian.

    Neighbouring data sets differ by one reader, present or not. Every reader is assumed to join a round with
    probability cohort / readers, independently (Poisson sampling), while the simulation draws cohorts of one size.
    """

    def event(multiplier: float) -> dp_accounting.DpEvent:
        once = dp_accounting.PoissonSampledDpEvent(cohort / readers, dp_accounting.GaussianDpEvent(multiplier))
        return dp_accounting.SelfComposedDpEvent(once, rounds)

    found = dp_accounting.calibrate_dp_mechanism(
        dp_accounting.rdp.RdpAccountant, event, epsilon, delta, dp_accounting.LowerEndpointAndGuess(0.01, 1.0)
    )
    return float(found)
