"""The reader's row in sums from which prototypes and groups are learned.

`NearestPrototypeTask` puts the reader's vector in the row of its nearest prototype, for the codebook of reports.
`NearestGroupTask` is a device's part in FINDING's clustering by sums (section 4.2): its vector in its nearest group's
row, and its move between groups.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.errors import NotEligible
from device_app.privacy.mechanisms.code import nearest
from device_app.privacy.protections.secure_sum import secure_sum_of
from device_app.privacy.reporter import user_vector
from device_app.ranking.groups import GroupChoice
from device_app.training.gradients import GradientFn, Params
from device_app.training.samples import SampleSource
from device_app.training.tasks.group_gradient import chosen_groups
from device_app.training.tasks.task import Shapes, TaskInputs, Update
from protocol.ring import MEMBERS, PROTOTYPES, SUMS, VECTOR_SHARE, member_share
from protocol.tensors import TensorError, TensorSpec, unpack


@dataclass(frozen=True)
class NearestPrototypeTask:
    """The reader's part in one step of Lloyd's algorithm.

    `sums` [K, D] has the reader's unit vector in the row of its nearest prototype, `members` [K] a one there; both are
    scaled so that the update lies in the ball of radius clip.

    Args:
        prototypes: [K, D], rows of length 1.
        clicks: vectors [H, D] of the newest clicks, without muted interests.
        clip: C.
    """

    prototypes: NDArray[np.float32]
    clicks: NDArray[np.float32]
    clip: float

    def shapes(self, params: Params) -> Shapes:
        """Return the shapes of the sum of vectors and of the counts."""
        return {SUMS: self.prototypes.shape, MEMBERS: self.prototypes.shape[:1]}

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the update with the reader's row. Raises NotEligible for a reader without clicks, or whose clicks
        cancel out."""
        vector = user_vector(self.clicks) if len(self.clicks) else np.zeros(self.prototypes.shape[1], np.float32)
        if not vector.any():
            raise NotEligible("this device has no clicks to find the nearest prototype by.")
        row = nearest(self.prototypes, vector)
        sums = np.zeros(self.prototypes.shape, np.float32)
        members = np.zeros(len(self.prototypes), np.float32)
        sums[row] = vector * (VECTOR_SHARE * self.clip)
        members[row] = member_share() * self.clip
        return Update({SUMS: sums, MEMBERS: members}, loss=0.0, samples=1)


def nearest_prototype_task(inputs: TaskInputs) -> NearestPrototypeTask:
    """Make the task from the round's draft of prototypes. Raises NotEligible if the draft doesn't fit the release."""
    manifest, release = inputs.manifest, inputs.release.manifest
    shape = manifest.shapes.get(SUMS, ())
    protection = secure_sum_of(
        manifest.protection, "a sum of single readers' vectors is taken part in under masks only."
    )
    if len(shape) != 2 or shape[1] != release.dimensions:
        raise NotEligible(f"its prototypes have the shape {shape}, news vectors have {release.dimensions} numbers.")
    content = inputs.materials(PROTOTYPES)
    try:
        draft = unpack(content, {PROTOTYPES: TensorSpec("float32", shape)}, limit_bytes=len(content))[PROTOTYPES]
    except TensorError as broken:
        raise NotEligible(f"its prototypes are damaged: {broken}") from broken
    return NearestPrototypeTask(draft, inputs.reading.clicked(release.encoder), protection.clip)


VECTORS, MOVES = "vectors", "moves"
SHARE = 0.5
"""Share of the clip for each of the two tensors; together their length is at most sqrt(2) / 2 of the clip."""


@dataclass(frozen=True)
class NearestGroupTask:
    """The reader's vector in the row of its next group, and its move between groups.

    `vectors` [K, D]: half the clip times the reader's unit vector, in the row of its next group; `moves` [K, K]: half
    the clip at (current group, next group).

    Args:
        choice: the device's choice among the release's groups.
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
        """Return the shapes: [K, D] for the summed user vectors and [K, K] for the moves between groups."""
        return {VECTORS: (self.size, self.dimensions), MOVES: (self.size, self.size)}

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the reader's vector and move. Raises NotEligible for a reader without clicks."""
        if not len(self.clicks):
            raise NotEligible("this device has no clicks to find its group by.")
        group, vector = self.choice.drafted(self.clicks)
        tensors = {name: np.zeros(shape, np.float32) for name, shape in self.shapes(params).items()}
        tensors[VECTORS][group] = SHARE * self.clip * vector
        tensors[MOVES][self.choice.in_force(self.clicks), group] = SHARE * self.clip
        return Update(tensors, loss=0.0, samples=1)


def nearest_group_task(inputs: TaskInputs) -> NearestGroupTask:
    """Make the task from the release's groups. Raises NotEligible like `group_gradient_task`."""
    protection, groups, choice = chosen_groups(inputs)
    release = inputs.release.manifest
    return NearestGroupTask(
        choice, inputs.reading.clicked(release.encoder), groups.size, release.dimensions, protection.clip
    )
