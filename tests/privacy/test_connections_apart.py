"""An attacker who runs the backend, or watches its network, groups requests by connection.

A report carries one randomised number about the reader's interests; a place in a round carries a pseudonym that is
valid for one round. Two of them on one connection, or either on a connection that lives for hours, would be linked to
one device.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from device_app.errors import AnswerMalformed
from device_app.privacy.requests import seal_check_in
from device_app.store.byte_log import ByteLog
from device_app.store.database import Database
from device_app.uplink.backend_client import Uplink
from device_app.uplink.http import HttpClient
from protocol.ids import PROTOCOL_VERSION
from protocol.rounds import CheckIn
from tests.doubles.sealing import seal_nothing

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PLACES = ("round-1/keys/" + "a" * 32, "round-1/shares/" + "a" * 32, "round-2/keys/" + "b" * 32)


class Watcher(ThreadingHTTPServer):
    """Answers every request, keeps connections open, and records which connection each request used."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.seen: list[tuple[int, str, str]] = []
        self.connections = itertools.count()

    def by_connection(self) -> list[set[str]]:
        """Return the requests of each connection."""
        carried: dict[int, set[str]] = {}
        for connection, _, path in self.seen:
            carried.setdefault(connection, set()).add(path)
        return list(carried.values())


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Watcher

    def setup(self) -> None:
        super().setup()
        self.number = next(self.server.connections)

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.seen.append((self.number, self.command, self.path))
        if self.path.startswith("/v1/rounds/") and self.command in ("GET", "POST"):
            self.send_response(204)
            self.send_header("Set-Cookie", "device=17")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.send_header("Set-Cookie", "device=17")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PUT = _answer  # noqa: N815 - the names that http.server calls

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


@contextmanager
def watcher() -> Iterator[Watcher]:
    server = Watcher()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def seen(tmp_path: Path) -> Iterator[Watcher]:
    """Run a device for an hour: public requests, two reports, polls for rounds, and places in two rounds."""
    database = Database(tmp_path / "device.sqlite")
    with watcher() as server:
        uplink = Uplink(HttpClient(f"http://127.0.0.1:{server.server_address[1]}", ByteLog(database), lambda: NOW))
        check_in = seal_check_in(CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=()))
        for _ in range(2):
            uplink.client.get("/v1/news/front?limit=600", words="The default list.", purpose="sync")
            with pytest.raises(AnswerMalformed):
                uplink.recall(seal_nothing(release="r1", limit=50))
            assert uplink.open_rounds() == ()
            assert uplink.check_in(check_in) is None
            for path in PLACES:
                uplink.client.deliver(check_in, f"/v1/rounds/{path}", purpose="training", method="PUT")
        uplink.client.close()
        yield server
    database.close()


def kind(path: str) -> str:
    if path.startswith(("/v1/recall", "/v1/news/bodies")):
        return "reports"
    return "rounds" if path.startswith("/v1/rounds/") else "everybody's"


def test_reports_and_rounds_use_separate_connections(seen: Watcher) -> None:
    assert {kind(path) for _, _, path in seen.seen} == {"reports", "rounds", "everybody's"}
    assert [carried for carried in seen.by_connection() if len({kind(path) for path in carried}) > 1] == []


def test_connection_carries_at_most_one_pseudonym_and_no_polls(seen: Watcher) -> None:
    for carried in seen.by_connection():
        pseudonyms = {path.rsplit("/", 1)[1] for path in carried if path.startswith("/v1/rounds/round-")}
        assert len(pseudonyms) <= 1
        assert not pseudonyms or all(path.startswith("/v1/rounds/round-") for path in carried)


def test_round_polls_and_check_ins_use_separate_connections(seen: Watcher) -> None:
    polls = [connection for connection, _, path in seen.seen if path in ("/v1/rounds/current", "/v1/rounds/check-in")]
    assert len(polls) == 4
    assert len(set(polls)) == 4
