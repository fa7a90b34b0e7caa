"""What the updates of a round come to: files summed one by one, or a secure sum opened."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.sessions import reading_session
from backend.db.tables_federation import ParticipationRow, RoundRow
from backend.federation.accounting.sum_bounds import check_sum, noise_reach
from backend.federation.errors import RoundClosed, UpdateRefused
from backend.federation.rounds.aggregate import Aggregate
from backend.federation.rounds.update_store import UpdateDamaged, UpdateStore
from backend.federation.rounds.upload_rules import UploadRules
from backend.federation.secagg.errors import SumFailed
from backend.federation.secagg.secure_sum import OpenedSum
from backend.federation.secagg.store import SecureSumStore
from backend.federation.strategies.robust_mean import Centre, MedianOfSums, Stacked
from device_app.wire.layout import WeightedSum
from device_app.wire.protections import SUMMED, SecureSum
from device_app.wire.rounds import RoundManifest
from device_app.wire.secagg import SumTerms
from device_app.wire.union import UnionMarks


@dataclass(frozen=True)
class AggregatedUpdates:
    """A round's updates together.

    words: what they are, for the release's note. finish: further changes of the round's row and its sum, within the
    transaction that concludes the round.
    """

    total: Aggregate
    words: str
    facts: Mapping[str, Any]
    finish: Callable[[Session, RoundRow], None]


def aggregate_updates(
    engine: Engine, inbox: UpdateStore, rules: UploadRules, row: RoundRow, centre: Centre | None = None
) -> AggregatedUpdates:
    """Sum a round's updates file by file, or hold them all for a robust mean; damaged ones are left out.

    Raises RoundClosed if too few are left whole on disk.
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


def aggregate_sum(book: SecureSumStore, manifest: RoundManifest, join: MedianOfSums | None = None) -> AggregatedUpdates:
    """Open a round's secure sum, or those of its groups; a server killed before the round is concluded opens the same.

    Raises SumFailed if the sum can't be opened, and UpdateRefused if it's more than honest devices and their noise can
    give (`sum_bounds`). A group of which either is true is left out instead, and UpdateRefused says that too few
    groups remain.

    Formal guarantees: nothing is read but the opened sum of all survivors, at least `cohort_minimum` of them, of the
    cohort or of each group of it; no device is in two groups. epsilon, with the noise shares that survived and nobody
    colluding, is `account.spent_on` for the one opening that a device is in, by the fewest survivors of any that was
    opened.
    """
    protection, terms = manifest.protection, manifest.terms
    assert isinstance(protection, SUMMED)
    assert terms is not None
    if join is not None and (parts := book.parts(manifest.round)):
        assert isinstance(protection, SecureSum)
        return _gather_parts(book, parts, manifest, protection, terms, join)
    opened = book.opened(manifest.round)
    sums, survivors = _passed(protection, manifest.shapes, terms, opened), len(opened.survivors)
    facts = {"survivors": survivors, "weight": sums.samples}
    radius = protection.clip if isinstance(protection, SecureSum) else None
    words = f"a secure sum of {survivors} devices"
    return _aggregated(book, manifest, protection, Aggregate.of_opened(sums, radius), words, survivors, facts)


def _gather_parts(
    book: SecureSumStore,
    parts: Sequence[str],
    manifest: RoundManifest,
    protection: SecureSum,
    terms: SumTerms,
    join: MedianOfSums,
) -> AggregatedUpdates:
    sizes: list[int] = []
    passed: list[WeightedSum] = []
    refusals: list[str] = []
    for part in parts:
        try:
            opened = book.opened(part)
            sizes.append(len(opened.survivors))
            passed.append(_passed(protection, manifest.shapes, terms, opened))
        except (SumFailed, UpdateRefused) as refused:
            refusals.append(str(refused))
    if len(passed) < join.left:
        raise UpdateRefused(
            f"{len(passed)} groups are left; {join.left} are needed. The first that was refused: {refusals[0]}",
            field="body",
            limit=str(join.left),
        )
    total = join.join(passed, protection.clip)
    facts = {"survivors": sum(sizes), "weight": total.count, "groups": sizes, "groups_joined": len(passed)}
    words = f"the median of {len(passed)} secure sums of at least {min(sizes)} devices"
    return _aggregated(book, manifest, protection, total, words, min(sizes), facts)


