"""What the mechanisms that tell one of K values have in common."""

from __future__ import annotations

from dataclasses import dataclass

from device_app.privacy.exact import rational
from device_app.wire.recall import CODEBOOK_LIMIT


@dataclass(frozen=True)
class CategoricalMechanism:
    """One of `size` values told at `epsilon`. Raises ValueError for a size or an epsilon that no release may offer."""

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
