"""Which executor computes batches, without Ray. Oracle: a product by hand."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing import Pipe
from threading import Barrier
from typing import Any, ClassVar, Self

import numpy as np
import psutil
import pytest
import torch

from backend.embedding import batch_executor
from backend.embedding.batch_executor import (
    ClusterUnavailable,
    ExecutorSettings,
    FallbackExecutor,
    LocalExecutor,
    ProcessEnded,
    SeparateProcess,
)
from backend.embedding.ray_executor import receive, send
from backend.errors import BackendSettingsRefused
from backend.federation.split.torch_tasks import ModuleVectors


@dataclass
class DoublingTask:
    """Computes 2 x, and counts how often it was opened."""

    at_once: ClassVar[bool] = False

    key: str = "doubles"
    opened: list[int] = field(default_factory=list)

    def portable(self) -> Self:
        return self

    def open(self, threads: int) -> Callable[[int], int]:
        self.opened.append(threads)
        return lambda batch: 2 * batch

    def check(self, batch: int, result: object) -> None:
        assert result == 2 * batch


class VanishingCluster:
    """A cluster that accepts more batches than it answers."""

    def __init__(self, answers: int, takes: int) -> None:
        self.answers, self.takes = answers, takes

    def map(self, task: Any, batches: Iterable[Any]) -> Iterator[Any]:
        taken = [batch for _, batch in zip(range(self.takes), batches, strict=False)]
        yield from (2 * batch for batch in taken[: self.answers])
        raise ClusterUnavailable("10.0.0.5:6379", "its head has ended.")


def test_local_executor_opens_a_task_once_with_its_number_of_threads() -> None:
    task, executor = DoublingTask(), LocalExecutor(3)
    assert [list(executor.map(task, batches)) for batches in ([1, 2], [3])] == [[2, 4], [6]]
    assert task.opened == [3]


class ProcessIdTask(DoublingTask):
    """Each result is the id of the process that computed it; the batch 9 kills that process."""

    def open(self, threads: int) -> Callable[[int], int]:
        def run(batch: int) -> int:
            if batch == 9:
                os.kill(os.getpid(), signal.SIGKILL)
            return os.getpid()

        return run


def test_separate_process_serves_all_calls_until_it_is_idle_and_another_replaces_it() -> None:
    executor = SeparateProcess(2, idle_sec=1.5)
    try:
        first = [*executor.map(ProcessIdTask(), [1, 2]), *executor.map(ProcessIdTask(), [3])]
        assert len(set(first)) == 1
        assert first[0] != os.getpid()
        this = psutil.Process()
        until = time.monotonic() + 60
        while any(child.pid == first[0] for child in this.children()):
            assert time.monotonic() < until, "it still runs though it has had no batches"
            time.sleep(0.05)
        assert [*executor.map(ProcessIdTask(), [4])] != [first[0]]
    finally:
        executor.close()


class FailingTask(DoublingTask):
    """Fails on every batch."""

    def open(self, threads: int) -> Callable[[int], int]:
        def run(batch: int) -> int:
            raise ValueError(f"{batch} can't be doubled")

        return run


def test_separate_process_also_ends_after_a_batch_that_failed() -> None:
    executor = SeparateProcess(1, idle_sec=0.2)
    try:
        with pytest.raises(ValueError, match="7 can't be doubled"):
            list(executor.map(FailingTask(), [7]))
        until = time.monotonic() + 60
        while executor._process is not None:
            assert time.monotonic() < until, "it still runs though it has had no batches"
            time.sleep(0.05)
    finally:
        executor.close()


def test_killed_separate_process_is_reported_and_another_serves_the_next_call() -> None:
    executor = SeparateProcess(1)
    try:
        with pytest.raises(ProcessEnded, match="was killed"):
            list(executor.map(ProcessIdTask(), [1, 9]))
        assert list(executor.map(DoublingTask(), [2, 3])) == [4, 6]
    finally:
        executor.close()


class MeetingTask(DoublingTask):
    """Each batch waits until three are computed at the same time; the batch 13 fails."""

    at_once: ClassVar[bool] = True

    def open(self, threads: int) -> Callable[[int], int]:
        double, three = super().open(threads), Barrier(3, timeout=60)

        def run(batch: int) -> int:
            three.wait()
            if batch == 13:
                raise ValueError("13 can't be doubled")
            return double(batch)

        return run


def test_local_executor_computes_batches_at_once_with_a_thread_each_and_in_order() -> None:
    task = MeetingTask()
    assert list(LocalExecutor(3).map(task, range(6))) == [0, 2, 4, 6, 8, 10]
    assert task.opened == [1]
    with pytest.raises(ValueError, match="13 can't be doubled"):
        list(LocalExecutor(3).map(task, (1, 13, 2)))


@pytest.mark.parametrize(("answers", "takes"), [(0, 0), (0, 3), (2, 5), (5, 5), (4, 7)])
def test_local_process_takes_over_in_order_when_the_cluster_is_lost(
    answers: int, takes: int, caplog: pytest.LogCaptureFixture
) -> None:
    executor = FallbackExecutor(VanishingCluster(answers, takes), LocalExecutor(1))
    assert list(executor.map(DoublingTask(), iter(range(7)))) == [0, 2, 4, 6, 8, 10, 12]
    assert (
        "Setting embed_cluster: the Ray cluster at 10.0.0.5:6379 can't be used: its head has ended; this" in caplog.text
    )


def test_error_for_a_cluster_without_ray_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_executor, "find_spec", lambda name: None)
    with pytest.raises(BackendSettingsRefused, match=r"Setting embed_cluster: .*Ray isn't installed") as refused:
        ExecutorSettings(cluster="10.0.0.5:6379", without="here").open(1)
    assert refused.value.field == "embed_cluster"
    assert isinstance(ExecutorSettings().open(1), LocalExecutor)


def test_module_is_sent_with_its_weights_and_not_by_shared_memory() -> None:
    """Fails with `Connection.send`: torch would send a place in shared memory, which no other process could open."""
    module = torch.nn.Linear(3, 2)
    here, there = Pipe()
    send(here, ModuleVectors(module, 2))
    sent = there.recv_bytes()
    assert module.weight.detach().numpy().tobytes() in sent
    here.send_bytes(sent)
    found = receive(there)
    batch = (np.eye(3, dtype=np.float32),)
    assert found.key == ModuleVectors(module, 2).key
    assert found.open(1)(batch).tobytes() == ModuleVectors(module, 2).open(1)(batch).tobytes()
    here.close()
    there.close()
