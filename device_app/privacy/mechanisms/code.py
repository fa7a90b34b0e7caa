"""One of K numbers by randomised response (docs/decisions/017), in the modes `interest`, the default, and `code`."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.exact_samplers import randomised_response, rational
from device_app.privacy.noise_sources import NoiseSource
from protocol.recall import CODEBOOK_LIMIT


@dataclass(frozen=True)
class CategoricalMechanism:
    """Sends one of `size` values at `epsilon`. Raises ValueError for a size or epsilon that no release may offer."""

    size: int
    epsilon: float

    def __post_init__(self) -> None:
        if not 2 <= self.size <= CODEBOOK_LIMIT:
            raise ValueError(f"size must be 2 to {CODEBOOK_LIMIT}; got {self.size}")
        rational(self.epsilon)

    @property
    def epsilon_per_report(self) -> float:
        """What drawing one report costs."""
        return self.epsilon

    def require(self, value: int, name: str) -> None:
        """Raises ValueError unless the value is 0 .. K - 1."""
        if not 0 <= value < self.size:
            raise ValueError(f"{name} must be 0 to {self.size - 1}; got {value}")


NAME = "code"


@dataclass(frozen=True)
class RandomisedCode(CategoricalMechanism):
    """A reader's code y in 0 .. K - 1 is sent as itself with probability e^eps / (e^eps + K - 1), else as another.

    size: K. epsilon: eps of one report. K = 16 with 4 is the default, K = 64 with 8 the "high utility" choice: about
    e^eps / 3 codes carry the most information (docs/results/recall.md). Nothing else is sent: no counts, no channels.

    Formal guarantees, in pure local differential privacy, for any two readers whatsoever:

    - one drawn code: eps, exactly; `exact_samplers.randomised_response` samples it with integers from the system's
      generator;
    - the code drawn for a true code is stored and sent again: over a reader's lifetime the cost is eps times the number
    of *distinct* true codes, which the ledger adds up and limits.

    Not covered: when and how often a report changes (a reader whose code never changes never sends a second one, so the
    lifetime bound compares readers whose codes change at the same times), that a device sends a request at all, and its
    network address. For a release with other prototypes codes are drawn and charged again.
    """

    @property
    def truth(self) -> float:
        """P(the code sent is the true one): 0.7845 at K = 16, eps = 4."""
        return 1 / (1 + (self.size - 1) * math.exp(-self.epsilon))

    def release(self, code: int, source: NoiseSource) -> int:
        """Return the code to send. See the class for the guarantee. Raises ValueError unless code is 0 .. K - 1."""
        self.require(code, "code")
        return int(randomised_response(source, np.array([code], dtype=np.int64), self.size, self.epsilon)[0])

    def parameters(self) -> dict[str, float]:
        """Return the mechanism's numbers, for the ledger."""
        return {"size": float(self.size), "epsilon": self.epsilon}

    def figures(self) -> dict[str, float]:
        """Return its figures for display, by their names in its label's texts."""
        return {"size": self.size, "last": self.size - 1, "percent": 100 * self.truth}


def nearest(prototypes: NDArray[np.float32], user: NDArray[np.float32]) -> int:
    """argmax_k <prototype_k, u>: prototypes [K, D], user [D]; ties go to the first.

    Raises ValueError for another shape, or a user vector that is not finite.
    """
    if prototypes.ndim != 2 or user.shape != prototypes.shape[1:]:
        raise ValueError(f"user has shape {user.shape}, prototypes {prototypes.shape}")
    if not np.isfinite(user).all():
        raise ValueError("user has values that are not finite: nothing is released")
    return int(np.argmax(prototypes @ user))
