"""The end of a round that has enough updates: sum, step, publish."""

from __future__ import annotations

from datetime import datetime

import numpy as np
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.sessions import reading_session
from backend.db.tables_federation import Participation, Round
from backend.federation.aggregate import PREFIX, Aggregate
from backend.federation.errors import RoundClosed, UpdateRefused
from backend.federation.inbox import Inbox, UpdateDamaged
from backend.federation.records import round_status, state_of
from backend.federation.round import advance
from backend.federation.secagg.book import SumBook
from backend.federation.systems.system import SystemSpec
from backend.federation.uploads import UploadRules
from backend.releases.publish import publish_next
from backend.releases.store import ReleaseStore, release_number
from device_app.wire.layout import WeightedMean
from device_app.wire.protections import NOISE_REACH, SecureSum
from device_app.wire.releases import ReleaseManifest
from device_app.wire.rounds import RoundManifest
from device_app.wire.timing import Stopwatch


def settle(
    engine: Engine,
    releases: ReleaseStore,
    inbox: Inbox,
    spec: SystemSpec,
    rules: UploadRules,
    row: Round,
    finished_at: datetime,
) -> ReleaseManifest:
    """Sum the round's updates file by file, step, and publish; the round is applied in the release's own transaction.

    So either the release exists and the round is applied, or neither: no update is applied twice. Raises RoundClosed if
    another release was published meanwhile or too few updates are left whole on disk, IllegalTransition if the round
    was ended meanwhile, and ReleaseNotPublished if the new weights do not pass.
    """
    manifest = RoundManifest.model_validate_json(row.manifest)
    release = releases.require_current()
    if release.release != manifest.release:
        raise RoundClosed(f"The round was for {manifest.release}; {release.release} was published meanwhile.")
    watch = Stopwatch()
    with watch.stage("sum"):
        weights = releases.weights(release, spec.model)
        total = Aggregate({name: value.shape for name, value in weights.items()})
        accepted = _accepted(engine, row)
        for pseudonym, sha256 in accepted:
            try:
                total.add(rules.read(inbox.read(manifest.round, pseudonym, sha256)))
            except (UpdateDamaged, UpdateRefused):
                continue
    if total.count < row.cohort_minimum:
        raise RoundClosed(
            f"{len(accepted) - total.count} accepted updates are damaged on disk; {total.count} are left, and the "
            f"minimum is {row.cohort_minimum}."
        )
    with watch.stage("step"):
        stepped = spec.strategy.apply(total, weights, spec.optimizer)
    change = float(np.sqrt(sum(float(np.square(stepped[name] - weights[name]).sum()) for name in weights)))

    def mark_applied(session: Session, published: ReleaseManifest) -> None:
        mine = session.get_one(Round, row.number)
        mine.state = advance(round_status(session, mine).state, "applied")
        mine.published, mine.finished_at = release_number(published.release), finished_at

    return publish_next(
        releases,
        release,
        spec.model,
        stepped,
        note=f"{manifest.round}: {total.count} updates of {spec.name}",
        facts={
            "round": manifest.round,
            "updates": total.count,
            "damaged": len(accepted) - total.count,
            "change_l2": change,
            "stages_ms": watch.stages_ms,
        },
        together_with=mark_applied,
    )


