"""The process of one view: a job on stdin, a protected gradient on stdout (`-m` of this module).

It reads the job, shuts itself in (`lockdown`), opens its own store, computes, and ends. All that it imports is imported
before: afterwards it can open no file but the store.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from device_app.privacy.noise_sources import SystemNoise
from device_app.store.database import Database
from device_app.training.gradients import OnnxGradients
from device_app.training.multiview.job import from_bytes
from device_app.training.multiview.lockdown import lock_down
from device_app.training.multiview.view import view_gradient

NOTHING = b"nothing"
BESIDE = ("", "-wal", "-shm")


def store_files(store: Path) -> list[Path]:
    """A store's file, and the two that SQLite keeps beside it while somebody has it open."""
    return [store.with_name(store.name + ending) for ending in BESIDE]


def main() -> None:
    """Answer one job. Whatever goes wrong ends the process without a word: an error's text could tell of the store."""
    job = from_bytes(sys.stdin.buffer.read())
    rng = np.random.default_rng(job.seed)
    gradients = OnnxGradients(job.graph)  # loaded when first used, after the lock: a graph may name files of values
    lock_down(store_files(job.store))
    database = Database.of_another(job.store)
    found = view_gradient(job, database, SystemNoise(), rng, gradients)
    database.close()
    sys.stdout.buffer.write(NOTHING if found is None else save(dict(found)))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
