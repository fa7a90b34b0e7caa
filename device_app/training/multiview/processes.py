"""Starts a process for each view, tells it where its own store is, and hears one protected gradient from it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from device_app.training.multiview.job import ViewFailed, ViewJob, to_bytes
from device_app.training.multiview.lockdown import version

WORKER = "device_app.training.multiview.worker"
LONGEST_SEC = 120.0
NO_LOCKDOWN = "this system can't keep the views of a device apart (it needs Linux 5.13 or newer, with Landlock)."


class SpawnedViews:
    """A process a view. The device never reads what a view computes in clear; it hears clipped, noisy gradients.

    The device's own process is trusted: it serves the pages where the reader reads and searches, and holds both stores
    open. What is kept apart is one view's computation from another's store and gradient.
    """

    def why_not(self) -> str | None:
        """Why views can't be kept apart here; None if they can."""
        return None if version() else NO_LOCKDOWN

    def gradient(self, job: ViewJob) -> Mapping[str, NDArray[np.float64]] | None:
        """See ViewProcesses. Raises ViewFailed if the process fails, answers nonsense, or takes two minutes."""
        try:
            done = subprocess.run(
                [sys.executable, "-m", WORKER],
                input=to_bytes(job),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                timeout=LONGEST_SEC,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as broken:
            raise ViewFailed(f"view {job.view}: its process could not be run ({type(broken).__name__})") from None
        return _answer(job, done.returncode, done.stdout)


def _answer(job: ViewJob, code: int, answer: bytes) -> Mapping[str, NDArray[np.float64]] | None:
    if code != 0:
        raise ViewFailed(f"view {job.view}: its process ended with {code}")
    if answer == b"nothing":
        return None
    try:
        found = load(answer)
    except (SafetensorError, ValueError) as broken:
        raise ViewFailed(f"view {job.view}: its process answered no tensors") from broken
    wanted = {f"g.{name}": value.shape for name, value in job.parameters.items()}
    if {name: each.shape for name, each in found.items()} != wanted:
        raise ViewFailed(f"view {job.view}: its process answered other tensors than were asked for")
    return {name: np.asarray(each, dtype=np.float64) for name, each in found.items()}


def _environment() -> dict[str, str]:
    """What Python needs to start, and one thread for every library; nothing else of this process's surroundings."""
    needed = ("SYSTEMROOT", "LD_LIBRARY_PATH", "PATH")
    kept = {name: os.environ[name] for name in needed if name in os.environ}
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return (
        kept | one | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONDONTWRITEBYTECODE": "1"}
    )
