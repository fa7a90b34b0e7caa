"""uvicorn's own limits on a real port without a proxy.

The tests show which of the threat model's attacks they stop. The proxy handles slow headers, silent connections and
unread answers (`test_proxies_in_front.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from backend.server.http_server import connections_limit, not_held
from backend.settings import load_settings
from tests.doubles.served_backend import Served, serve_backend
from tests.doubles.slow_clients import answer_of, connected, is_closed_by_the_server, poured


@pytest.fixture(scope="module")
def served_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_backend(tmp_path_factory.mktemp("served")) as served:
        yield served


def test_idle_connection_is_closed(tmp_path: Path) -> None:
    with serve_backend(tmp_path, idle_sec=1) as served, connected(served.url) as client:
        client.sendall(b"GET /v1/health HTTP/1.1\r\nhost: backend\r\n\r\n")
        assert answer_of(client)[0] == 200
        assert is_closed_by_the_server(client)


def test_connections_beyond_the_limit_are_answered_503(tmp_path: Path) -> None:
    with serve_backend(tmp_path, connections_limit=10) as served:
        served.client.close()
        with ExitStack() as held:
            for _ in range(10):
                held.enter_context(connected(served.url))
            further = held.enter_context(connected(served.url))
            further.sendall(b"GET /v1/health HTTP/1.1\r\nhost: backend\r\n\r\n")
            assert answer_of(further)[0] == 503
        with connected(served.url) as again:
            again.sendall(b"GET /v1/health HTTP/1.1\r\nhost: backend\r\n\r\n")
            assert answer_of(again)[0] == 200


RECALL = (
    b"POST /v1/recall HTTP/1.1\r\nhost: backend\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
)


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        pytest.param(b"GET /", b"a" * 65_536, id="a line without end"),
        pytest.param(b"GET / HTTP/1.1\r\nx: ", b"a" * 65_536, id="a header without end"),
        pytest.param(b"GET / HTTP/1.1\r\n", b"a: b\r\n" * 10_000, id="headers without end"),
        pytest.param(RECALL + b"0\r\n", b"a: b\r\n" * 10_000, id="trailers without end"),
        pytest.param(RECALL + b"0\r\nx: ", b"a" * 65_536, id="a trailer without end"),
        pytest.param(RECALL + b"1;", b"a" * 65_536, id="a chunk's extension without end"),
    ],
)
def test_request_with_an_oversized_head_or_trailer_is_cut_off(served_once: Served, head: bytes, piece: bytes) -> None:
    """Regression: 47 MB of one URL stopped the server for seven seconds, 39 MB of trailers took 600 MB of memory."""
    most = 64_000_000
    assert poured(served_once.url, head, piece, most) < most
    served_once.everybody_else()


def test_request_head_within_limits_is_read_in_any_chunking(served_once: Served) -> None:
    padding = "".join(f"x-{number}: {'v' * 1_000}\r\n" for number in range(50))
    body = b'{"release": 1, "limit": 40, "report": {"kind": "code", "codebook": 16, "code": 3}}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    head = f"POST /v1/recall HTTP/1.1\r\nhost: backend\r\n{padding}content-type: application/json\r\n"
    sent = head.encode("ascii") + b"transfer-encoding: chunked\r\n\r\n" + chunks
    with connected(served_once.url) as client:
        for start in range(0, len(sent), 4_001):
            client.sendall(sent[start : start + 4_001])
        assert answer_of(client)[0] == 200


def test_connection_limit_leaves_file_handles_below_the_system_limit() -> None:
    assert connections_limit(2_000, 1_024) == 704
    assert connections_limit(2_000, 256) == 128
    assert connections_limit(100, 1_024) == 100
    assert connections_limit(2_000, None) == 2_000


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /v1/health HTTP/1.1\r\nhost: b\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n",
        b"\x16\x03\x01 hello in another protocol\r\n\r\n",
    ],
    ids=["an upgrade", "no HTTP"],
)
def test_malformed_protocol_bytes_write_no_log_lines(served_once: Served, sent: bytes) -> None:
    lines: list[str] = []
    received = logging.Handler()
    received.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("uvicorn").addHandler(received)
    try:
        for _ in range(3):
            with connected(served_once.url) as client:
                client.sendall(sent)
                assert b"HTTP/1.1 " in client.recv(1_000)
    finally:
        logging.getLogger("uvicorn").removeHandler(received)
    assert lines == []


def test_answers_do_not_name_the_server_software(served_once: Served) -> None:
    assert "server" not in served_once.client.get("/v1/health").headers


def test_start_warns_about_missing_proxy_protection(tmp_path: Path) -> None:
    said = not_held(load_settings(data_dir=tmp_path, connections_limit=100))
    assert "100 such connections keep everybody else out. Put a proxy in front before" in said
    said = not_held(load_settings(data_dir=tmp_path, trusted_proxies=("127.0.0.1/32",)))
    assert "Let nothing but your proxy reach it." in said
