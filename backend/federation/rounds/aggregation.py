"""Aggregate the updates of a round: add up single updates, or open its secure sum."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.engine import reading_session
from backend.db.tables import ParticipationRow, RoundRow
from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundClosed, SumFailed, UpdateRefused
from backend.federation.protections.protection import ServerProtection
from backend.federation.protections.registry import resolve
from backend.federation.protections.sum_bounds import UploadRules
from backend.federation.rounds.update_store import UpdateDamaged, UpdateStore
from backend.federation.secagg.secure_sum import OpenedSum
from backend.federation.secagg.sum_store import SecureSumStore
from backend.federation.strategies.joined_sums import JoinOfSums
from backend.federation.strategies.robust_mean import Centre, Stacked
from protocol.ring import WeightedSum
from protocol.rounds import RoundManifest
from protocol.secagg import SumTerms


@dataclass(frozen=True)
class AggregatedUpdates:
    """The aggregated updates of a round.

    description: of the updates, for the note of the release. facts: figures for the round's row. finish: writes further
    changes of the round's row and its sum in the transaction that ends the round. left_out: a sentence for the devices
    whose updates were left out of the result, or None.
    """

    total: Aggregate
    description: str
    facts: Mapping[str, Any]
    finish: Callable[[Session, RoundRow], None]
    left_out: str | None = None


def aggregate_updates(
    engine: Engine, inbox: UpdateStore, rules: UploadRules, row: RoundRow, centre: Centre | None = None
) -> AggregatedUpdates:
    """Add up a round's updates one by one, or collect them all for a robust mean (`centre`).

    Damaged updates are left out. Raises RoundClosed if fewer than `cohort_minimum` undamaged updates remain.
    """
    total = Aggregate(rules.shapes) if centre is None else Stacked(rules.shapes, centre)
    accepted = _accepted(engine, row)
    for pseudonym, sha256 in accepted:
        try:
            total.add(rules.read(inbox.read(f"round-{row.number}", pseudonym, sha256)))
        except (UpdateDamaged, UpdateRefused):
            continue
    damaged = len(accepted) - total.count
    if total.count < row.cohort_minimum:
        raise RoundClosed(
            f"{damaged} accepted updates are damaged on disk; {total.count} are left, and the minimum is "
            f"{row.cohort_minimum}."
        )
    facts = {"updates": total.count, "damaged": damaged}
    return AggregatedUpdates(total, f"{total.count} updates", facts, lambda session, mine: None)


def aggregate_sum(store: SecureSumStore, manifest: RoundManifest, join: JoinOfSums | None = None) -> AggregatedUpdates:
    """Open the secure sum of a round, or the sums of its groups, and return the aggregate.

    If the server is killed before the round is concluded, opening again gives the same result.

    Raises ValueError for a round without a secure sum, SumFailed if the sum can't be opened, and UpdateRefused if the
    sum exceeds the bounds of honest devices and their noise (`ServerProtection.check`). In a round with groups, a group
    whose sum fails in one of the last two ways is left out instead, and so are groups that the join leaves out;
    UpdateRefused is raised if too few groups remain.

    Formal guarantees: the server reads only the opened sum of all survivors, at least `cohort_minimum` of them, of the
    cohort or of each of its groups; no device is in two groups. If nobody colludes, and with the noise shares of the
    survivors, epsilon is `spending.epsilon_spent` at the rho of the one opening that contains the device, computed with
    the smallest number of survivors of any opened sum.
    """
    protection, terms = resolve(manifest.protection), manifest.terms
    if terms is None:
        raise ValueError(f"{manifest.round}: this round has no secure sum to open")
    if join is not None and (parts := store.parts(manifest.round)):
        return _aggregate_parts(store, parts, manifest, protection, terms, join)
    opened = store.stages.opened(manifest.round)
    sums, survivors = _passed(protection, manifest.shapes, terms, opened), len(opened.survivors)
    facts = {"survivors": survivors, "weight": sums.samples}
    description = f"a secure sum of {survivors} devices"
    return _aggregated(
        store, manifest, protection, Aggregate.of_opened(sums, protection.radius), description, survivors, facts
    )


def _aggregate_parts(
    store: SecureSumStore,
    parts: Sequence[str],
    manifest: RoundManifest,
    protection: ServerProtection,
    terms: SumTerms,
    join: JoinOfSums,
) -> AggregatedUpdates:
    sizes: list[int] = []
    passed: list[WeightedSum] = []
    refusals: list[str] = []
    for part in parts:
        try:
            opened = store.stages.opened(part)
            sizes.append(len(opened.survivors))
            passed.append(_passed(protection, manifest.shapes, terms, opened))
        except (SumFailed, UpdateRefused) as refused:
            refusals.append(str(refused))
    if len(passed) < join.left:
        raise UpdateRefused(
            f"{len(passed)} groups are left; {join.left} are needed. The first refusal: {refusals[0]}",
            field="body",
            limit=str(join.left),
        )
    total = join.join(passed, protection.radius, protection.noise_variance(1))
    joined, left_out = len(total.parts), len(parts) - len(total.parts)
    facts = {"survivors": sum(sizes), "weight": total.count, "groups": sizes, "groups_joined": joined}
    description = f"{join.words} of {joined} secure sums of at least {min(sizes)} devices"
    aggregated = _aggregated(store, manifest, protection, total, description, min(sizes), facts)
    if not left_out:
        return aggregated
    # The members of these groups send nothing further; they can only learn this from a notice that everyone may read.
    notice = (
        f"{left_out} of {len(parts)} groups were left out after their devices had sent everything, so nothing that "
        "those devices sent is in the result. The groups are not named."
    )
    return replace(aggregated, left_out=notice)


def _aggregated(
    store: SecureSumStore,
    manifest: RoundManifest,
    protection: ServerProtection,
    total: Aggregate,
    description: str,
    survivors: int,
    facts: Mapping[str, Any],
) -> AggregatedUpdates:
    """Build the result; `survivors` is the number of devices in the smallest opened sum."""
    epsilon = _epsilon(protection, survivors, sum(math.prod(shape) for shape in manifest.shapes.values()))
    delta = None if epsilon is None else protection.delta

    def finish(session: Session, mine: RoundRow) -> None:
        mine.survivors, mine.epsilon, mine.delta = survivors, epsilon, delta
        store.finish(session, manifest.round)

    return AggregatedUpdates(total, description, {**facts, "epsilon": epsilon, "delta": delta}, finish)


def _passed(
    protection: ServerProtection, shapes: Mapping[str, tuple[int, ...]], terms: SumTerms, opened: OpenedSum
) -> WeightedSum:
    """Decode and check an opened sum; the ring vector is not kept.

    Raises UpdateRefused beyond the bounds.
    """
    survivors = len(opened.survivors)
    sums = protection.decode(shapes, terms, opened.vector, survivors)
    protection.check(sums, survivors)
    return sums


def _epsilon(protection: ServerProtection, survivors: int, coordinates: int) -> float | None:
    rho = protection.account(coordinates, survivors).rho
    if rho is None or protection.delta is None:
        return None
    # Importing dp-accounting takes seconds, and only a noisy sum needs it.
    from backend.federation.accounting import epsilon_spent

    return epsilon_spent(rho, protection.delta)


def _accepted(engine: Engine, row: RoundRow) -> list[tuple[str, str]]:
    with reading_session(engine) as session:
        found = session.execute(
            select(ParticipationRow.pseudonym, ParticipationRow.sha256)
            .where(ParticipationRow.round == row.number, ParticipationRow.sha256.is_not(None))
            .order_by(ParticipationRow.number)
        ).all()
    return [(pseudonym, str(sha256)) for pseudonym, sha256 in found]
