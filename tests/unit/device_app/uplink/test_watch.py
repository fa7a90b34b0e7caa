"""Detecting a backend's loss and return by a silent connection. Oracle: the listening socket of the test."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from device_app.uplink import watch as module
from device_app.uplink.watch import BackendWatch


def wait_until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def listening(port: int = 0) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    made.listen()
    made.settimeout(60)
    return made


@contextmanager
def run_watch(watch: BackendWatch) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=watch.run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()


def test_backend_loss_and_return_are_detected() -> None:
    server, back = listening(), threading.Event()
    port = server.getsockname()[1]
    watch = BackendWatch(f"http://127.0.0.1:{port}", back.set)
    with run_watch(watch):
        connection, _ = server.accept()
        assert not watch.lost
        server.close()
        connection.close()
        wait_until(lambda: watch.lost, "it is gone")
        assert not back.is_set()
        server = listening(port)
        wait_until(back.is_set, "it is back")
        assert not watch.lost
    server.close()


def test_connection_closed_by_the_server_is_reopened_without_an_alarm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BRIEF_SEC", 0.0)
    server, lost = listening(), []
    watch = BackendWatch(f"http://127.0.0.1:{server.getsockname()[1]}", lambda: lost.append(1))
    with run_watch(watch):
        for _ in range(4):
            connection, _ = server.accept()
            connection.sendall(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
            connection.close()
        connection, _ = server.accept()
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        assert (watch.lost, lost) == (False, [])
        connection.close()
    server.close()


def test_full_server_is_not_contacted_again_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BRIEF_SEC", 1_000.0)
    server = listening()
    watch = BackendWatch(f"http://127.0.0.1:{server.getsockname()[1]}", lambda: None)
    with run_watch(watch):
        for _ in range(2):
            server.accept()[0].close()
        server.settimeout(1.0)
        with pytest.raises(TimeoutError):
            server.accept()
        assert not watch.lost
    server.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_KEEPIDLE"), reason="the system doesn't let the pace be set")
def test_keepalive_detects_a_silent_end_in_twenty_seconds() -> None:
    server = listening()
    watch = BackendWatch(f"http://127.0.0.1:{server.getsockname()[1]}", lambda: None)
    with watch._connected() as connection:
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        assert [connection.getsockopt(socket.IPPROTO_TCP, name) for name in names] == [10, 10, 1]
    server.close()
