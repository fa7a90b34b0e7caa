"""Delete what old releases leave on disk.

| what | kept |
|---|---|
| blobs | of the newest `releases_kept` releases, of rounds under way and of rounds they ordered |
| trained news encoders | of those releases |
| vectors of articles | by the current encoder and the previous one (`NewsSplit`), for a fast rollback by one release |
| token states | of titles in the pool |
| optimizer states | of each system's last two rounds: after a rollback training continues with the earlier one |

Rows of releases and rounds stay: they are the history, and small.
"""

import shutil
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Engine, select, update

from backend.db.engine import writing_session
from backend.db.tables import RoundRow
from backend.embedding.state_store import STATES_FOLDER, TRAINED_FOLDER, StateStore
from backend.news.pool import NewsPool
from backend.releases.store import SWEEP_AFTER_SEC, ReleaseStore
from backend.settings import BackendSettings

MEMORIES_KEPT = 2
STEP_FOLDERS = "news-step-*"
STEP_LEFT_AFTER_SEC = 2 * 3_600.0
"""Age at which leftovers of a training step are deleted: longer than any step of a news model may take."""


@dataclass(frozen=True)
class RemovedCounts:
    """How many of each kind were deleted."""

    blobs: int
    encoders: int
    states: int
    memories: int


class Retention:
    """Deletes what the table above doesn't keep.

    Only one process at a time may do so, as with publishing.
    """

    def __init__(
        self,
        engine: Engine,
        releases: ReleaseStore,
        pool: NewsPool,
        settings: BackendSettings,
        clock: Callable[[], datetime],
        *,
        older_than_sec: float = SWEEP_AFTER_SEC,
    ) -> None:
        """Take the stores to clean up.

        older_than_sec: younger files are kept, since something in preparation may need them.
        """
        self._engine, self._releases, self._pool = engine, releases, pool
        self._encoder_dir, self._data_dir = settings.encoder_dir, settings.data_dir
        self._clock, self._older_than_sec = clock, older_than_sec

    def apply(self) -> RemovedCounts:
        """Delete everything not kept; called at the start of the server and after each release."""
        encoders = {manifest.encoder for manifest in self._releases.kept()}
        for folder in self._old(self._data_dir, STEP_FOLDERS, STEP_LEFT_AFTER_SEC):
            shutil.rmtree(folder, ignore_errors=True)  # left by a killed training step
        return RemovedCounts(
            blobs=self._releases.sweep(self._older_than_sec),
            encoders=self._sweep_encoders(encoders),
            states=self._sweep_states(),
            memories=self._sweep_memories(),
        )

    def _sweep_encoders(self, keep: Collection[str]) -> int:
        found = [
            folder
            for folder in self._old(self._encoder_dir / TRAINED_FOLDER, "*", self._older_than_sec)
            if folder.name not in keep
        ]
        for folder in found:
            shutil.rmtree(folder, ignore_errors=True)
        self._releases.encoders.sweep(keep, time.time() - self._older_than_sec)
        return len(found)

    def _sweep_states(self) -> int:
        folders = [folder for folder in (self._encoder_dir / STATES_FOLDER).glob("*") if folder.is_dir()]
        if not folders:
            return 0
        titles = self._pool.live_titles(self._clock())
        return sum(StateStore(folder).prune(titles, older_than_sec=self._older_than_sec) for folder in folders)

    def _sweep_memories(self) -> int:
        swept = 0
        with writing_session(self._engine) as session:
            held = (
                select(RoundRow.system, RoundRow.number)
                .where(RoundRow.memory.is_not(None))
                .order_by(RoundRow.number.desc())
            )
            seen: dict[str, int] = {}
            for system, number in session.execute(held).all():
                seen[system] = seen.get(system, 0) + 1
                if seen[system] > MEMORIES_KEPT:
                    session.execute(update(RoundRow).where(RoundRow.number == number).values(memory=None))
                    swept += 1
        return swept

    def _old(self, folder: Path, pattern: str, seconds: float) -> list[Path]:
        limit, found = time.time() - seconds, []
        for path in folder.glob(pattern):
            with suppress(FileNotFoundError):  # another process may delete it at the same time
                if path.stat().st_mtime <= limit:
                    found.append(path)
        return found
