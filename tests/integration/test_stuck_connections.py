"""Connections that are held for nothing or used against the rules, on a real port: everybody else goes on reading."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from backend.server import connections_limit
from tests.doubles.served_backend import Served, serving, wait_until
from tests.doubles.slow_clients import PATIENCE_SEC, answer_of, begun, connected, is_closed_by_the_server, poured

JSON = "application/json"


@pytest.fixture(scope="module")
def served_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as served:
        yield served


def test_headers_that_never_end_are_given_up_however_they_drip(tmp_path: Path) -> None:
    with serving(tmp_path, header_sec=0.2) as served:
        with connected(served.url) as silent, connected(served.url) as begun_only:
            begun_only.sendall(b"GET /v1/health HTTP/1.1\r\nhost: backend\r\n")
            with suppress(ConnectionError):
                for _ in range(10_000):  # far longer than the limit: each line is in time, the headers aren't
                    begun_only.sendall(b"x-more: 1\r\n")
                    if not threading.Event().wait(0.02) and is_at_an_end(begun_only):
                        break
            assert is_closed_by_the_server(begun_only)
            assert is_closed_by_the_server(silent)
        served.everybody_else()


def test_a_second_request_that_drips_on_a_used_connection_is_given_up_too(tmp_path: Path) -> None:
    with serving(tmp_path, header_sec=0.2, idle_sec=600) as served, connected(served.url) as client:
        client.sendall(b"GET /v1/health HTTP/1.1\r\nhost: backend\r\n\r\n")
        assert answer_of(client)[0] == 200
        client.sendall(b"GET /v1/health HTTP/1.1\r\n")
        assert is_closed_by_the_server(client)


def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    with serving(tmp_path, idle_sec=1) as served, connected(served.url) as client:
        client.sendall(b"GET /v1/health HTTP/1.1\r\nhost: backend\r\n\r\n")
        assert answer_of(client)[0] == 200
        assert is_closed_by_the_server(client)


def test_who_does_not_read_its_answer_is_cut_off(tmp_path: Path) -> None:
    with serving(tmp_path, unread_sec=0.2) as served:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        with client:
            client.connect(address_of(served.url))
            ask = b"GET /v1/news/front?limit=1000 HTTP/1.1\r\nhost: backend\r\n\r\n"
            wait_until(lambda: was_cut_off(client, ask))
        served.everybody_else()


def test_stuck_connections_make_room_for_those_that_ask(tmp_path: Path) -> None:
    with serving(tmp_path, connections_limit=10) as served, ExitStack() as held:
        stuck = [held.enter_context(connected(served.url)) for _ in range(40)]
        for client in stuck:
            with suppress(ConnectionError):
                client.sendall(b"GET /v1/health HTTP/1.1\r\n")
        served.client.close()
        served.client = httpx.Client(base_url=served.url, timeout=PATIENCE_SEC)
        served.everybody_else()
        assert is_closed_by_the_server(stuck[0])


def test_bodies_that_never_come_leave_room_for_those_that_ask(tmp_path: Path) -> None:
    """Each is being answered, as far as its headers go; red before: everybody else got 503 for as long as they came."""
    with serving(tmp_path, connections_limit=10) as served, ExitStack() as held:
        served.client.close()
        paths = ["/v1/recall", "/console/sign-in"] * 20
        waiting = [held.enter_context(begun(served.url, "POST", path, JSON, 60_000, b"{")) for path in paths]
        served.client = httpx.Client(base_url=served.url, timeout=PATIENCE_SEC)
        served.everybody_else()
        assert is_closed_by_the_server(waiting[0])


def test_answers_that_nobody_reads_leave_room_for_those_that_ask(tmp_path: Path) -> None:
    """One byte in nineteen seconds was enough to keep a connection; red before: everybody else got 503."""
    with serving(tmp_path, connections_limit=10) as served, ExitStack() as held:
        served.client.close()
        large = served.services.releases.add_blob(bytes(16_000_000))  # more than the system keeps of a connection
        for _ in range(20):
            client = held.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.connect(address_of(served.url))
            client.sendall(f"GET /v1/blobs/{large.sha256} HTTP/1.1\r\nhost: backend\r\n\r\n".encode("ascii"))
            client.recv(1)
        served.client = httpx.Client(base_url=served.url, timeout=PATIENCE_SEC)
        # Until as much of an answer is out as its reader's system keeps, a connection is one that is being worked on.
        wait_until(lambda: served.client.get("/v1/releases/current").status_code != 503)
        served.everybody_else()


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
        pytest.param(b"", b"GET /v1/health HTTP/1.1\r\nhost: x\r\n\r\n" * 2_000, id="requests without end"),
    ],
)
def test_a_request_with_too_much_besides_its_body_is_given_up(served_once: Served, head: bytes, piece: bytes) -> None:
    """Red before: 47 MB of one URL stopped the server for seven seconds, 39 MB of trailers took 600 MB of memory."""
    most = 64_000_000
    assert poured(served_once.url, head, piece, most) < most
    served_once.everybody_else()


def test_a_request_within_the_limits_of_its_head_is_read_however_it_is_cut(served_once: Served) -> None:
    padding = "".join(f"x-{number}: {'v' * 1_000}\r\n" for number in range(50))
    body = b'{"release": 1, "limit": 40, "report": {"kind": "code", "codebook": 16, "code": 3}}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    head = f"POST /v1/recall HTTP/1.1\r\nhost: backend\r\n{padding}content-type: application/json\r\n"
    sent = head.encode("ascii") + b"transfer-encoding: chunked\r\n\r\n" + chunks
    with connected(served_once.url) as client:
        for start in range(0, len(sent), 4_001):
            client.sendall(sent[start : start + 4_001])
        assert answer_of(client)[0] == 200


def test_files_stay_reserved_below_the_systems_limit() -> None:
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
def test_nobody_writes_lines_into_the_servers_log_by_what_it_does_not_speak(served_once: Served, sent: bytes) -> None:
    lines: list[str] = []
    heard = logging.Handler()
    heard.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("uvicorn").addHandler(heard)
    try:
        for _ in range(3):
            with connected(served_once.url) as client:
                client.sendall(sent)
                assert b"HTTP/1.1 " in client.recv(1_000)
    finally:
        logging.getLogger("uvicorn").removeHandler(heard)
    assert lines == []


def test_no_answer_names_the_program_that_serves(served_once: Served) -> None:
    assert "server" not in served_once.client.get("/v1/health").headers


def address_of(url: str) -> tuple[str, int]:
    """Host and port."""
    host, port = url.removeprefix("http://").split(":")
    return host, int(port)


def is_at_an_end(client: socket.socket) -> bool:
    """Whether the server has closed the connection, without waiting for it."""
    client.setblocking(False)
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    finally:
        client.settimeout(PATIENCE_SEC)


def was_cut_off(client: socket.socket, ask: bytes) -> bool:
    """Whether a further request finds the connection gone. Nothing is ever read."""
    client.settimeout(0.05)
    try:
        client.sendall(ask)
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return False
