"""Fills in what a server lacks while it already serves: vectors of older articles, and rankers one by one.

Each ranker is published between two rounds. `python -m backend.setup.backfill` is the process for it. It loads torch,
which the server doesn't, runs at low priority, and has no time limit. If it is killed, finished tasks stay done, and
the next start continues from there.
"""

from __future__ import annotations

import importlib
import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Literal

from pydantic import BaseModel
from sqlalchemy import Engine

from backend.db.advisory_lock import awaited_lock
from backend.db.engine import open_engine
from backend.embedding.batch_executor import ExecutorSettings
from backend.embedding.embedder import load_embedder
from backend.embedding.pooled_states import LayersTrained, PooledStates
from backend.embedding.state_store import DESCRIPTION_FILE
from backend.embedding.word_model import FEDNEWSREC, LSTUR, NAML, word_source
from backend.errors import OwnfeedError, training_is_installed
from backend.federation.strategies.news_head import NewsHead
from backend.federation.systems import COMPOSED, reads_release
from backend.news.pool import NewsPool
from backend.recall.encoder_takeover import EMBEDDING, TITLES_AT_ONCE
from backend.releases.between_rounds import is_optional_ranker, offer_between_rounds, trains_over_words
from backend.releases.errors import RankerBeingPrepared, ReleaseNotPublished
from backend.releases.store import ReleaseStore
from backend.server.progress import Advance
from backend.settings import BackendSettings
from backend.setup.first_start import embed_missing, named_words, prepare_word_model
from backend.setup.first_start_process import DONE, REFUSED, StepWriter
from protocol.releases import CategoryVocabulary, ReleaseManifest

NICENESS = 10
"""Requests and everything else have priority."""
COMMAND = (sys.executable, "-m", "backend.setup.backfill")
VECTORS, CODEBOOKS, TRAINING, WORD_MODEL = "vectors", "codebooks", "training", "word_model"
"""Tasks besides rankers, which have their names in releases. A release has no codebooks if its pool was too small.
TRAINING installs the extra `train`."""
WORD_MODELS = {FEDNEWSREC: WORD_MODEL, NAML: NAML, LSTUR: LSTUR}
"""The task that prepares a word-based news model, by architecture."""
TASK, WAITING, FINISHED = "task", "waiting", "finished"
"""Messages of the process, a JSON array per line: [TASK, name], then [DONE, number, total] and [WAITING] during the
task, then [FINISHED], or [REFUSED, reason]."""
RANKER_PREFIX = "ranker."
TURN = "prepare"
"""Lock of the process that fills in missing parts."""

BackfillStage = Literal["queued", "working", "waiting", "published", "failed"]


