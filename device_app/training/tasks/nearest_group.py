"""A device's part of FINDING's clustering by sums (section 4.2): its vector in its nearest group's row and its move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.errors import NotEligible
from device_app.ranking.groups import GroupChoice
from device_app.training.gradients import GradientFn, Params
from device_app.training.samples import SampleSource
from device_app.training.tasks.group_gradient import chosen_groups
from device_app.training.tasks.task import Shapes, TaskInputs, Update

VECTORS, MOVES = "vectors", "moves"
SHARE = 0.5
"""Of the clip, for each of the two tensors: their vector together has a length of at most sqrt(2) / 2 of it."""


@dataclass(frozen=True)
class NearestGroupTask:
    """`vectors` [K, D]: half the clip times the reader's unit vector in the row of its next group; `moves` [K, K]: half
    the clip where its group in force meets the next.

    Args:
        choice: by the release's groups.
        clicks: vectors [H, D] of the newest clicks.
        size: K.
        dimensions: D.
        clip: C.
    """

    choice: GroupChoice
    clicks: NDArray[np.float32]
    size: int
    dimensions: int
    clip: float

    def shapes(self, params: Params) -> Shapes:
        """[K, D] of the summed user vectors and [K, K] of the moves between groups."""
        return {VECTORS: (self.size, self.dimensions), MOVES: (self.size, self.size)}

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """The reader's vector and move, as the class says. Raises NotEligible for a reader without clicks."""
        if not len(self.clicks):
            raise NotEligible("there are no clicks by which a group could be found.")
        group, vector = self.choice.drafted(self.clicks)
        tensors = {name: np.zeros(shape, np.float32) for name, shape in self.shapes(params).items()}
        tensors[VECTORS][group] = SHARE * self.clip * vector
        tensors[MOVES][self.choice.in_force(self.clicks), group] = SHARE * self.clip
        return Update(tensors, loss=0.0, samples=1)


def nearest_group_task(given: TaskInputs) -> NearestGroupTask:
    """Made from the release's groups. Raises NotEligible as `group_gradient_task`."""
    protection, groups, choice = chosen_groups(given)
    release = given.release.manifest
    return NearestGroupTask(
        choice, given.reading.clicked(release.encoder), groups.size, release.dimensions, protection.clip
    )
