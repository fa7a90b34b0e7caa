"""The log of sealed requests contains exactly what leaves."""

from __future__ import annotations

import gzip
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime

import httpx
import pytest

from device_app.errors import AnswerMalformed, BackendRefused, BackendUnreachable, StoreBroken
from device_app.store.byte_log import ByteLog
from device_app.store.database import Database
from device_app.uplink.http import HttpClient, etag_of
from protocol.ids import PROTOCOL_VERSION
from tests.doubles.sealing import seal_nothing

Answering = Callable[[httpx.Request], httpx.Response]
SEALED = seal_nothing(release="r1", limit=400)


class _Raw(httpx.SyncByteStream):
    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content


@pytest.fixture
def client_to(log: ByteLog, now: datetime) -> Iterator[Callable[[Answering], HttpClient]]:
    doors: list[HttpClient] = []

    def build(answering: Answering) -> HttpClient:
        doors.append(HttpClient("http://backend.example", log, lambda: now, httpx.MockTransport(answering)))
        return doors[-1]

    yield build
    for client in doors:
        client.close()


@contextmanager
def raw_server(*connections: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Listen on a socket and keep every received byte, as the oracle for what left.

    Serves one connection after the other, each with one answer per request; all stay open to the end.
    """
    received: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with ExitStack() as stack:
            for answers in connections:
                connection = stack.enter_context(listener.accept()[0])
                connection.settimeout(10)
                for answer in answers:
                    received.append(_read_request(connection))
                    connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1], received
    finally:
        thread.join(10)
        listener.close()


def _read_request(connection: socket.socket) -> bytes:
    got = b""
    while b"\r\n\r\n" not in got:
        got += connection.recv(65536)
    head, _, body = got.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def test_request_log_holds_the_exact_bytes_a_socket_received(log: ByteLog, now: datetime) -> None:
    answers = [
        b'HTTP/1.1 200 OK\r\nSet-Cookie: id=you; Path=/\r\nETag: "r1"\r\nContent-Length: 2\r\n\r\n{}',
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    ]
    with raw_server(answers, [b"HTTP/1.1 304 Not Modified\r\n\r\n"]) as (port, received):
        client = HttpClient(f"http://127.0.0.1:{port}/", log, lambda: now)
        client.deliver(SEALED, "/v1/recall", purpose="recall")
        client.deliver(SEALED, "/v1/recall", purpose="recall")
        assert client.get("/v1/news/front?limit=600", words="The list.", purpose="sync", etag="7").status == 304
        client.close()
    entries = [log.entry(row.id) for row in reversed(log.entries().rows)]
    assert [entry.head + entry.body for entry in entries if entry is not None] == received
    assert b"cookie" not in received[1].lower(), "a cookie of the first answer came back"
    assert received[0] == received[1]
    # The whole of what a request says about the device it comes from:
    assert sorted(received[2].decode().lower().strip().split("\r\n")) == [
        "accept-encoding: gzip",
        "accept: application/json",
        "connection: keep-alive",
        "get /v1/news/front?limit=600 http/1.1",
        f"host: 127.0.0.1:{port}",
        'if-none-match: "7"',
        f"ownfeed-protocol: {PROTOCOL_VERSION}",
        "user-agent: ownfeed",
    ]


def test_only_sealed_messages_are_sent(client_to: Callable[[Answering], HttpClient], log: ByteLog) -> None:
    client = client_to(lambda request: pytest.fail("it was sent"))
    with pytest.raises(TypeError, match=r"only what device_app\.privacy has sealed"):
        client.deliver({"clicks": ["N1"]}, "/v1/recall", purpose="recall")  # type: ignore[arg-type]
    assert log.entries().total == 0


def test_log_line_shows_purpose_cost_and_answer(
    client_to: Callable[[Answering], HttpClient], log: ByteLog, now: datetime
) -> None:
    packed = gzip.compress(b'{"a": 1}' * 100)
    headers = {"content-encoding": "gzip", "server-timing": "search;dur=1.5"}
    client = client_to(lambda request: httpx.Response(200, headers=headers, stream=_Raw(packed)))
    answer = client.deliver(SEALED, "/v1/recall", purpose="recall")
    assert answer.body == b'{"a": 1}' * 100
    assert answer.headers["server-timing"] == "search;dur=1.5"
    (line,) = log.entries().rows
    assert (line.at, line.purpose, line.words, line.method) == (now, "recall", SEALED.words, "POST")
    assert (line.url, line.status, line.epsilon, line.mechanism) == ("http://backend.example/v1/recall", 200, 0, "none")
    assert line.response_bytes == len(packed)
    assert line.response_head is not None
    assert line.response_head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert line.ms is not None
    assert line.ms > 0


def test_unloggable_request_is_not_sent(client_to: Callable[[Answering], HttpClient], database: Database) -> None:
    client = client_to(lambda request: pytest.fail("it was sent"))
    database.row("PRAGMA query_only=ON")
    with pytest.raises(StoreBroken):
        client.deliver(SEALED, "/v1/recall", purpose="recall")


def test_request_is_logged_while_its_answer_is_awaited(
    client_to: Callable[[Answering], HttpClient], log: ByteLog
) -> None:
    def answering(request: httpx.Request) -> httpx.Response:
        (line,) = log.entries().rows
        assert line.status is None
        return httpx.Response(200)

    client_to(answering).deliver(SEALED, "/v1/recall", purpose="recall")


def test_problem_answered_by_the_server_is_raised_with_its_fields(
    client_to: Callable[[Answering], HttpClient], log: ByteLog
) -> None:
    problem = {"type": "urn:ownfeed:problem:unknown-release", "title": "Unknown release", "status": 404, "detail": "r1"}
    headers = {"content-type": "application/problem+json; charset=utf-8"}
    client = client_to(lambda request: httpx.Response(404, headers=headers, json=problem))
    with pytest.raises(BackendRefused, match="Unknown release: r1") as refused:
        client.deliver(SEALED, "/v1/recall", purpose="recall")
    assert refused.value.problem.type == "urn:ownfeed:problem:unknown-release"
    assert log.entries().rows[0].status == 404


@pytest.mark.parametrize(
    ("status", "content_type", "body"),
    [(502, "text/html", b"<h1>Bad gateway</h1>"), (500, "application/problem+json", b"{"), (401, "", b"")],
)
def test_refusal_without_a_problem_body_is_reported_by_status(
    client_to: Callable[[Answering], HttpClient], status: int, content_type: str, body: bytes
) -> None:
    client = client_to(lambda request: httpx.Response(status, headers={"content-type": content_type}, content=body))
    with pytest.raises(BackendRefused, match=f"HTTP {status}"):
        client.get("/v1/releases/current", words="A look.", purpose="sync")


def test_redirect_is_not_followed(client_to: Callable[[Answering], HttpClient]) -> None:
    client = client_to(lambda request: httpx.Response(307, headers={"location": "http://elsewhere.example/"}))
    with pytest.raises(AnswerMalformed, match="status 307"):
        client.deliver(SEALED, "/v1/recall", purpose="recall")


@pytest.mark.parametrize("failure", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), httpx.ReadError("cut")])
def test_request_without_an_answer_raises_unreachable_and_is_logged(
    client_to: Callable[[Answering], HttpClient], log: ByteLog, failure: httpx.HTTPError
) -> None:
    def answering(request: httpx.Request) -> httpx.Response:
        raise failure

    with pytest.raises(BackendUnreachable, match=r"http://backend\.example does not answer"):
        client_to(answering).deliver(SEALED, "/v1/recall", purpose="recall")
    (line,) = log.entries().rows
    assert line.status is None
    assert line.trouble in ("refused", "no answer in time", "cut")


def test_closed_port_raises_unreachable(log: ByteLog, now: datetime) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = HttpClient(f"http://127.0.0.1:{port}", log, lambda: now)
    with pytest.raises(BackendUnreachable):
        client.get("/v1/health", words="A look.", purpose="sync")
    client.close()


@pytest.mark.parametrize(
    ("encoding", "body", "words"),
    [
        (
            "gzip, gzip",
            gzip.compress(gzip.compress(bytes(1_000_000))),
            "encoded as 'gzip, gzip', but gzip was requested",
        ),
        ("deflate", b"", "encoded as 'deflate'"),
        ("br", b"", "encoded as 'br'"),
        ("gzip", b"no gzip", "its gzip data are damaged"),
        ("gzip", gzip.compress(b"whole")[:-4], "its gzip data are cut off"),
        ("gzip", gzip.compress(b"whole") + b"more", "there are bytes after the end of its gzip data"),
    ],
    ids=[
        "gzip in gzip",
        "deflate",
        "br",
        "no gzip",
        "cut off",
        "more behind it",
    ],  # a gzip's bytes tell when it was made
)
def test_unexpected_content_encoding_is_refused_unread(
    client_to: Callable[[Answering], HttpClient], log: ByteLog, encoding: str, body: bytes, words: str
) -> None:
    client = client_to(lambda request: httpx.Response(200, headers={"content-encoding": encoding}, stream=_Raw(body)))
    with pytest.raises(AnswerMalformed, match=words):
        client.get("/v1/releases/current", words="A look.", purpose="sync")
    assert words in str(log.entries().rows[0].trouble)


def test_gzip_bomb_is_never_unpacked_beyond_its_limit(client_to: Callable[[Answering], HttpClient]) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    client = client_to(lambda request: httpx.Response(200, headers={"content-encoding": "gzip"}, stream=_Raw(bomb)))
    tracemalloc.start()
    try:
        with pytest.raises(AnswerMalformed, match="longer than 1000 bytes"):
            client.get("/v1/releases/current", words="A look.", purpose="sync", limit_bytes=1_000)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


EMPTY_BLOCK = b"\x00\x00\x00\xff\xff"
"""Of deflate (RFC 1951, section 3.2.4): stored, of no bytes, and not the last."""


@pytest.mark.parametrize(
    ("begins", "goes_on", "words"),
    [
        (gzip.compress(b"[]"), bytes(65_536), "there are bytes after the end of its gzip data"),
        (gzip.compress(b"")[:10], EMPTY_BLOCK * 10_000, "its compressed form has more than"),
    ],
    ids=["behind its end", "of nothing"],
)
def test_endless_gzip_without_content_is_cut_off(
    client_to: Callable[[Answering], HttpClient], begins: bytes, goes_on: bytes, words: str
) -> None:
    """Regression: all of it was read, and what followed the gzip's end was kept in memory."""
    sent = 0

    class Flood(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            nonlocal sent
            yield begins
            for _ in range(200):
                sent += len(goes_on)
                yield goes_on

    client = client_to(lambda request: httpx.Response(200, headers={"content-encoding": "gzip"}, stream=Flood()))
    with pytest.raises(AnswerMalformed, match=words):
        client.get("/v1/releases/current", words="A look.", purpose="sync", limit_bytes=1_000)
    assert sent <= 2 * 65_536


def test_endless_body_and_gzip_bomb_are_cut_off(client_to: Callable[[Answering], HttpClient], log: ByteLog) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    for response in (
        lambda request: httpx.Response(200, stream=_Raw(bytes(1_001))),
        lambda request: httpx.Response(200, headers={"content-encoding": "gzip"}, stream=_Raw(bomb)),
    ):
        with pytest.raises(AnswerMalformed, match="longer than 1000 bytes"):
            client_to(response).get("/v1/blobs/x", words="A blob.", purpose="sync", limit_bytes=1_000)
    assert "longer than" in str(log.entries().rows[0].trouble)


def test_body_that_is_not_the_claimed_gzip_is_malformed(client_to: Callable[[Answering], HttpClient]) -> None:
    client = client_to(lambda request: httpx.Response(200, headers={"content-encoding": "gzip"}, stream=_Raw(b"plain")))
    with pytest.raises(AnswerMalformed):
        client.get("/v1/health", words="A look.", purpose="sync")


def test_environment_proxies_and_passwords_are_ignored(
    log: ByteLog, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with raw_server([b"HTTP/1.1 204 No Content\r\n\r\n"]) as (port, received):
        client = HttpClient(f"http://127.0.0.1:{port}", log, lambda: now)
        assert client.get("/v1/rounds/current", words="A look.", purpose="progress").status == 204
        client.close()
    assert received[0].startswith(b"GET /v1/rounds/current HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("header", "etag"), [('"r7"', "r7"), ('W/"r7"', "r7"), ("", None), ('"' + "x" * 81 + '"', None), ('"a"b"', None)]
)
def test_etag_is_accepted_only_if_short_and_plain(
    client_to: Callable[[Answering], HttpClient], header: str, etag: str | None
) -> None:
    client = client_to(lambda request: httpx.Response(200, headers={"etag": header}))
    assert etag_of(client.get("/v1/news/front", words="The list.", purpose="sync")) == etag
