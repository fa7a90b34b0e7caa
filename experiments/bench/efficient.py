"""Efficient-FedRec live: 60 devices over HTTP, union and gradients in secure sums, the news model's head trained, 6,000
titles under the new head, every device swapped. A reader goes on reading meanwhile, as a process of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from backend.federation.split.step import make_states
from backend.news.embed.embedder import state_shelf
from backend.news.embed.weights import find_weights
from backend.operator import Operator
from device_app.fleet.fleet import Fleet, Member, catch_up, settle, train
from device_app.settings import DeviceSettings, PerformanceSettings, PrivacySettings
from device_app.wire.rounds import RoundStatus
from experiments.bench.newspaper import ARTICLES, RunningBackend, prepared_newspaper, serve_newspaper, start_device
from experiments.bench.table import Cell, Table

DEVICES = 60
SEED = 7
BAR_SEC = 60.0
BAR_TIMES_IDLE = 2.0
SYSTEM = "efficient_fedrec"
IDLE_SEC = 20.0
NICE = 10
"""Of the fleet: readers' devices aren't on the server's machine."""


def run(data: Path) -> list[Table]:
    """Two tables: the rounds, and what a reader saw while they ran."""
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        folder = _folder(home)
        with serve_newspaper(folder) as backend:
            reader = start_device(backend, home / "reader", {"OWNFEED_DEVICE_PRIVACY__TRAINING": "false"})
            settings = DeviceSettings(
                data_dir=home,
                backend_url=backend.url,
                privacy=PrivacySettings(training=True, epsilon_per_day_training=1e9, secure_sum="exact"),
                performance=PerformanceSettings(bodies_wait_sec=0.2),
            )
            fleet = Fleet(settings, DEVICES, seed=SEED)
            try:
                return _measured(backend, fleet, reader, home)
            finally:
                fleet.close()


def _folder(home: Path) -> Path:
    """A copy of the newspaper's folder, with NRMS in its release and the titles' token states."""
    kept = prepared_newspaper(ARTICLES)
    from backend.db.engine import open_engine
    from backend.news.pool import NewsPool

    titles = [row.title for row in NewsPool(open_engine(kept.database_url)).live(_now())]
    # A folder of this version has them since its titles were first read.
    make_states(state_shelf(kept.encoder_dir), titles, find_weights(kept.bert, kept.bert_sha256), 0)
    folder = home / "backend"
    shutil.copytree(kept.data_dir, folder)
    return folder


def _now() -> object:
    from datetime import UTC, datetime

    return datetime.now(UTC)
