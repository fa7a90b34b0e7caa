"""A ranker's gradient for the model of the reader's group, in that group's block of the update (FINDING)."""

import math
from dataclasses import dataclass

import numpy as np

from device_app.errors import NotEligible
from device_app.privacy.protections.secure_sum import secure_sum_of
from device_app.ranking.groups import GroupChoice, GroupModels
from device_app.training.gradients import GRADIENT_PREFIX, GradientFn, Params
from device_app.training.samples import SampleSource
from device_app.training.tasks.full_gradient import FullGradientTask
from device_app.training.tasks.task import Shapes, TaskInputs, Update
from protocol.protections import SecureSum

MEMBERS = "members"
MEMBER_SHARE = 0.5
GRADIENT_SHARE = math.sqrt(1 - MEMBER_SHARE**2)


@dataclass(frozen=True)
class GroupGradientTask:
    """`g.<parameter>` [K, *shape] with the gradient in block `group`, and `members` [K] with a mark there.

    The gradient is scaled into a ball of radius sqrt(3)/2 C and the mark is C/2, so that both together stay within the
    ball of radius C, and clipping afterwards doesn't change the mark.

    Args:
        whole: the task that computes the gradient, for one model.
        groups: the release's.
        group: the reader's own.
        clip: C.
    """

    whole: FullGradientTask
    groups: GroupModels
    group: int
    clip: float

    def shapes(self, params: Params) -> Shapes:
        """Return the shapes: for every parameter one block per group, and one count per group."""
        blocks = {GRADIENT_PREFIX + name: block.shape for name, block in self.groups.weights.items()}
        return {**blocks, MEMBERS: (self.groups.size,)}

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the update with the reader's block. Raises ValueError if there are no samples."""
        own = self.whole.run(self.groups.of(self.group), samples, grad, rng)
        length = math.sqrt(sum(float(np.square(each, dtype=np.float64).sum()) for each in own.tensors.values()))
        scale = min(1.0, GRADIENT_SHARE * self.clip / length) if length else 1.0
        tensors = {name: np.zeros(shape, np.float32) for name, shape in self.shapes(params).items()}
        for name, gradient in own.tensors.items():
            tensors[name][self.group] = gradient * scale
        tensors[MEMBERS][self.group] = MEMBER_SHARE * self.clip
        return Update(tensors, own.loss, own.samples)


def group_gradient_task(inputs: TaskInputs) -> GroupGradientTask:
    """Make the task from the release's groups. Raises NotEligible if there are none, or if no masks hide the group."""
    protection, groups, choice = chosen_groups(inputs)
    return GroupGradientTask(
        FullGradientTask(
            negatives=inputs.manifest.negatives,
            samples_limit=inputs.manifest.samples_limit,
            features=inputs.release.manifest.models[str(inputs.manifest.model)].features,
        ),
        groups,
        choice.in_force(inputs.reading.clicked(inputs.release.manifest.encoder)),
        protection.clip,
    )


def chosen_groups(inputs: TaskInputs) -> tuple[SecureSum, GroupModels, GroupChoice]:
    """Return the protection, groups and group choice for a round about groups. Raises NotEligible."""
    model, release = inputs.manifest.model, inputs.release
    entry = release.manifest.models.get(str(model))
    if model is None or entry is None or entry.groups is None:
        raise NotEligible("it trains groups of readers, but the release has none.")
    protection = secure_sum_of(inputs.manifest.protection, "the reader's group may only be sent in a secure sum.")
    groups = release.groups(model)
    choice = GroupChoice(release.graph(model, "score"), groups, features=len(entry.features), threads=inputs.threads)
    return protection, groups, choice
