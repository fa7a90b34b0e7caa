"""Batch tasks without prerequisites, which a node can start at once."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from backend.embedding.batch_executor import check_array

MEET_WITHIN_SEC = 120.0


@dataclass(frozen=True)
class MeetsAnother:
    """Waits until the other of two batches has begun: on the other node if each node has one CPU.

    Returns the node that computes the batch, the number of threads it was given, and the square of the batch.
    """

    at_once: ClassVar[bool] = False

    folder: Path
    key: str = "meets another"

    def portable(self) -> MeetsAnother:
        return self

    def open(self, threads: int) -> Callable[[int], tuple[str, int, int]]:
        import ray  # on a node

        def run(batch: int) -> tuple[str, int, int]:
            (self.folder / str(batch)).touch()
            until = time.monotonic() + MEET_WITHIN_SEC
            while not (self.folder / str(batch ^ 1)).exists():
                assert time.monotonic() < until, f"batch {batch ^ 1} has not begun"
                time.sleep(0.01)
            return str(ray.get_runtime_context().get_node_id()), threads, batch * batch

        return run

    def check(self, batch: int, result: object) -> None:
        pass


@dataclass(frozen=True)
class DivideTask:
    """1 / batch."""

    at_once: ClassVar[bool] = False

    key: str = "divides"

    def portable(self) -> Self:
        return self

    def open(self, threads: int) -> Callable[[float], float]:
        return lambda batch: 1 / batch

    def check(self, batch: float, result: object) -> None:
        pass


@dataclass(frozen=True)
class FillTask:
    """`count` times the batch in float32; the check accepts only `wanted` numbers."""

    at_once: ClassVar[bool] = False

    count: int
    wanted: int
    key: str = "fills"

    def portable(self) -> FillTask:
        return self

    def open(self, threads: int) -> Callable[[float], NDArray[np.float32]]:
        return lambda batch: np.full(self.count, batch, np.float32)

    def check(self, batch: float, result: object) -> None:
        check_array("numbers", result, np.float32, (self.wanted,))


@dataclass(frozen=True)
class LacksModule(DivideTask):
    """A task whose node lacks a module that it needs when it opens."""

    key: str = "lacks a module"

    def open(self, threads: int) -> Callable[[float], float]:
        importlib.import_module("module_of_another_version")
        raise AssertionError("it is there")


@dataclass(frozen=True)
class TellsVariables(DivideTask):
    """The names of the environment variables of the computing process."""

    key: str = "variables"

    def open(self, threads: int) -> Callable[[float], Any]:
        return lambda batch: sorted(os.environ)


@dataclass(frozen=True)
class EndsProcess(DivideTask):
    """1 / batch; for batch 0 it ends the computing process and notes that in the folder."""

    folder: Path = Path()
    key: str = "ends its process"

    def open(self, threads: int) -> Callable[[float], float]:
        def run(batch: float) -> float:
            if batch == 0:
                (self.folder / str(os.getpid())).touch()
                os._exit(9)
            return 1 / batch

        return run


@dataclass(frozen=True)
class Runs:
    """An object that notes in the folder who unpickles it."""

    folder: Path

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.folder,)


def _unpickled(folder: Path) -> Runs:
    (folder / str(os.getpid())).touch()
    return Runs(folder)


@dataclass(frozen=True)
class GivesCode(DivideTask):
    """Returns an object that runs code when it is unpickled."""

    folder: Path = Path()
    key: str = "gives code"

    def open(self, threads: int) -> Callable[[float], Any]:
        return lambda batch: Runs(self.folder)


class Unreadable:
    """An object of a module that other processes lack."""

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, ("module_of_another_version",)


@dataclass(frozen=True)
class GivesUnreadable(DivideTask):
    """Returns what only a node can unpickle, as Ray's own error about a missing module."""

    key: str = "gives what can't be read"

    def open(self, threads: int) -> Callable[[float], Any]:
        return lambda batch: Unreadable()
