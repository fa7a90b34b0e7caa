"""Processes forked from one that has imported the server and the device: a start takes a tenth of the time.

All of a worker's such processes come from one fork server, which imports `IMPORTED` at the first start.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

IMPORTED = (
    "backend.app",
    "backend.operations.backup",
    "device_app.composition",
    "experiments.bench.secagg_http",
    "tests.doubles.backend",
    "tests.doubles.round_rig",
    "tests.doubles.small_world",
)
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(list(IMPORTED))


def forked(work: Callable[..., None], *arguments: object) -> BaseProcess:
    """Start a process that does the work. `work` and its arguments have to be picklable."""
    process = _context.Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


@contextmanager
def running(
    work: Callable[..., None], *arguments: object, environment: Mapping[str, str] | None = None
) -> Iterator[BaseProcess]:
    """A process that does the work, and is killed at the block's end. environment: variables besides this process's."""
    process = forked(_in_environment, dict(os.environ) | dict(environment or {}), work, arguments)
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _in_environment(environment: Mapping[str, str], work: Callable[..., None], arguments: tuple[object, ...]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    work(*arguments)
