"""The process that gives a cluster its tasks, and how the server handles its answers, with a double for Ray.

Oracles: quotients by hand.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.embedding import ray_executor
from backend.embedding.batch_executor import ClusterUnavailable
from backend.embedding.ray_executor import (
    LENGTH_BYTES,
    AnswerUnreadable,
    ClusterTaskFailed,
    RayExecutor,
    messages,
    receive_answer,
    send_answer,
)
from backend.errors import may_pass
from tests.doubles.batch_tasks import (
    DivideTask,
    EndsProcess,
    FillTask,
    GivesCode,
    GivesUnreadable,
    LacksModule,
    TellsVariables,
)

DOUBLE = Path(__file__).parents[3] / "doubles" / "ray_in_process"


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Iterator[RayExecutor]:
    """Yield an executor of a cluster whose head is a listening port."""
    monkeypatch.setenv("PYTHONPATH", str(DOUBLE))
    with socket.create_server(("127.0.0.1", 0)) as head:
        made = RayExecutor(f"127.0.0.1:{head.getsockname()[1]}")
        yield made
        made.close()


def test_failed_batch_is_not_retried_and_the_next_task_runs(executor: RayExecutor) -> None:
    with pytest.raises(ClusterTaskFailed, match="division by zero") as failed:
        list(executor.map(DivideTask(), [4.0, 0.0, 2.0]))
    assert not may_pass(failed.value)
    assert list(executor.map(DivideTask(), iter([4.0, 2.0] * 8))) == [0.25, 0.5] * 8


@pytest.mark.parametrize("task", [LacksModule(), GivesUnreadable()])
def test_missing_module_on_a_node_is_reported_as_repairable(executor: RayExecutor, task: Any) -> None:
    with pytest.raises(ClusterUnavailable, match=r"embed_cluster: .*No module named 'module_of_another") as refused:
        list(executor.map(task, [4.0]))
    assert may_pass(refused.value)


def test_answer_of_another_shape_is_named_in_the_error(executor: RayExecutor) -> None:
    assert [each.tolist() for each in executor.map(FillTask(2, 2), [0.5, 3.0])] == [[0.5, 0.5], [3.0, 3.0]]
    with pytest.raises(ClusterTaskFailed, match=r"numbers: shape \(3\) was expected, not \(2,\)"):
        list(executor.map(FillTask(2, 3, key="others"), [0.5]))
    with pytest.raises(ClusterTaskFailed, match="numbers: not every number is finite"):
        list(executor.map(FillTask(2, 2), [0.5, float("nan")]))


def test_node_results_execute_no_code_in_the_server(executor: RayExecutor, tmp_path: Path) -> None:
    """Fails with pickled answers: this process had unpickled it, too."""
    with pytest.raises(ClusterTaskFailed, match="Runs is not allowed in it"):
        list(executor.map(GivesCode(folder=tmp_path), [4.0]))
    ran = {int(each.name) for each in tmp_path.iterdir()}
    assert ran
    assert os.getpid() not in ran


def test_driver_process_gets_no_settings_or_keys_of_the_server(
    executor: RayExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = {"OWNFEED_BACKEND_DATABASE_URL", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "PGPASSWORD"}
    for name in secret:
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("RAY_TLS_CA_CERT", "/ca.pem")
    (names,) = executor.map(TellsVariables(), [1.0])
    assert not secret & set(names)
    assert {"PATH", "RAY_TLS_CA_CERT"} <= set(names)


def test_driver_that_just_ended_is_restarted_once(executor: RayExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    list(executor.map(DivideTask(), [1.0]))
    driver = executor._driver
    assert driver is not None
    driver._process.kill()
    driver._process.wait()
    monkeypatch.setattr(ray_executor._Driver, "alive", lambda self: True)  # as a moment before
    assert list(executor.map(DivideTask(), iter([4.0, 2.0] * 8))) == [0.25, 0.5] * 8
    assert executor._driver is not driver


def test_batch_killing_its_process_is_tried_only_twice(executor: RayExecutor, tmp_path: Path) -> None:
    with pytest.raises(ClusterUnavailable, match="the process that gives it tasks has ended"):
        list(executor.map(EndsProcess(folder=tmp_path), [0.0, 4.0]))
    assert len(list(tmp_path.iterdir())) == 2


def test_batches_are_not_recomputed_after_the_first_result(executor: RayExecutor, tmp_path: Path) -> None:
    found: list[float] = []
    with pytest.raises(ClusterUnavailable, match="has ended"):
        found.extend(executor.map(EndsProcess(folder=tmp_path), iter([4.0] * 8 + [0.0] + [2.0] * 8)))
    assert len(list(tmp_path.iterdir())) == 1, "more than a window of batches: results have come before the 0 is given"


def test_disk_failure_while_reading_batches_is_not_the_clusters_fault(executor: RayExecutor) -> None:
    def batches() -> Iterator[float]:
        yield 4.0
        raise OSError("the disk")

    with pytest.raises(OSError, match="the disk"):
        list(executor.map(DivideTask(), batches()))


class ScriptedLine:
    """A pipe's end that returns scripted messages, and records the time limit of each wait."""

    def __init__(self, coming: list[bytes]) -> None:
        self._coming, self.waited = coming, list[float]()

    def poll(self, timeout: float) -> bool:
        self.waited.append(timeout)
        return bool(self._coming)

    def recv_bytes(self) -> bytes:
        if not self._coming:
            raise EOFError
        return self._coming.pop(0)


