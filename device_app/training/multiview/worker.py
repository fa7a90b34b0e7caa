"""The worker of views: jobs on stdin, protected gradients on stdout, each in its frame (`-m` of this module).

Every job is computed by a process of its own, forked from this one, which has imported all that is needed, and knows
nothing of any reader: it hands a job on and an answer back. The forked process shuts itself in (`lockdown`), opens its
own store, computes, and ends. Imports are most of what a process costs that starts anew, and none is possible after the
lock.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from device_app.privacy.noise_sources import SystemNoise
from device_app.store.database import Database
from device_app.training.gradients import OnnxGradients
from device_app.training.multiview.job import from_bytes, read_frame, write_frame
from device_app.training.multiview.lockdown import lock_down
from device_app.training.multiview.view import view_gradient

NOTHING = b"nothing"
BESIDE = ("", "-wal", "-shm")
FAILED = 1


def store_files(store: Path) -> list[Path]:
    """A store's file, and the two that SQLite keeps beside it while somebody has it open."""
    return [store.with_name(store.name + ending) for ending in BESIDE]


def main() -> None:
    """Answer jobs, one after the other, until there are no more: a byte with the code of the job's process, and its
    answer."""
    while True:
        try:
            job = read_frame(sys.stdin.fileno())
        except EOFError:
            return
        code, answer = _apart(job)
        write_frame(sys.stdout.fileno(), bytes([code]) + answer)


def _apart(job: bytes) -> tuple[int, bytes]:
    """The job in a forked process. Whatever goes wrong there ends it without a word: an error's text could tell of the
    store."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        code = FAILED
        try:
            os.close(reads)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, sys.stdin.fileno())  # other jobs come there
            os.dup2(null, sys.stdout.fileno())
            with os.fdopen(writes, "wb") as answer:
                answer.write(_computed(job))
            code = 0
        finally:
            os._exit(code)
    os.close(writes)
    with os.fdopen(reads, "rb") as answers:
        found = answers.read()
    _, status = os.waitpid(child, 0)
    return (FAILED if os.waitstatus_to_exitcode(status) else 0), found


def _computed(content: bytes) -> bytes:
    job = from_bytes(content)
    rng = np.random.default_rng(job.seed)
    gradients = OnnxGradients(job.graph)  # loaded when first used, after the lock: a graph may name files of values
    lock_down(store_files(job.store))
    database = Database.of_another(job.store)
    found = view_gradient(job, database, SystemNoise(), rng, gradients)
    database.close()
    return NOTHING if found is None else save(dict(found))


if __name__ == "__main__":
    main()
