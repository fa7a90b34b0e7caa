"""Starts nodes of a Ray cluster on this machine, one CPU each, as an operator starts them on several machines."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

TRIES = 3
"""A node that isn't up within half a minute ends itself, which happens on a busy machine."""
LIGHT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
"""By default Ray gives workers the lowest priority, but a test waits for them."""


@contextmanager
def ray_nodes(count: int, cpus: int = 1) -> Iterator[str]:
    """Run a cluster with this many nodes; yield its address."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # a socket's path may have at most 107 bytes
    started: list[subprocess.Popen[bytes]] = []
    port = _free_port()
    try:
        started.append(_node(["--head", "--include-dashboard=false", f"--port={port}", f"--temp-dir={folder}"], cpus))
        address = f"127.0.0.1:{port}"
        started += [_node([f"--address={address}"], cpus) for _ in range(count - 1)]
        yield address
    finally:
        for node in started[::-1]:
            node.terminate()
        for node in started[::-1]:
            node.wait()
            assert node.stdout is not None
            node.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)


def _node(arguments: Sequence[str], cpus: int) -> subprocess.Popen[bytes]:
    command = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--node-ip-address=127.0.0.1",
               f"--num-cpus={cpus}", "--object-store-memory=200000000",
               "--disable-usage-stats", *arguments]  # fmt: skip
    for _ in range(TRIES):
        node = subprocess.Popen(command, env=os.environ | LIGHT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert node.stdout is not None
        said = []
        for line in node.stdout:
            said.append(line)
            if b"Ray runtime started" in line:
                return node
        node.wait()
        node.stdout.close()
    raise AssertionError(f"no node of Ray starts: {b''.join(said)[-2000:]!r}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
