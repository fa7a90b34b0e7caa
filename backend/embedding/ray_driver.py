"""The process that submits tasks to a Ray cluster: `python -m backend.embedding.ray_driver FD HOST:PORT`.

FD is one end of a pipe. Its input is a task, the task's batches, and a message that no more follow, then the next task;
its output is each batch's result, in order. The process ends when the other end is closed, or no task arrives for a
while.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from multiprocessing.connection import Connection
from queue import Queue
from threading import Thread
from typing import Any

import ray

from backend.embedding.ray_executor import AnswerUnreadable, messages, send_answer
from backend.embedding.ray_node import FAILED, NODE_ENVIRONMENT, REFUSED, compute, line, same

IDLE_SEC = 60.0
PROBE_SEC = 5.0


def main(connection: Connection, address: str) -> None:
    """Submit tasks until the pipe is closed."""
    try:
        cpus = _join(address)
    except Exception as refused:  # Ray raises many kinds of errors, which all mean the same
        send_answer(connection, REFUSED, line(refused))
        return
    send_answer(connection, "ready", 2 * cpus + 2)
    remote = ray.remote(num_cpus=1, scheduling_strategy="SPREAD", runtime_env={"env_vars": NODE_ENVIRONMENT})(compute)
    expected = same()
    under_way: Queue[Any] = Queue()

    def read() -> None:
        key, held = "", None
        try:
            for message in messages(connection, IDLE_SEC):
                if message[0] == "task":
                    key, held = message[1], ray.put(message[2])
                elif message[0] == "batch":
                    under_way.put(remote.remote(key, [held], expected, message[1]))
        except (EOFError, OSError):
            pass  # nobody waits for the tasks in progress, and Ray ends them
        except Exception as broken:
            print(line(broken), file=sys.stderr, flush=True)  # noqa: T201  the last line that it says
        finally:
            os._exit(0)

    Thread(target=read, name="read-batches", daemon=True).start()
    while True:
        result = under_way.get()
        try:
            kind, content = ray.get(result)
        except Exception as lost:  # a node that died, or one without a module that it would import
            kind, content = REFUSED, line(getattr(lost, "cause", None) or lost)
        try:
            send_answer(connection, kind, content)
        except AnswerUnreadable as wrong:
            send_answer(connection, FAILED, f"a node's answer: {wrong}")


def _join(address: str) -> int:
    """Join the cluster; return its number of CPUs. Raises Ray's errors, OSError or ValueError."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), PROBE_SEC):
        pass  # Ray itself would retry for a minute, with a less precise message
    ray.init(address=address, log_to_driver=False, logging_level="error")
    cpus = int(ray.cluster_resources().get("CPU", 0))
    if cpus < 1:
        raise ValueError("its nodes have no free CPU")
    return cpus


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it closes the pipe
    main(Connection(int(sys.argv[1])), sys.argv[2])
    os._exit(0)  # Ray's own shutdown takes seconds, and all results are sent
