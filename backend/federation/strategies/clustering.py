"""Find readers' groups from sums alone (FINDING, section 4.2).

A round votes on drafted centroids and makes a Lloyd step; as published, rounds repeat that step until K-means has
settled. In FINDING as published every reader's vector is uploaded. Here a device determines its own group and writes
its vector into that group's row. From a secure sum the server learns the groups' sums, and how many devices moved from
which group to which.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, select

from backend.db.engine import reading_session
from backend.db.tables import RoundRow
from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundImpossible, UpdateRefused
from backend.federation.grouping.group_models import Model, Models
from backend.federation.grouping.reader_groups import lloyd_step
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.releases.blobs import ReleaseDraft
from backend.releases.codebooks import put_centroids, put_weights, read_centroids
from protocol.protections import SecureSum
from protocol.releases import Groups
from protocol.rounds import RoundManifest

VECTORS, MOVES = "vectors", "moves"
STEP = "lloyd_step"
"""The fact of a round whose Lloyd step another round continues."""
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
