"""One more ranker in the releases while the server goes on serving: exported by a process of its own, then published
between two rounds. `python -m backend.releases.preparing` is that process; it brings torch, which the server doesn't.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.engine import open_engine
from backend.db.tables_federation import RoundRow
from backend.errors import OwnfeedError
from backend.releases.errors import RankerBeingPrepared, ReleaseNotPublished, RoundsUnderWay
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings
from device_app.wire.releases import ReleaseManifest

NICENESS = 10
"""Requests and everything else go first."""
TURN_LIMIT_SEC = 600.0
"""How long it waits for a moment without rounds: less than leftovers among the blobs are kept."""
ASK_SEC = 0.5
WAITING = "waiting"
COMMAND = (sys.executable, "-m", "backend.releases.preparing")


class PreparationJob(BaseModel):
    """What the process is told on standard input."""

    settings: BackendSettings
    ranker: str


@dataclass(frozen=True)
class Preparation:
    """How the last preparation stands.

    stage: exporting graphs, waiting for the end of rounds, published, or failed. trouble: why it failed, a sentence.
    """

    ranker: str
    stage: Literal["exporting", "waiting", "published", "failed"] = "exporting"
    trouble: str | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether its process runs."""
        return self.stage in ("exporting", "waiting")


class RankerPreparation:
    """Prepares one ranker at a time.

    command: of the process; tests bring their own.
    """

    def __init__(self, settings: BackendSettings, command: Sequence[str] = COMMAND) -> None:
        self._settings, self._command = settings, tuple(command)
        self._lock = threading.Lock()
        self._status: Preparation | None = None
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None

    def status(self) -> Preparation | None:
        """Of the last one since the start; None before the first."""
        return self._status

    def start(self, ranker: str) -> None:
        """Begin with a ranker by its name in a release. Raises ReleaseNotPublished for an unknown one, or
        RankerBeingPrepared."""
        if not can_be_prepared(ranker):
            raise ReleaseNotPublished("No ranker of that name can be prepared.", field="ranker")
        with self._lock:
            if self._status is not None and self._status.is_under_way:
                raise RankerBeingPrepared(self._status.ranker)
            self._status = Preparation(ranker)
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
            )
            job = PreparationJob(settings=self._settings, ranker=ranker).model_dump_json()
            self._thread = threading.Thread(target=self._follow, args=(self._process, job), name="prepare", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the process, if one runs, and wait for it: nothing of it is published."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
        if self._thread is not None:
            self._thread.join()

    def _follow(self, process: subprocess.Popen[str], job: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        status = self._status
        assert status is not None
        with process:
            try:
                process.stdin.write(job)
                process.stdin.close()
                for line in process.stdout:
                    if line.strip() == WAITING:
                        self._status = replace(status, stage="waiting")
                said = process.stderr.read().strip().splitlines()
            except BrokenPipeError:
                said = []
        if process.returncode == 0:
            self._status = replace(status, stage="published")
        else:
            why = said[-1][:300] if said else f"its process ended with code {process.returncode}"
            self._status = replace(status, stage="failed", trouble=why)


def can_be_prepared(ranker: str) -> bool:
    """Whether there is a ranker of this name that is not in every release anyway."""
    from models.rankers import RANKERS  # the server starts without the models' package

    return ranker in RANKERS and not RANKERS[ranker].always


def offer_between_rounds(
    engine: Engine, offer: Callable[[Callable[[Session, ReleaseManifest], None]], ReleaseManifest]
) -> ReleaseManifest:
    """Publish by `offer`, which is given what has to be written together with the release, as soon as no round is under
    way: one that publishes would fail, since its release would not be the current one any more, and devices that have
    swapped would be no use to any. Raises RoundsUnderWay after ten minutes of rounds.
    """

    def check(session: Session, _: ReleaseManifest) -> None:
        if session.scalars(select(RoundRow.number).where(RoundRow.finished_at.is_(None)).limit(1)).first() is not None:
            raise RoundsUnderWay

    give_up = time.monotonic() + TURN_LIMIT_SEC
    while True:
        try:
            return offer(check)
        except RoundsUnderWay:
            if time.monotonic() > give_up:
                raise
        sys.stdout.write(f"{WAITING}\n")
        sys.stdout.flush()
        time.sleep(ASK_SEC)


def main() -> int:
    """The process: export, then publish. Prints where it is; on failure one line on standard error."""
    job = PreparationJob.model_validate_json(sys.stdin.read())
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    from backend.releases.publish import export_rankers, offer

    engine = open_engine(job.settings.database_url)
    try:
        store = ReleaseStore.open(engine, job.settings)
        exported = export_rankers(store, (job.ranker,))
        offer_between_rounds(engine, lambda check: offer(store, exported, together_with=check))
    except OwnfeedError as refused:
        sys.stderr.write(f"{refused}\n")
        return 1
    finally:
        engine.dispose()
    return 0


if __name__ == "__main__":
    sys.exit(main())
