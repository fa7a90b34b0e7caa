"""A live federated round: 60 devices over HTTP, recall task, the papers' local noise; from opening to the last swap."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path

from backend.operator import TURN_SEC, Operator
from device_app.fleet.fleet import Fleet, catch_up, train, warm_up
from device_app.settings import DeviceSettings, PrivacySettings
from experiments.bench.newspaper import running_backend
from experiments.table import Table

DEVICES = 60
ROUNDS = 3
BAR_SEC = 20.0
SEED = 7


def run(data: Path) -> list[Table]:
    """One row a round."""
    rows = []
    with running_backend() as backend, tempfile.TemporaryDirectory() as home:
        settings = DeviceSettings(
            data_dir=Path(home),
            backend_url=backend.url,
            privacy=PrivacySettings(training=True, epsilon_per_day_training=1e9),
        )
        operator = Operator(backend.url, backend.settings.admin_token_file)
        fleet = Fleet(settings, DEVICES, seed=SEED)
        try:
            fleet.run(warm_up)
            for _ in range(ROUNDS):
                started = time.perf_counter()
                opened = operator.open_round(
                    "uni_fedrec", cohort=DEVICES, cohort_minimum=DEVICES // 2, seconds=60, turn_sec=TURN_SEC
                )
                training = threading.Thread(target=fleet.run, args=(train,))
                training.start()
                last = opened
                for last in operator.follow(opened):  # noqa: B007 - the last status is what counts
                    pass
                training.join()
                published = time.perf_counter() - started
                fleet.run(catch_up)
                over = time.perf_counter() - started
                held = fleet.releases().get(last.published or "", 0)
                rows.append((last.round, last.state, last.uploaded, last.received_bytes / 1e6, published, over, held))
            failures = fleet.failures
        finally:
            fleet.close()
    columns = ("round", "state", "updates", "MB received", "published after s", "all swapped after s", "devices on it")
    note = (
        f"{DEVICES} devices in one process over HTTP, {os.cpu_count()} cores, noise from the system's generator; "
        f"bar {BAR_SEC:g} s to every device swapped. {len(failures)} devices had trouble."
    )
    return [Table("Federated round, recall task, local DP", columns, rows, (note,), seeds=(SEED,))]
