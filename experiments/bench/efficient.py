"""Measures live rounds of Efficient-FedRec in both forms, while a reader keeps reading.

60 devices train the news model's head over HTTP in secure sums; 6,000 titles get vectors by the new head, and every
device swaps to the release. The reader runs in its own process.
"""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psutil

from backend.db.engine import open_engine
from backend.embedding.batch_executor import LocalExecutor
from backend.embedding.embedder import state_store
from backend.embedding.weights import find_weights
from backend.federation.split.adam_step import make_states
from backend.federation.split.torch_tasks import FrozenStates
from backend.news.pool import NewsPool
from backend.operations.admin_client import Operator, OperatorRefused
from backend.releases.publish import publish_rankers
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings, load_settings
from device_app.errors import DeviceError
from device_app.fleet.fleet import Fleet, Member, catch_up, train, warm_up
from device_app.settings import DeviceSettings, PrivacySettings
from experiments.bench.feed import PacedReader
from experiments.bench.latency import EVERY_CLICK_REPORTS
from experiments.bench.newspaper import RunningBackend, free_port, prepared_newspaper, running_backend, start_device
from experiments.records import Cell, Table
from protocol.rounds import RoundStatus

DEVICES = 60
ROUNDS = 2
SEED = 7
FORMS = {"head": "news_head/exact/mean", "rows": "news_rows/exact/mean"}
"""The system of each form; `rows` takes two rounds: the union of articles, then their gradients."""
BAR_SEC, BAR_TIMES_IDLE = 60.0, 2.0
IDLE_SEC = 30.0
SECONDS = 600.0
"""Time limit of a round; long, so that a busy machine shows in the results instead of failing a round."""
NICENESS = 10
"""Niceness of the fleet, because real readers' devices don't share the server's machine."""


def run(data: Path) -> list[Table]:
    """Return two tables: the rounds, and a reader's page times while they ran."""
    return measured(_folder, FORMS, "Efficient-FedRec, head of the news model, 6,000 titles")


def measured(prepared: Callable[[Path], BackendSettings], forms: Mapping[str, str], title: str) -> list[Table]:
    """Measure these systems, which train a news model, by the name of each form.

    prepared: builds the server's folder at a path. title: that of the first table.
    """
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        with running_backend(prepared(home / "backend")) as backend:
            link = start_device(backend, home, EVERY_CLICK_REPORTS)
            reading = link, home / "pages.txt", backend.processes.log_dir / "device.log"
            rows: list[tuple[Cell, ...]] = []
            spans: dict[str, tuple[float, float]] = {}
            failures: list[str] = []
            args = backend, home, forms, rows, spans, failures, reading
            fleet = threading.Thread(target=_fleet, args=args)
            fleet.start()
            fleet.join()
            seen = np.loadtxt(reading[1], ndmin=2)
    if "idle" not in spans or len(rows) < ROUNDS * len(forms):
        raise RuntimeError(f"the rounds did not run: {failures[-1] if failures else 'no reason given'}")
    return [_rounds_table(title, rows, failures), _pages_table(seen, spans)]


def _folder(folder: Path) -> BackendSettings:
    """Copy the newspaper's folder, with NRMS in its release and the titles' token states."""
    kept = prepared_newspaper()
    engine = open_engine(kept.database_url)
    titles = [row.title for row in NewsPool(engine).live(datetime.now(UTC))]
    engine.dispose()
    # Folders built by this version contain them, because the titles are read first.
    weights = find_weights(kept.bert, kept.bert_sha256)
    frozen = FrozenStates(kept.bert, kept.bert_sha256, 0)
    make_states(state_store(kept.encoder_dir), titles, weights, frozen, LocalExecutor(os.cpu_count() or 1))
    shutil.copytree(kept.data_dir, folder)
    settings = load_settings(data_dir=folder, host=kept.host, port=free_port(), rankers=("nrms",))
    publish_rankers(ReleaseStore.open(open_engine(settings.database_url), settings), settings.rankers)
    return settings


