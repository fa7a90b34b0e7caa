"""FINDING's round: gradients at the models of groups, summed by group (Algorithm 1).

A device fills the block of its own group and leaves zeros in the others. From a secure sum the server learns the sum
and the size of each group, but no device's group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import PREFIX, Aggregate
from backend.federation.grouping.group_models import Layers, Model, Models, Personalisation, interpolated
from backend.federation.optimizers import Memory, MemoryOptimizer
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.strategies.clustering import groups_of, moves_since
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.releases.blobs import ReleaseDraft
from backend.releases.codebooks import put_weights
from protocol.protections import SecureSum
from protocol.releases import Groups
from protocol.rounds import RoundManifest

MEMBERS = "members"
MEMBER_SHARE = 0.5
"""The number that a device writes for its group, as a share of the clip: together with a gradient within sqrt(3)/2 of
the clip it stays within the clip, so the protection's own scaling never changes the count.
"""
GROUP_MEMORY = "group"


@dataclass(frozen=True)
class Grouped:
    """Makes a step of the global and all group models, and interpolates for the next round.

    Under noise the number of members is very uncertain: a group's sum is then divided by at least half of its even
    share of the cohort, so that a count near zero can't turn noise into a long step. In exact sums the counts are
    exact, and a group without a device stays unchanged.

    Args:
        layers: the ranker's layers, bottom first.
        personalisation: lambda by round and layer; rounds are those of this system, from 1.
        recluster_every: T: after so many rounds of this system a round of `clustering` follows.
        clustering: name of that system.
        as_published: whether readers are grouped by the global model of that round, and also after the first one: the
            paper clusters before it, where no model has been trained yet.
    """

    layers: Layers
    personalisation: Personalisation
    recluster_every: int
    clustering: str
    as_published: bool = False

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask for a block for each group and parameter, and a count for each group.

        Raises RoundImpossible without groups.
        """
        groups = groups_of(system, context)
        weights = context.releases.weights(context.release, str(system.model))
        shapes: dict[str, tuple[int, ...]] = {
            PREFIX + name: (groups.size, *value.shape) for name, value in weights.items()
        }
        return Plan({**shapes, MEMBERS: (groups.size,)})

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Return a release with the global model after its step and the next groups' models."""
        protection, optimizer, model = secure_sum_of(manifest.protection), system.optimizer, str(system.model)
        assert optimizer is not None
        models = self._models(system, context, groups_of(system, context))
        ready, members = self.advance(models, total, protection, optimizer)
        rounds = ready.shared.memory.steps
        published = put_weights(
            context.releases,
            {name: np.stack([group.weights[name] for group in ready.groups]) for name in ready.shared.weights},
        )

        due = rounds % self.recluster_every == 0 or (self.as_published and rounds == 1)

        def draft(before: ReleaseDraft) -> ReleaseDraft:
            entry = before.models[model]
            assert entry.groups is not None
            changed = entry.groups.model_copy(update={"weights": published})
            if due and self.as_published:
                changed = changed.model_copy(update={"next_vectors": entry.weights})
            return replace(before, models={**before.models, model: entry.model_copy(update={"groups": changed})})

        return RoundResult(
            weights={model: dict(ready.shared.weights)},
            draft=draft,
            memory=joined(ready),
            next=replace(context.request, system=self.clustering) if due else None,
            facts={
                "members": [round(float(each), 2) for each in members],
                "shares": [
                    round(float(each), 5) for each in self.personalisation.coefficients(rounds + 1, self.layers)
                ],
            },
        )

    def advance(
        self, models: Models, total: Aggregate, protection: SecureSum, optimizer: MemoryOptimizer
    ) -> tuple[Models, NDArray[np.float64]]:
        """Return the next models of devices, and the weight of each group in the sum, [K].

        The weight is the group's number of devices if these have equal weights, and of samples if the sum weights them
        by n_u. Under noise it is an estimate.
        """
        sums = total.sums()
        members = np.clip(sums.pop(MEMBERS) / (MEMBER_SHARE * protection.clip), 0.0, total.count)
        gradients = {name.removeprefix(PREFIX): each for name, each in sums.items()}
        everybody = total.within_reach(
            {name: each.sum(axis=0) / total.count for name, each in gradients.items()}, blocks=len(members)
        )
        divisors = _divisors(members, total.count, noisy=protection.sigma > 0)
        by_group = {
            group: total.within_reach({name: each[group] / divisor for name, each in gradients.items()}, divisor)
            for group, divisor in enumerate(divisors)
            if divisor > 0
        }
        stepped = models.stepped(optimizer, everybody, by_group)
        coefficients = self.personalisation.coefficients(stepped.shared.memory.steps + 1, self.layers)
        return interpolated(stepped, self.layers, coefficients), members

    def _models(self, system: FederatedSystem, context: RoundContext, groups: Groups) -> Models:
        """Return the release's weights with the optimizer's state of the last round.

        If readers were regrouped since then, the state is combined by their moves.
        """
        shared = context.releases.weights(context.release, str(system.model))
        blocks = context.releases.read_weights(groups.weights)
        kept = divided(context.memory, groups.size)
        for moves in moves_since(context, system.name, self.clustering):
            kept = Models(kept.shared, kept.groups).reinitialised(moves)
        return Models(
            Model(shared, kept.shared.memory),
            tuple(
                Model({name: block[group] for name, block in blocks.items()}, kept.groups[group].memory)
                for group in range(groups.size)
            ),
        )


def joined(models: Models) -> Memory:
    """Return all models' optimizer states as one; groups have names `group<k>/<name>`."""
    tensors: dict[str, NDArray[Any]] = dict(models.shared.memory.tensors)
    for group, model in enumerate(models.groups):
        prefix = f"{GROUP_MEMORY}{group}/"
        tensors[f"{prefix}steps"] = np.array(float(model.memory.steps))
        tensors |= {prefix + name: each for name, each in model.memory.tensors.items()}
    return Memory(models.shared.memory.steps, tensors)


def divided(memory: Memory, groups: int) -> Models:
    """Return the states that `joined` combined, without weights.

    They are empty before the first round.
    """
    shared = {name: each for name, each in memory.tensors.items() if "/" not in name}
    found = []
    for group in range(groups):
        prefix = f"{GROUP_MEMORY}{group}/"
        own = {name.removeprefix(prefix): each for name, each in memory.tensors.items() if name.startswith(prefix)}
        steps = round(float(own.pop("steps", np.zeros(()))))
        found.append(Model({}, Memory(steps, own)))
    return Models(Model({}, Memory(memory.steps, shared)), tuple(found))


def _divisors(members: NDArray[np.float64], count: int, *, noisy: bool) -> NDArray[np.float64]:
    """Return what each group's sum is divided by; 0: no device of the group took part."""
    if noisy:
        return np.maximum(members, count / (2 * len(members)))
    counted = np.rint(members)
    return np.where(counted > 0, counted, 0.0)