def _aggregated(
    book: SecureSumStore,
    manifest: RoundManifest,
    protection: SecureSum | UnionMarks,
    total: Aggregate,
    words: str,
    survivors: int,
    facts: Mapping[str, Any],
) -> AggregatedUpdates:
    """survivors: of the smallest sum that was opened."""
    epsilon = _epsilon(protection, survivors, sum(math.prod(shape) for shape in manifest.shapes.values()))
    delta = None if epsilon is None else protection.delta

    def finish(session: Session, mine: RoundRow) -> None:
        mine.survivors, mine.epsilon, mine.delta = survivors, epsilon, delta
        book.finish(session, manifest.round)

    return AggregatedUpdates(total, words, {**facts, "epsilon": epsilon, "delta": delta}, finish)


def _passed(
    protection: SecureSum | UnionMarks, shapes: Mapping[str, tuple[int, ...]], terms: SumTerms, opened: OpenedSum
) -> WeightedSum:
    """The sum as numbers; the ring's vector is not kept. Raises UpdateRefused beyond the bounds."""
    survivors = len(opened.survivors)
    try:
        if isinstance(protection, UnionMarks):
            sums = protection.layout(shapes, terms).sums(opened.vector, survivors)
        else:
            sums = protection.layout(shapes, terms).sums(opened.vector)
    except ValueError as broken:
        raise UpdateRefused(f"The opened sum is no sum of updates: {broken}.", field="body") from broken
    if isinstance(protection, UnionMarks):
        _check_owners(protection, sums, survivors)
    else:
        check_sum(protection, sums, survivors)
    return sums


def _check_owners(protection: UnionMarks, sums: WeightedSum, survivors: int) -> None:
    """Raises UpdateRefused for more owners than devices, or marks than they have in all, or fewer than none."""
    for owners in sums.tensors.values():
        deviation = protection.sigma * math.sqrt(survivors)
        reach, most = noise_reach(deviation, owners.size), survivors * protection.rows_limit
        marks = float(owners.sum())
        if marks > most + noise_reach(deviation * math.sqrt(owners.size), 1):
            raise UpdateRefused(
                f"All news together have {marks:g} owners, which {survivors} devices can't mark: some device has "
                "broken the terms.",
                field="body",
                limit=str(most),
            )
        if owners.min() < -reach or owners.max() > survivors + reach:
            raise UpdateRefused(
                f"A news has {owners.min():g} to {owners.max():g} owners among {survivors} devices: some device has "
                "broken the terms.",
                field="body",
                limit=f"0 to {survivors}",
            )


def _epsilon(protection: SecureSum | UnionMarks, survivors: int, coordinates: int) -> float | None:
    if not protection.sigma:
        return None
    # dp-accounting takes seconds to load, and only a noisy sum needs it.
    from backend.federation.accounting.account import NoisyOpening, SumNoise, spent_on

    bound_steps = (
        float(np.sqrt(2 * protection.rows_limit)) if isinstance(protection, UnionMarks) else protection.reach_steps
    )
    return spent_on([NoisyOpening(SumNoise(protection.sigma, bound_steps, coordinates), survivors)], protection.delta)


def _accepted(engine: Engine, row: RoundRow) -> list[tuple[str, str]]:
    with reading_session(engine) as session:
        found = session.execute(
            select(ParticipationRow.pseudonym, ParticipationRow.sha256)
            .where(ParticipationRow.round == row.number, ParticipationRow.sha256.is_not(None))
            .order_by(ParticipationRow.number)
        ).all()
    return [(pseudonym, str(sha256)) for pseudonym, sha256 in found]
