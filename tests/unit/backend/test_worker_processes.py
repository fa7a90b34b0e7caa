"""The supervisor of several processes. Oracle: what each of them would answer when it is asked whether it serves."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.supervisors.multiprocess import Process

from backend.server_address import ServerAddress
from backend.worker_processes import SharedPort


class StartingProcess:
    """Lives, and serves from its so-many-th answer on."""

    def __init__(self, serves: Iterable[bool]) -> None:
        self._serves = iter(serves)

    def is_alive(self, timeout: float) -> bool:
        return True

    def is_ready(self, timeout: float) -> bool:
        return next(self._serves)


def test_where_they_listen_is_said_once_all_serve_however_long_that_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # which the supervisor takes over
    address = ServerAddress(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        supervisor = SharedPort(uvicorn.Config(cast(Any, None), workers=2), [listening], address)
        slow = [StartingProcess([False, False, True, True]), StartingProcess([False, True])]
        supervisor.processes = cast(list[Process], slow)
        said = []
        for _ in range(5):  # a further question would find no answer
            supervisor.keep_subprocess_alive()
            said.append(address.known())
        port = listening.getsockname()[1]
    address.forget()
    assert said == [None, None, None, *2 * [f"http://127.0.0.1:{port}"]]
