"""Collect everything that a strategy may read for one round."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from sqlalchemy import Engine, select

from backend.db.engine import reading_session
from backend.db.tables import FollowUpRow, RoundRow
from backend.embedding.batch_executor import HERE, ExecutorSettings
from backend.federation.optimizers import Memory
from backend.federation.strategies.strategy import PreviousRound, RoundContext, RoundRequest
from backend.popularity.store import HALF_LIFE_HOURS
from backend.releases.store import ReleaseStore
from protocol.releases import ReleaseManifest
from protocol.rounds import RoundManifest


class RoundContextLoader:
    """Builds round contexts from rows and releases; it changes nothing."""

    def __init__(
        self,
        engine: Engine,
        releases: ReleaseStore,
        clock: Callable[[], datetime],
        data_dir: Path,
        held_out: float = 0.0,
        counts_half_life_hours: float = HALF_LIFE_HOURS,
        executor: ExecutorSettings = HERE,
    ) -> None:
        """Take the sources of the context.

        held_out: share of its samples that a device reserves for the release gate; 0 disables the gate.
        """
        self.counts_half_life_hours = counts_half_life_hours
        self.engine, self.releases, self.clock, self.held_out = engine, releases, clock, held_out
        self._data_dir, self._executor = data_dir, executor

    def context(self, release: ReleaseManifest, request: RoundRequest, follows: int | None) -> RoundContext:
        """Return the context of a round on this release.

        follows: the number of the round that it follows, if any.
        """
        self.releases.encoders.take_for(release.release)  # another machine may have made this encoder
        return RoundContext(
            release=release,
            request=request,
            releases=self.releases,
            engine=self.engine,
            clock=self.clock,
            data_dir=self._data_dir,
            past=None if follows is None else self._past(follows),
            held_out=self.held_out,
            memory=self._memory(request.system),
            counts_half_life_hours=self.counts_half_life_hours,
            executor=self._executor,
        )

    def context_of(self, row: RoundRow) -> RoundContext:
        """Return the context of a round that is under way."""
        return self.context(self.releases.manifest(f"r{row.release}"), request_of(row), row.follows)

    def _past(self, number: int) -> PreviousRound | None:
        """Return the round of this number as the previous round.

        If it failed and is being retried, the previous round is the one that it followed, if any.
        """
        with reading_session(self.engine) as session:
            row = session.get_one(RoundRow, number)
            follow_up = session.get(FollowUpRow, number)
            if follow_up is not None and follow_up.retries:
                return None if row.follows is None else self._past(row.follows)
            return PreviousRound(
                request=request_of(row),
                manifest=RoundManifest.model_validate_json(row.manifest),
                facts=row.facts or {},
                published=None if row.published is None else f"r{row.published}",
                survivors=row.survivors,
            )

    def _memory(self, system: str) -> Memory:
        with reading_session(self.engine) as session:
            kept = session.scalar(
                select(RoundRow.memory)
                .where(RoundRow.system == system, RoundRow.state == "applied", RoundRow.memory.is_not(None))
                .order_by(RoundRow.number.desc())
                .limit(1)
            )
        return Memory() if kept is None else Memory.from_bytes(kept)


def request_of(row: RoundRow) -> RoundRequest:
    """Return the request that opened the round."""
    seconds = (row.closes_at - row.opened_at).total_seconds()
    return RoundRequest(row.system, row.cohort, row.cohort_minimum, seconds, row.admission)
