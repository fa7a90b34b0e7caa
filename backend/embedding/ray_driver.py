"""The process that gives a Ray cluster its tasks: `python -m backend.embedding.ray_driver FD HOST:PORT`.

FD is one end of a pipe. Into it come a task, its batches, another task; out of it what comes of each batch, in order.
It ends when the other end is closed, or nothing came for a while.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from multiprocessing.connection import Connection
from queue import Empty, Queue
from threading import Thread
from typing import Any

import ray

from backend.embedding.pickled_pipe import receive, send
from backend.embedding.ray_node import NODE_ENVIRONMENT, compute, versions

IDLE_SEC = 60.0
PROBE_SEC = 5.0


def main(connection: Connection, address: str) -> None:
    """Give tasks until nobody wants any."""
    try:
        cpus = _join(address)
    except Exception as refused:  # Ray's are of many kinds, and all mean the same
        send(connection, ("refused", _line(refused)))
        return
    send(connection, ("ready", 2 * cpus + 2))
    remote = ray.remote(num_cpus=1, scheduling_strategy="SPREAD", runtime_env={"env_vars": NODE_ENVIRONMENT})(compute)
    expected = versions()
    under_way: Queue[Any] = Queue()

    def read() -> None:
        key, held = "", None
        try:
            while True:
                message = receive(connection)
                if message[0] == "task":
                    key, held = message[1], ray.put(message[2])
                else:
                    under_way.put(remote.remote(key, [held], expected, message[1]))
        except (EOFError, OSError):
            os._exit(0)  # nobody is left to hear of what is under way, and Ray ends it

    Thread(target=read, name="read-batches", daemon=True).start()
    while True:
        try:
            result = under_way.get(timeout=IDLE_SEC)
        except Empty:
            return
        try:
            done = ray.get(result)
        except ray.exceptions.RayTaskError as failed:
            send(connection, ("failed", _line(failed.cause or failed)))
        except ray.exceptions.RayError as lost:
            send(connection, ("refused", _line(lost)))
        else:
            send(connection, ("result", done))


def _join(address: str) -> int:
    """How many CPUs the cluster has. Raises what Ray does, OSError or ValueError."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), PROBE_SEC):
        pass  # Ray itself would try for a minute, and then say less
    ray.init(address=address, log_to_driver=False, logging_level="error")
    cpus = int(ray.cluster_resources().get("CPU", 0))
    if cpus < 1:
        raise ValueError("its nodes have no CPU to give")
    return cpus


def _line(error: BaseException) -> str:
    """The first line of what is said."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it closes the pipe
    main(Connection(int(sys.argv[1])), sys.argv[2])
    os._exit(0)  # Ray's own end takes seconds, and all is said
