"""Measures live rounds of 60 devices over HTTP, from opening to the last swap, with local noise and in secure sums."""

import os
import tempfile
import time
from pathlib import Path

from backend.operations.admin_client import Operator
from device_app.fleet.fleet import Fleet, warm_up
from device_app.settings import DeviceSettings
from experiments.bench.newspaper import running_backend
from experiments.bench.quality import RANKER, WILLING, play_round
from experiments.records import Cell, Table

DEVICES = 60
SYSTEMS = ("uni_fedrec", RANKER)
"""The systems measured: the recall model under the paper's local noise, and what `ownfeed round` opens."""
ROUNDS = 3
BAR_SEC = 20.0
SEED = 7


def run(data: Path) -> list[Table]:
    """Return the table, one row for each round."""
    rows: list[tuple[Cell, ...]] = []
    with running_backend() as backend, tempfile.TemporaryDirectory() as home:
        settings = DeviceSettings(data_dir=Path(home), backend_url=backend.url, privacy=WILLING)
        operator = Operator(backend.url, backend.settings.admin_token_file)
        fleet = Fleet(settings, DEVICES, seed=SEED)
        try:
            fleet.run(warm_up)
            for system in SYSTEMS:
                for number in range(1, ROUNDS + 1):
                    started = time.perf_counter()
                    last = play_round(operator, fleet, system, DEVICES)
                    over = time.perf_counter() - started
                    if last.state != "applied" or last.finished_at is None:
                        raise RuntimeError(f"{last.round} of {system} failed: {last.reason}")
                    published = (last.finished_at - last.opened_at).total_seconds()
                    held = fleet.releases().get(last.published or "", 0)
                    rows.append((system, number, last.uploaded, last.received_bytes / 1e6, published, over, held))
            failures = fleet.failures
        finally:
            fleet.close()
    columns = ("system", "round", "updates", "MB received", "published after s", "all swapped after s", "devices on it")
    note = (
        f"{DEVICES} devices in one process over HTTP, {os.cpu_count()} cores; bar: every device has swapped after "
        f"{BAR_SEC:g} s. {len(failures)} devices had an error."
    )
    return [Table("Federated rounds", columns, rows, (note,), seeds=(SEED,))]
