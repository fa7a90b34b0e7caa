"""A device and a server of different versions report that to each other, instead of misreading a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from device_app.errors import BackendRefused
from device_app.privacy.requests import seal_check_in
from device_app.store.byte_log import ByteLog
from device_app.store.database import Database
from device_app.uplink.http import HttpClient
from protocol.ids import PROTOCOL_HEADER, PROTOCOL_VERSION
from protocol.rounds import CheckIn
from tests.doubles.in_process import InProcess
from tests.doubles.recall_app import Running, running_server
from tests.doubles.sealing import seal_nothing

CHECK_IN = CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=("recall",))
ASKS: dict[str, Callable[[HttpClient], object]] = {
    "a release": lambda client: client.get("/v1/releases/current", words="A look.", purpose="sync"),
    "recall": lambda client: client.deliver(seal_nothing(release="r1", limit=50), "/v1/recall", purpose="recall"),
    "a place": lambda client: client.deliver(seal_check_in(CHECK_IN), "/v1/rounds/check-in", purpose="training"),
}
each_ask = pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_server(tmp_path_factory.mktemp("versions"), news=40) as one:
        yield one


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ByteLog]:
    database = Database(tmp_path / "device.sqlite")
    yield ByteLog(database)
    database.close()


def client_to(transport: httpx.BaseTransport, log: ByteLog) -> HttpClient:
    return HttpClient("http://backend", log, lambda: datetime(2026, 11, 20, tzinfo=UTC), transport)


@each_ask
def test_device_and_server_of_the_same_version_exchange_messages(
    server: Running, log: ByteLog, ask: Callable[[HttpClient], object]
) -> None:
    inside = InProcess(server.app)
    ask(client_to(inside, log))
    inside.close()
    (line,) = log.entries().rows
    entry = log.entry(line.id)
    assert entry is not None
    assert f"{PROTOCOL_HEADER}: {PROTOCOL_VERSION}\r\n".encode() in entry.head


@each_ask
def test_server_refuses_a_device_of_another_version(
    server: Running, log: ByteLog, ask: Callable[[HttpClient], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("device_app.uplink.http.PROTOCOL_VERSION", PROTOCOL_VERSION + 1)
    answers: list[httpx.Response] = []
    inside = InProcess(server.app)

    class RecordingTransport(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answers.append(inside.handle_request(request))
            answers[0].read()
            return httpx.Response(200, json={})  # not what the device sees: only what the server said counts here

    ask(client_to(RecordingTransport(), log))
    inside.close()
    problem = answers[0].json()
    assert answers[0].status_code == 400
    assert problem["type"] == "urn:ownfeed:problem:protocol-differs"
    assert f"speaks version {PROTOCOL_VERSION};" in problem["detail"]
    assert problem["limit"] == str(PROTOCOL_VERSION)


@each_ask
def test_device_refuses_a_server_of_another_version(
    server: Running, log: ByteLog, ask: Callable[[HttpClient], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "backend.server.request_limits.SPOKEN", (PROTOCOL_HEADER.encode(), b"%d" % (PROTOCOL_VERSION + 1))
    )
    inside = InProcess(server.app)
    with pytest.raises(BackendRefused, match=f"another version.*This device speaks version {PROTOCOL_VERSION};"):
        ask(client_to(inside, log))
    inside.close()


def test_device_of_an_older_protocol_is_refused_at_check_in(server: Running) -> None:
    old = {"protocol": PROTOCOL_VERSION - 1, "release": 1, "tasks": ["recall"]}
    answer = server.client.post("/v1/rounds/check-in", json=old)
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:ownfeed:problem:protocol-differs")


def test_request_without_a_version_gets_the_servers_version(server: Running) -> None:
    answer = server.client.get("/v1/releases/current")
    assert answer.status_code == 200
    assert answer.headers[PROTOCOL_HEADER] == str(PROTOCOL_VERSION)
