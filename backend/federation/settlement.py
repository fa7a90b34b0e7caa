"""The end of a round that has enough updates: sum, step, publish."""

from __future__ import annotations

from datetime import datetime

import numpy as np
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.sessions import reading_session
from backend.db.tables_federation import Participation, Round
from backend.federation.aggregate import Aggregate
from backend.federation.errors import RoundClosed, UpdateRefused
from backend.federation.inbox import Inbox, UpdateDamaged
from backend.federation.records import round_status
from backend.federation.round import advance
from backend.federation.systems.system import SystemSpec
from backend.federation.uploads import UploadRules
from backend.releases.publish import publish_next
from backend.releases.store import ReleaseStore, release_number
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


def _accepted(engine: Engine, row: Round) -> list[tuple[str, str]]:
    with reading_session(engine) as session:
        found = session.execute(
            select(Participation.pseudonym, Participation.sha256)
            .where(Participation.round == row.number, Participation.sha256.is_not(None))
            .order_by(Participation.number)
        ).all()
    return [(pseudonym, str(sha256)) for pseudonym, sha256 in found]
