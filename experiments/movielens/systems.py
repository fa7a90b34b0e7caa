"""FL-MV-DSSM, SEMI-FL-MV-DSSM and FL-DSSM as values of one setting, and what the paper leaves open (section IV)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

View = Literal["view_1", "view_2"]
VIEWS: tuple[View, ...] = ("view_1", "view_2")
ROUNDS, COHORT, CLIP = 100, 100, 0.5


@dataclass(frozen=True)
class System:
    """views: what a device holds. personal: user towers never leave it (`aggregate_user_submodel` is off)."""

    views: tuple[View, ...]
    personal: bool


SYSTEMS: dict[str, System] = {
    "FL-DSSM View-1": System(("view_1",), personal=False),
    "FL-DSSM View-2": System(("view_2",), personal=False),
    "FL-MV-DSSM": System(VIEWS, personal=False),
    "SEMI-FL-MV-DSSM": System(VIEWS, personal=True),
}


@dataclass(frozen=True)
class Choices:
    """How a system is trained.

    Given by the paper: rounds, cohort, batches of 20, local_rate, clip C. Not given, and chosen on a validation split
    of the training interactions (docs/decisions/040): gamma; negatives, N of a pass; batches, the most a device
    takes in a round; server_rate and server_tau, the peak of a half cosine that ends at 0 and the tau of Adam (the
    paper: .001 throughout); settling, passes of a personal user tower alone before prediction.

    sigma: the noise multiplier of each view, 0 for none (the paper: 1).
    """

    rounds: int = ROUNDS
    cohort: int = COHORT
    local_rate: float = 0.2
    clip: float = CLIP
    sigma: float = 0.0
    gamma: float = 5.0
    negatives: int = 150
    batches: int = 4
    server_rate: float = 0.015
    server_tau: float = 3e-4
    settling: int = 2

    def __post_init__(self) -> None:
        for name in (
            "rounds",
            "cohort",
            "local_rate",
            "clip",
            "gamma",
            "negatives",
            "batches",
            "server_rate",
            "server_tau",
        ):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.sigma < 0 or self.settling < 0:
            raise ValueError(f"sigma and settling must be 0 or more, got {self.sigma} and {self.settling}")
        if self.sigma and math.isinf(self.clip):
            raise ValueError("clip must be finite where there is noise, whose size it sets")

    def server_rate_of(self, round_number: int) -> float:
        """Rounds count from 0."""
        return self.server_rate * (1 + math.cos(math.pi * round_number / self.rounds)) / 2