def test_idle_time_is_counted_only_between_tasks() -> None:
    here, there = Pipe()
    said: list[tuple[Any, ...]] = [("task", "k", 1), ("batch", 1), ("rest",), ("task", "k", 1), ("rest",)]
    from backend.embedding.ray_executor import send

    coming = []
    for each in said:
        send(here, each)
        coming.append(there.recv_bytes())
    line: Any = ScriptedLine(list(coming))
    assert list(messages(line, 60.0)) == said
    assert line.waited == [60.0, 60.0, 60.0], "before each task, and at the end"
    unfinished: Any = ScriptedLine(coming[:2])
    with pytest.raises(EOFError):
        list(messages(unfinished, 60.0))
    assert unfinished.waited == [60.0]


CONTENT: Any = ({"a": np.arange(6, dtype=np.float64).reshape(2, 3), "b": np.zeros((0, 4), np.float32)},
           [np.full((2,), 0.1, np.float16), None, "ß", 3, 0.1, (np.array(7, np.int64),)])  # fmt: skip


def test_arrays_arrive_as_sent() -> None:
    here, there = Pipe()
    send_answer(here, "result", CONTENT)
    kind, found = receive_answer(there)
    assert kind == "result"
    assert found[0].keys() == CONTENT[0].keys()
    assert found[1][1:5] == CONTENT[1][1:5]
    pairs = [*zip(found[0].values(), CONTENT[0].values(), strict=True), (found[1][0], CONTENT[1][0]),
             (found[1][5][0], CONTENT[1][5][0])]  # fmt: skip
    for one, other in pairs:
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    with pytest.raises(AnswerUnreadable, match="ndarray is not allowed in it"):
        send_answer(here, "result", np.array([object()]))
    assert not there.poll()


@pytest.mark.parametrize(
    ("header", "rest"),
    [
        (b"[", b""),
        (b"3", b""),
        (b"[" * 100_000, b""),
        (b'["result", {"array": ["float32", [2]]}]', b"1234567"),
        (b'["result", {"array": ["float32", [2]]}]', b"123456789"),
        (b'["result", {"array": ["float32", [-1]]}]', b""),
        (b'["result", {"array": ["float32", [1e3]]}]', b""),
        (b'["result", {"array": ["object", [1]]}]', b"12345678"),
        (b'["result", {"array": ["float32", [9999999999999]]}]', b"1234"),
        (b'["result", {"code": "x"}]', b""),
        (b"[7, null]", b""),
    ],
)
def test_malformed_answer_is_refused(header: bytes, rest: bytes) -> None:
    here, there = Pipe()
    here.send_bytes(len(header).to_bytes(LENGTH_BYTES, "little") + header + rest)
    with pytest.raises(AnswerUnreadable):
        receive_answer(there)