class BackfillJob(BaseModel):
    """The process's input on standard input."""

    settings: BackendSettings
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class BackfillTask:
    """The state of one task.

    stage: queued, running, waiting for the end of rounds, finished (published, for a ranker), or failed. done of total:
    its steps, if it counts them. trouble: the reason for a failure, as a sentence.
    """

    task: str
    stage: BackfillStage = "queued"
    done: int = 0
    total: int | None = None
    trouble: str | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether it is not finished yet."""
        return self.stage not in ("published", "failed")


class Backfill:
    """Runs the process while anything is missing, and tracks its progress.

    command: tests pass their own.
    """

    def __init__(self, settings: BackendSettings, command: Sequence[str] = COMMAND) -> None:
        self._settings, self._command = settings, tuple(command)
        self._lock = threading.Lock()
        self._tasks: dict[str, BackfillTask] = {}
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._stopping = False

    def status(self) -> list[BackfillTask]:
        """All tasks since the start, finished and pending, in that order."""
        with self._lock:
            return list(self._tasks.values())

    def start(self, ranker: str) -> None:
        """Queue the preparation of a ranker by its name in a release.

        Raises ReleaseNotPublished for an unknown one, or RankerBeingPrepared.
        """
        if not is_optional_ranker(ranker):
            raise ReleaseNotPublished("There is no ranker of that name to prepare.", field="ranker")
        with self._lock:
            known = self._tasks.get(ranker)
            if known is not None and known.is_under_way:
                raise RankerBeingPrepared(ranker)
        self.begin([ranker])

    def begin(self, tasks: Iterable[str]) -> None:
        """Queue these tasks; a task that runs or waits already is not queued again."""
        with self._lock:
            for task in tasks:
                known = self._tasks.get(task)
                if known is None or not known.is_under_way:
                    self._tasks.pop(task, None)
                    self._tasks[task] = BackfillTask(task)
            if self._thread is None and any(each.is_under_way for each in self._tasks.values()):
                self._stopping = False
                self._thread = threading.Thread(target=self._run, name="backfill", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Stop the process, if one runs, and wait for it: nothing unfinished is published."""
        with self._lock:
            self._stopping = True
            process, thread = self._process, self._thread
        if process is not None and process.poll() is None:
            process.terminate()
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                left = tuple(each.task for each in self._tasks.values() if each.is_under_way)
                if self._stopping or not left:
                    self._thread = None
                    return
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env=os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
                )
            self._follow(self._process, left)

    def _follow(self, process: subprocess.Popen[str], tasks: Sequence[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        errors: list[str] = []
        reading = threading.Thread(
            target=lambda: errors.extend(process.stderr or ()), name="backfill-said", daemon=True
        )
        reading.start()
        with process:
            with suppress(BrokenPipeError):
                process.stdin.write(BackfillJob(settings=self._settings, tasks=tuple(tasks)).model_dump_json())
                process.stdin.close()
            now = ""
            for kind, *steps in map(json.loads, process.stdout):
                if kind == TASK:
                    now = steps[0]
                self._note(now, kind, steps)
            reading.join()
        words = [line.strip() for line in errors if line.strip()]
        why = words[-1][:300] if words else f"its process ended with code {process.returncode}"
        with self._lock:
            for task in tasks:
                if self._tasks[task].is_under_way:
                    self._tasks[task] = replace(self._tasks[task], stage="failed", trouble=why)

    def _note(self, task: str, kind: str, steps: Sequence[object]) -> None:
        with self._lock:
            before = self._tasks[task]
            match kind:
                case "task":
                    after = replace(before, stage="working")
                case "done":
                    after = replace(before, stage="working", done=steps[0], total=steps[1])  # type: ignore[arg-type]
                case "waiting":
                    after = replace(before, stage="waiting")
                case "finished":
                    after = replace(before, stage="published")
                case _:
                    after = replace(before, stage="failed", trouble=str(steps[0]))
            self._tasks[task] = after


def missing_parts(settings: BackendSettings, releases: ReleaseStore, pool: NewsPool) -> list[str]:
    """What a server with a first release lacks of what its settings name, in the order of preparation.

    A handful of articles without a vector doesn't count: the server itself embeds them.
    """
    manifest = releases.current_manifest()
    if manifest is None:
        return []
    found = []
    is_ours = (settings.encoder_dir / DESCRIPTION_FILE).is_file()
    if is_ours and len(pool.missing_vectors(manifest.encoder, limit=TITLES_AT_ONCE + 1)) > TITLES_AT_ONCE:
        found.append(VECTORS)
    if is_ours and not manifest.recall.codebooks:
        found.append(CODEBOOKS)
    rankers = dict.fromkeys(f"{RANKER_PREFIX}{one}" for one in settings.rankers)
    missing = [name for name in rankers if name not in manifest.models]
    if missing and settings.install_training is not None and not training_is_installed():
        found.append(TRAINING)
    found += missing
    if not is_ours:
        return found
    # a release that is still to be made includes it
    over_words = dict.fromkeys(map(trains_over_words, manifest.models))
    for architecture in filter(None, over_words):
        if word_source(settings.encoder_dir, architecture) != named_words(settings):
            found.append(WORD_MODELS[architecture])
    return found


@dataclass(frozen=True)
class BackfillWorker:
    """The process's side: runs one task after another on a server's folder."""

    settings: BackendSettings
    engine: Engine
    releases: ReleaseStore
    steps: StepWriter
    installer: TrainingInstaller | None = None

    def run(self, task: str) -> None:
        """Run a task, or report why it was refused."""
        self.steps.write(TASK, task)
        try:
            with awaited_lock(self.engine, TURN):  # another server of the same folder may be preparing the same
                self._tasks().get(task, partial(self._ranker, task))()
                self.releases.encoders.give()
        except OwnfeedError as refused:
            self.steps.write(REFUSED, str(refused))
        else:
            self.steps.write(FINISHED)

    def _tasks(self) -> dict[str, Callable[[], object]]:
        return {
            VECTORS: self._vectors,
            CODEBOOKS: self._codebooks,
            TRAINING: self._training,
            **{task: partial(self._word_model, architecture) for architecture, task in WORD_MODELS.items()},
        }

    def _vectors(self) -> None:
        pool, embedder = NewsPool(self.engine), load_embedder(self.settings, self.releases.require_current().encoder)
        # A server holds this lock for some seconds at most, and leaves titles to whoever holds it.
        with awaited_lock(self.engine, EMBEDDING):
            embed_missing(pool, embedder, self)

    def _word_model(self, architecture: str) -> None:
        ref = self.releases.require_current().categories
        categories = CategoryVocabulary((), ()).pack() if ref is None else self.releases.read_blob(ref.sha256)
        prepare_word_model(self.settings, self, architecture, categories)

    def _pooled_states(self) -> None:
        """Compute the pooled states of the whole pool, so that the start of a round only waits for the newest."""
        pool, encoder = NewsPool(self.engine), self.releases.require_current().encoder
        titles = [row.title for row in pool.live(datetime.now(UTC))]
        with suppress(FileNotFoundError, LayersTrained):  # such a round is refused, with the reason
            PooledStates(self.settings.encoder_dir, encoder, executor=ExecutorSettings.of(self.settings)).of(titles)

    def _codebooks(self) -> None:
        from backend.releases.publish import publish_codebooks

        pool = NewsPool(self.engine)
        _, vectors = pool.vectors(self.releases.require_current().encoder)
        publish_codebooks(self.releases, vectors)

    def _training(self) -> None:
        if self.installer is not None:
            self.installer.wait()

    def _ranker(self, name: str) -> None:
        from backend.releases.publish import ExportedRankers, offer, publish_rankers
        from exporters.graph_cache import GraphCache

        def publish(store: ReleaseStore, exported: ExportedRankers) -> ReleaseManifest:
            return offer_between_rounds(
                self.engine,
                lambda check: offer(store, exported, together_with=check),
                waits=lambda: self.steps.write(WAITING),
                reads_release=reads_release,
            )

        publish_rankers(
            self.releases,
            (name.removeprefix(RANKER_PREFIX),),
            cache=GraphCache(self.settings.graphs_dir),
            publish=publish,
        )
        if (architecture := trains_over_words(name)) is not None:
            self._word_model(architecture)
        if any(isinstance(spec.strategy, NewsHead) and spec.model == name for spec in COMPOSED.values()):
            self._pooled_states()

    @contextmanager
    def step(self, title: str) -> Iterator[Advance]:
        """See `backend.server.progress.Steps`: a task's only step is reported as its progress."""
        yield lambda done, total: self.steps.write(DONE, done, total)


class TrainingInstallFailed(OwnfeedError):
    """The command of the setting `install_training` failed."""

    code, status, title = "training-install-failed", 500, "What trains models could not be installed"


class TrainingInstaller:
    """Runs the command of the setting `install_training`, while other tasks that need nothing of it run."""

    def __init__(self, command: str) -> None:
        self._process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def wait(self) -> None:
        """Wait until it is installed. Raises TrainingInstallFailed with the command's last line."""
        output, _ = self._process.communicate()
        if self._process.returncode:
            last = ([line.strip() for line in output.splitlines() if line.strip()] or ["no output"])[-1]
            raise TrainingInstallFailed(f"The setting install_training failed: {last[:300]}")
        importlib.invalidate_caches()


def main() -> int:
    """Run the process: input on standard input, progress on standard output, errors on standard error."""
    job = BackfillJob.model_validate_json(sys.stdin.read())
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    steps = StepWriter(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)  # exporters print
    engine = open_engine(job.settings.database_url)
    try:
        releases = ReleaseStore.open(engine, job.settings)
        releases.encoders.take()
        command = job.settings.install_training if TRAINING in job.tasks else None
        installer = None if command is None else TrainingInstaller(command)
        worker = BackfillWorker(job.settings, engine, releases, steps, installer)
        for task in job.tasks:
            worker.run(task)
    except (OwnfeedError, OSError) as refused:
        sys.stderr.write(f"{refused}\n")
        return 1
    finally:
        engine.dispose()
    return 0


if __name__ == "__main__":
    sys.exit(main())