def _fleet(
    backend: RunningBackend,
    home: Path,
    forms: Mapping[str, str],
    rows: list[tuple[Cell, ...]],
    spans: dict[str, tuple[float, float]],
    failures: list[str],
    reading: tuple[str, Path, Path],
) -> None:
    """Warm up the fleet, then run the rounds, in a thread of low priority that the fleet's threads inherit."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
    settings = DeviceSettings(
        data_dir=home,
        backend_url=backend.url,
        privacy=PrivacySettings(
            training=True, epsilon_per_day_training=1e9, epsilon_per_day_alone=1e9, secure_sum="exact"
        ),
    )
    operator = Operator(backend.url, backend.settings.admin_token_file)
    fleet = Fleet(settings, DEVICES, seed=SEED)
    reader: PacedReader | None = None
    try:
        fleet.run(warm_up)
        reader = PacedReader(*reading)
        time.sleep(5.0)
        started = time.time()
        time.sleep(IDLE_SEC)
        reader.require_alive()
        spans["idle"] = (started, time.time())
        for form, number in ((form, number) for form in forms for number in range(1, ROUNDS + 1)):
            started, spent = time.time(), _spent(backend)
            opened = _applied(operator, fleet, forms[form])
            last = opened[-1]
            published = time.time()
            reader.require_alive()
            while any(release != last.published for release in fleet.releases()):
                fleet.run(catch_up)
                if time.time() > published + SECONDS:
                    break
            over = time.time()
            reader.require_alive()
            spans[f"{form}, round {number}"] = (started, over)
            rows.append(
                (
                    form,
                    ", ".join(status.round for status in opened),
                    last.state,
                    last.survivors,
                    _seconds(opened[0]) if len(opened) > 1 else None,
                    _seconds(last),
                    published - started,
                    over - started,
                    sum(status.received_bytes for status in opened) / 1e6,
                    fleet.releases().get(last.published or "", 0),
                    *(after - before for before, after in zip(spent, _spent(backend), strict=True)),
                )
            )
    except (OperatorRefused, RuntimeError) as failed:
        failures.append(str(failed))
    finally:
        failures[:0] = fleet.failures
        fleet.close()
        if reader is not None:
            reader.stop()


def _applied(operator: Operator, fleet: Fleet, system: str) -> list[RoundStatus]:
    """Return the finished round, followed by the round that it ordered, if any; the last one is applied."""
    lookout = fleet.members[0].device.parts.uplink

    def take_part(member: Member) -> None:
        train(member)

    rounds = [operator.open_round(system, cohort=DEVICES, cohort_minimum=DEVICES // 2, seconds=SECONDS)]
    give_up = time.time() + 2 * SECONDS
    while time.time() < give_up:
        fleet.run(take_part)
        try:
            rounds[-1] = lookout.round_status(rounds[-1].round)
            following = next(iter(lookout.open_rounds()), None)
        except DeviceError:
            continue
        if rounds[-1].state == "failed" or rounds[-1].published is not None:
            break
        if following is not None and following.follows == rounds[-1].round:
            rounds.append(following)
    if rounds[-1].published is None:
        ended = ", ".join(f"{status.round} {status.state} ({status.reason})" for status in rounds)
        raise RuntimeError(f"{system}: {ended}")
    return rounds


def _spent(backend: RunningBackend) -> tuple[float, float]:
    """Return CPU seconds so far of the server, including ended processes, and of this process, which runs the fleet."""
    times = psutil.Process(backend.processes.running["backend"].pid).cpu_times()
    mine = psutil.Process().cpu_times()
    return times.user + times.system + times.children_user + times.children_system, mine.user + mine.system


def _seconds(status: RoundStatus) -> float | None:
    return None if status.finished_at is None else (status.finished_at - status.opened_at).total_seconds()


def _rounds_table(title: str, rows: list[tuple[Cell, ...]], failures: list[str]) -> Table:
    columns = (
        "form",
        "rounds",
        "state",
        "devices",
        "union s",
        "gradients and step s",
        "published after s",
        "all swapped after s",
        "MB received",
        "devices on it",
        "server CPU s",
        "fleet CPU s",
    )
    note = (
        f"{DEVICES} devices in one process over HTTP at niceness {NICENESS}, {os.cpu_count()} cores; exact sums "
        f"of rows are of those with at least 3 owners; bar {BAR_SEC:g} s. {len(failures)} devices had trouble. CPU "
        "seconds tell what there was to do, whatever else the machine did."
    )
    return Table(title, columns, rows, (note,), seeds=(SEED,))


def _pages_table(seen: np.ndarray, spans: dict[str, tuple[float, float]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    idle = 0.0
    for name, (start, end) in spans.items():
        held = seen[(seen[:, 0] >= start) & (seen[:, 0] < end), 1]
        p50, p95 = np.percentile(held, [50, 95]) if len(held) else (float("nan"), float("nan"))
        idle = idle or float(p95)
        rows.append((name, len(held), float(p50), float(p95), float(p95) / idle))
    return Table(
        "The feed meanwhile",
        ("while", "pages", "p50 ms", "p95 ms", "times idle"),
        rows,
        (f"A feed page after a click, each with a report; bar: p95 at most {BAR_TIMES_IDLE:g} times its idle value.",),
    )