def settle_sum(
    engine: Engine,
    releases: ReleaseStore,
    book: SumBook,
    spec: SystemSpec,
    row: Round,
    finished_at: datetime,
) -> ReleaseManifest:
    """Open the round's secure sum, step with its weighted mean, and publish; all ends in the release's transaction.

    A server killed before that transaction opens the same sum again, and after it the sum is gone. Raises as `settle`,
    SumFailed if the sum can't be opened, and UpdateRefused if its mean is longer than clipped updates and noise can
    make it: a mean of vectors within a ball lies in the ball.

    Formal guarantees: nothing is read but the opened sum of all survivors, at least `cohort_minimum` of them. epsilon,
    with the noise shares that survived and nobody colluding, is `account.spent_on` for this one opening.
    """
    manifest = RoundManifest.model_validate_json(row.manifest)
    law, terms = manifest.protection, manifest.terms
    assert isinstance(law, SecureSum)
    assert terms is not None
    release = releases.require_current()
    if release.release != manifest.release:
        raise RoundClosed(f"The round was for {manifest.release}; {release.release} was published meanwhile.")
    watch = Stopwatch()
    with watch.stage("open"):
        opened = book.opened(manifest.round)
    survivors = len(opened.survivors)
    with watch.stage("step"):
        weights = releases.weights(release, spec.model)
        layout = law.layout({PREFIX + name: value.shape for name, value in weights.items()}, terms)
        try:
            mean = layout.decode(opened.vector)
        except ValueError as broken:
            raise UpdateRefused(f"The opened sum is no sum of updates: {broken}.", field="body") from broken
        _check_mean(law, mean, survivors)
        stepped = spec.strategy.apply(Aggregate.of_opened(mean), weights, spec.optimizer)
    change = float(np.sqrt(sum(float(np.square(stepped[name] - weights[name]).sum()) for name in weights)))
    epsilon = _epsilon(law, survivors, layout.coordinates)

    def mark_applied(session: Session, published: ReleaseManifest) -> None:
        mine = session.get_one(Round, row.number)
        mine.state = advance(state_of(session, mine), "applied")
        mine.published, mine.finished_at = release_number(published.release), finished_at
        mine.survivors = survivors
        if epsilon is not None:
            mine.epsilon, mine.delta = epsilon, law.delta
        book.finish(session, manifest.round)

    return publish_next(
        releases,
        release,
        spec.model,
        stepped,
        note=f"{manifest.round}: a secure sum of {survivors} devices for {spec.name}",
        facts={
            "round": manifest.round,
            "survivors": survivors,
            "weight": mean.samples,
            "epsilon": epsilon,
            "delta": None if epsilon is None else law.delta,
            "change_l2": change,
            "stages_ms": watch.stages_ms,
        },
        together_with=mark_applied,
    )


def _check_mean(law: SecureSum, mean: WeightedMean, survivors: int) -> None:
    if mean.samples < survivors:
        raise UpdateRefused(
            f"The opened sum counts {mean.samples} samples of {survivors} devices: some sent no update.",
            field="samples",
            limit=str(survivors),
        )
    coordinates = sum(each.size for each in mean.tensors.values())
    step = 2.0**-law.fraction_bits
    noise = NOISE_REACH * law.sigma * step * np.sqrt(survivors * coordinates) / mean.samples
    limit = float(law.clip * (1 + 1e-6) + step * np.sqrt(coordinates) + noise)
    norm = float(np.sqrt(sum(float(np.square(each).sum()) for each in mean.tensors.values())))
    if not norm <= limit:
        raise UpdateRefused(
            f"The opened mean has norm {norm:.6g}, which clipped updates can't give: some device has broken the terms.",
            field="body",
            limit=f"{limit:.6g}",
        )


def _epsilon(law: SecureSum, survivors: int, coordinates: int) -> float | None:
    if not law.sigma:
        return None
    # dp-accounting takes seconds to load, and only a noisy sum needs it.
    from backend.federation.account import NoisyOpening, SumNoise, spent_on

    bound_steps = 2 * law.clip * 2.0**law.fraction_bits
    return spent_on([NoisyOpening(SumNoise(law.sigma, bound_steps, coordinates), survivors)], law.delta)


def _accepted(engine: Engine, row: Round) -> list[tuple[str, str]]:
    with reading_session(engine) as session:
        found = session.execute(
            select(Participation.pseudonym, Participation.sha256)
            .where(Participation.round == row.number, Participation.sha256.is_not(None))
            .order_by(Participation.number)
        ).all()
    return [(pseudonym, str(sha256)) for pseudonym, sha256 in found]
