"""A neighbour without a key floods the real `ownfeed device` with connections, and the reader is still served."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import httpx
import pytest

from tests.doubles.slow_clients import PATIENCE_SEC, connected, poured
from tests.doubles.small_world import free_port


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port, folder = free_port(), tmp_path_factory.mktemp("device")
    options = {"--profile": "anna", "--data-dir": folder, "--port": port, "--backend": "http://127.0.0.1:9"}
    command = [sys.executable, "-m", "ownfeed", "device", *(str(part) for pair in options.items() for part in pair)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    made = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + PATIENCE_SEC
        while not answers(made):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        yield made
    finally:
        process.terminate()
        process.wait(PATIENCE_SEC)


def answers(url: str) -> bool:
    """Return whether a request is answered; without the key that is a 403."""
    try:
        return httpx.get(url, timeout=PATIENCE_SEC).status_code == 403
    except httpx.ConnectError:
        return False


def test_endless_header_is_cut_off(url: str) -> None:
    """Regression: it took all of the device's time."""
    most = 64_000_000
    assert poured(url, b"GET / HTTP/1.1\r\nx: ", b"a" * 65_536, most) < most
    assert answers(url)


def test_endless_requests_do_not_lock_the_reader_out(url: str) -> None:
    """Regression: they used unbounded memory. Now the device reads no more requests than it has answered."""
    with connected(url) as client:
        client.settimeout(2.0)
        sent = 0
        with suppress(TimeoutError):
            while sent < 64_000_000:
                sent += client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 2_000)
        assert sent < 64_000_000
        assert answers(url)


def test_idle_connections_leave_room_for_the_reader(url: str) -> None:
    with ExitStack() as held:
        for _ in range(250):
            held.enter_context(connected(url))
        assert answers(url)


@pytest.mark.parametrize("name", ["origin", "referer"])
def test_malformed_origin_is_refused_like_a_missing_key(url: str, name: str) -> None:
    for method in ("GET", "POST"):
        assert httpx.request(method, url, headers={name: "http://["}, timeout=PATIENCE_SEC).status_code == 403
