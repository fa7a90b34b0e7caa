"""FINDING's round: gradients at the models of groups, summed by group (Algorithm 1).

A device fills the block of its own group and leaves zeros in the others. From a secure sum the server learns the sum
and the size of each group, but no device's group.

Readers' groups are found from sums alone (`Clustering`; FINDING, section 4.2). A round votes on drafted centroids and
makes a Lloyd step; as published, rounds repeat that step until K-means has settled. In FINDING as published every
reader's vector is uploaded. Here a device determines its own group and writes its vector into that group's row. From a
secure sum the server learns the groups' sums, and how many devices moved from which group to which.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, select

from backend.db.engine import reading_session
from backend.db.tables import RoundRow
from backend.federation.bounded_mean import PREFIX, Aggregate
from backend.federation.errors import RoundImpossible, UpdateRefused
from backend.federation.grouping import Layers, Model, Models, Personalisation, interpolated, lloyd_step
from backend.federation.optimizers import Memory, MemoryOptimizer
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.releases.blobs import ReleaseDraft
from backend.releases.codebooks import put_centroids, put_weights, read_centroids
from protocol.protections import SecureSum
from protocol.releases import Groups
from protocol.rounds import RoundManifest

VECTORS, MOVES = "vectors", "moves"
STEP = "lloyd_step"
"""Key in a round's facts: its Lloyd step is continued by another round."""
SETTLED = 1e-3
SHARE = 0.5
"""The length of a device's unit vector, and of its one move, as a share of the clip, so that together they stay within
it.
"""


@dataclass(frozen=True)
class Clustering:
    """Publishes the drafted centroids with group models by eq. 8.

    Their Lloyd step is the next draft. So the moves in eq. 8 lead to exactly those centroids that devices use from then
    on. A group that no device chose gets the global model and keeps its centroid.

    Args:
        iterations: most Lloyd steps before readers move, each in a round of its own that changes only the draft; they
            end earlier once no centroid moves by SETTLED.
    """

    iterations: int = 1

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask for each group's sum of vectors [K, D], and the moves [K, K].

        Raises RoundImpossible without groups.
        """
        size = groups_of(system, context).size
        return Plan({VECTORS: (size, context.release.dimensions), MOVES: (size, size)})

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Return a release with new groups; the global weights stay."""
        protection, model, store = secure_sum_of(manifest.protection), str(system.model), context.releases
        groups = groups_of(system, context)
        entry = context.release.models[model]
        assert entry.weights is not None
        moves = moved(total, protection)
        if moves.sum() != total.count:
            raise UpdateRefused(
                f"The opened sum counts {moves.sum():g} moves of {total.count} devices, each of which makes one.",
                field="moves",
                limit=str(total.count),
            )
        blocks = store.read_weights(groups.weights)
        before = Models(
            Model(store.weights(context.release, model)),
            tuple(Model({name: block[group] for name, block in blocks.items()}) for group in range(groups.size)),
        )
        after = before.reinitialised(moves)
        drafted = read_centroids(store, groups.next_centroids, groups.size)
        stepped = lloyd_step(total.sums()[VECTORS], drafted)
        step = 1 + (int(context.past.facts.get(STEP, 0)) if context.past is not None else 0)
        if step < self.iterations and float(np.abs(stepped - drafted).max()) > SETTLED:
            draft_only = groups.model_copy(update={"next_centroids": put_centroids(store, stepped)})
            return RoundResult(
                draft=_with_groups(model, draft_only),
                facts={STEP: step},
                next=replace(context.request, system=system.name),
            )
        found = Groups(
            size=groups.size,
            weights=put_weights(
                store, {name: np.stack([group.weights[name] for group in after.groups]) for name in blocks}
            ),
            centroids=groups.next_centroids,
            vectors=groups.next_vectors,
            next_centroids=put_centroids(store, stepped),
            next_vectors=entry.weights,
        )
        return RoundResult(draft=_with_groups(model, found), facts={MOVES: moves.astype(int).tolist()})


def _with_groups(model: str, groups: Groups) -> Callable[[ReleaseDraft], ReleaseDraft]:
    def draft(like: ReleaseDraft) -> ReleaseDraft:
        changed = like.models[model].model_copy(update={"groups": groups})
        return replace(like, models={**like.models, model: changed})

    return draft


def moved(total: Aggregate, protection: SecureSum) -> NDArray[np.float64]:
    """Return M [K, K] of eq. 8: how many devices moved from which group to which, none negative."""
    counts: NDArray[np.float64] = np.maximum(np.rint(total.sums()[MOVES] / (SHARE * protection.clip)), 0.0)
    return counts


def moves_since(context: RoundContext, system: str, clustering: str) -> list[NDArray[np.float64]]:
    """Return the moves of all clusterings since the last round of `system` with a memory."""
    with reading_session(context.engine) as session:
        last = session.scalar(
            select(RoundRow.number)
            .where(RoundRow.system == system, RoundRow.state == "applied", RoundRow.memory.is_not(None))
            .order_by(RoundRow.number.desc())
            .limit(1)
        )
        later = session.scalars(
            select(RoundRow)
            .where(RoundRow.system == clustering, RoundRow.state == "applied", RoundRow.number > (last or 0))
            .order_by(RoundRow.number)
        ).all()
        facts = [row.facts or {} for row in later]
        return [np.array(each[MOVES], dtype=np.float64) for each in facts if MOVES in each]


@dataclass(frozen=True)
class GroupMoves:
    """The result of a clustering: moves[i][j] devices moved from group i to group j, from 0."""

    round: str
    system: str
    published: str | None
    moves: tuple[tuple[int, ...], ...]


def last_moves(engine: Engine, clusterings: Collection[str], limit: int) -> list[GroupMoves]:
    """Return the moves of the last applied rounds of these systems, oldest first."""
    with reading_session(engine) as session:
        rows = session.scalars(
            select(RoundRow)
            .where(RoundRow.system.in_(clusterings), RoundRow.state == "applied", RoundRow.facts.is_not(None))
            .order_by(RoundRow.number.desc())
            .limit(limit)
        ).all()
        return [
            GroupMoves(
                f"round-{row.number}",
                row.system,
                None if row.published is None else f"r{row.published}",
                tuple(tuple(map(int, each)) for each in (row.facts or {})[MOVES]),
            )
            for row in reversed(rows)
            if MOVES in (row.facts or {})
        ]


def groups_of(system: FederatedSystem, context: RoundContext) -> Groups:
    """Return the groups of the system's model. Raises RoundImpossible if it has none."""
    groups = context.release.models[str(system.model)].groups
    if groups is None:
        raise RoundImpossible(f"Model {system.model!r} has no groups.", field="system")
    return groups


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
        recluster_every: T: after this many rounds of this system a round of `clustering` follows.
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
