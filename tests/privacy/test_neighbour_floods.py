"""A neighbour who has no key and connects all the same, to the real `ownfeed device`: the reader goes on reading."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.doubles.slow_clients import PATIENCE_SEC, connected, is_closed_by_the_server, poured
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
    """Whether a request is answered; without the key that is a 403."""
    try:
        return httpx.get(url, timeout=PATIENCE_SEC).status_code == 403
    except httpx.ConnectError:
        return False


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nx: ", b"a" * 65_536, id="a header without end"),
        pytest.param(b"", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 2_000, id="requests without end"),
    ],
)
def test_a_request_without_end_is_given_up(url: str, head: bytes, piece: bytes) -> None:
    """Red before: each took all of the device's time, and memory without a bound."""
    most = 64_000_000
    assert poured(url, head, piece, most) < most
    assert answers(url)


def test_connections_that_ask_for_nothing_make_room_for_the_reader(url: str) -> None:
    with ExitStack() as held:
        idle = [held.enter_context(connected(url)) for _ in range(250)]
        assert answers(url)
        assert is_closed_by_the_server(idle[0])


@pytest.mark.parametrize("name", ["origin", "referer"])
def test_an_origin_that_is_no_address_is_refused_as_anything_else_without_the_key(url: str, name: str) -> None:
    for method in ("GET", "POST"):
        assert httpx.request(method, url, headers={name: "http://["}, timeout=PATIENCE_SEC).status_code == 403
