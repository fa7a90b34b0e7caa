"""What old releases leave on disk, and how much of it stays.

| what | stays |
|---|---|
| blobs | of the newest `releases_kept` releases, of rounds under way and of those they ordered |
| trained news encoders | of those releases |
| vectors of news | by the encoder in use and the one before (`NewsSplit`): a rollback by one serves at once |
| token states | of titles in the pool |
| optimisers' memories | of each system's last two rounds: a rollback by the gate goes on with the one before |

Rows of releases and rounds stay: they are the history, and small.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Engine, select, update

from backend.db.engine import writing_session
from backend.db.tables_federation import RoundRow
from backend.embedding.state_store import STATES_FOLDER, TRAINED_FOLDER, StateStore
from backend.news.pool import NewsPool
from backend.releases.store import SWEEP_AFTER_SEC, ReleaseStore
from backend.settings import BackendSettings

MEMORIES_KEPT = 2
STEP_FOLDERS = "news-step-*"
STEP_LEFT_AFTER_SEC = 2 * 3_600.0
"""Longer than any step of a news model may take."""


@dataclass(frozen=True)
class Swept:
    """How many of each went."""

    blobs: int
    encoders: int
    states: int
    memories: int


class Retention:
    """Removes what the table above doesn't name. Made for one process at a time, like publishing itself."""

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
        """older_than_sec: younger files stay, as they may belong to what is being made."""
        self._engine, self._releases, self._pool = engine, releases, pool
        self._encoder_dir, self._data_dir = settings.encoder_dir, settings.data_dir
        self._clock, self._older_than_sec = clock, older_than_sec

    def apply(self) -> Swept:
        """Called when the server starts, and after each release."""
        encoders = {manifest.encoder for manifest in self._releases.kept()}
        for folder in self._old(self._data_dir, STEP_FOLDERS, STEP_LEFT_AFTER_SEC):
            shutil.rmtree(folder, ignore_errors=True)  # of a step that was killed
        return Swept(
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
        titles = [row.title for row in self._pool.live(self._clock())]
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
            with suppress(FileNotFoundError):  # another process does the same, when several start at once
                if path.stat().st_mtime <= limit:
                    found.append(path)
        return found
