"""The operator's client reports the backend's refusals and missing answers in one line."""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from typer.testing import CliRunner

import backend.operations.admin_client
import ownfeed
from backend.operations.admin_client import Operator, OperatorRefused, address_of
from backend.server.address import ServerAddress
from backend.server.http_server import http_server
from backend.settings import BackendSettings, load_settings, url_of
from backend.terminal.rounds import waits_words
from protocol.rounds import QueuedRound, RoundStatus
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW
from tests.doubles.own_loop import run_on_its_own_loop
from tests.doubles.round_rig import TOKEN, BackendRig
from tests.doubles.small_world import free_port, serve_app


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> BackendRig:
    return BackendRig.make(tmp_path_factory.mktemp("rig"), StillClock(NOW))


@pytest.fixture(scope="module")
def url(rig: BackendRig) -> Iterator[str]:
    with serve_app(rig.app) as address:
        yield address


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "admin.token"
    file.write_text(TOKEN + "\n", encoding="utf-8")
    return file


@pytest.fixture
def operator(url: str, token_file: Path) -> Operator:
    return Operator(url, token_file)


def refusal(refused: pytest.ExceptionInfo[OperatorRefused]) -> str:
    assert "\n" not in refused.value.detail
    assert TOKEN not in refused.value.detail
    return refused.value.detail


def test_round_is_opened_and_followed_to_its_end(
    rig: BackendRig, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend.operations.admin_client, "POLL_SEC", 0.01)
    opened = operator.open_round("uni_fedrec", cohort=3, cohort_minimum=2, seconds=30)
    assert (opened.state, opened.cohort, opened.cohort_minimum) == ("open", 3, 2)
    followed = operator.follow(opened)
    assert next(followed) == opened
    rig.coordinator.cancel(opened.round)
    rest: list[RoundStatus] = list(followed)
    assert [status.state for status in rest] == ["failed"]
    assert rest[-1].reason == "cancelled by the operator"


def test_queued_round_reports_its_place(rig: BackendRig, operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    first = operator.open_round("uni_fedrec", cohort=3, cohort_minimum=2, seconds=30)
    reported: list[QueuedRound] = []

    def ends(_: float) -> None:
        assert [each.place for each in operator.queue()] == [1]
        rig.coordinator.cancel(first.round)
        rig.coordinator.step()

    monkeypatch.setattr("backend.operations.admin_client.time.sleep", ends)
    second = operator.open_round("uni_fedrec", cohort=3, cohort_minimum=2, seconds=30, waits=reported.append)
    assert (second.round != first.round, second.state) == (True, "open")
    assert [(each.place, each.waits_for) for each in reported] == [(1, first.round)]
    assert waits_words(reported[0]).startswith(f"uni_fedrec waits for {first.round}, which changes the same: number 1 ")
    assert operator.queue() == []
    rig.coordinator.cancel(second.round)


@pytest.mark.parametrize("way", ["too long", "interrupted", "taken out"])
def test_operator_who_stops_waiting_removes_the_round_from_the_queue(
    rig: BackendRig, operator: Operator, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    first = operator.open_round("uni_fedrec", cohort=3, cohort_minimum=2, seconds=30)
    waited: list[int] = []

    def asleep(_: float) -> None:
        waited.append(operator.queue()[0].number)
        if way == "interrupted":
            raise KeyboardInterrupt
        if way == "taken out":
            operator.take_out(waited[0])

    monkeypatch.setattr("backend.operations.admin_client.time.sleep", asleep)
    turn_sec = 0.05 if way == "too long" else 600.0
    with pytest.raises(KeyboardInterrupt if way == "interrupted" else OperatorRefused) as left:
        operator.open_round("uni_fedrec", cohort=3, cohort_minimum=2, seconds=30, turn_sec=turn_sec)
    words = {"too long": "still number 1", "interrupted": "", "taken out": "cancelled by the operator"}[way]
    assert words in str(left.value)
    assert operator.queue() == []
    rig.coordinator.cancel(first.round)
    rig.coordinator.step()
    assert rig.coordinator.current() is None, "it never opens"
    with pytest.raises(OperatorRefused, match="is no longer waiting"):
        operator.take_out(waited[0] if waited else rig.coordinator.queue.never_opened()[0].number)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"system": "no_such"}, "uni_fedrec"),
        ({"cohort_minimum": 9}, "cohort_minimum"),
        ({"cohort": 0}, "cohort"),
        ({"seconds": -1}, "seconds"),
    ],
)
def test_invalid_request_gets_an_error_of_one_line(operator: Operator, changed: dict[str, object], words: str) -> None:
    asked = {"system": "uni_fedrec", "cohort": 3, "cohort_minimum": 2, "seconds": 30, **changed}
    with pytest.raises(OperatorRefused) as refused:
        operator.open_round(asked.pop("system"), **asked)  # type: ignore[arg-type]
    assert words in refusal(refused)


def test_wrong_token_is_reported_in_one_line(url: str, tmp_path: Path) -> None:
    (tmp_path / "admin.token").write_text("guess", encoding="utf-8")
    with pytest.raises(OperatorRefused, match="token") as refused:
        Operator(url, tmp_path / "admin.token").open_round("uni_fedrec", cohort=1, cohort_minimum=1, seconds=9)
    assert "guess" not in refusal(refused)


def test_missing_token_file_is_named_in_the_error_with_advice(url: str, tmp_path: Path) -> None:
    with pytest.raises(OperatorRefused, match="is this the backend's folder") as refused:
        Operator(url, tmp_path / "nowhere" / "admin.token")
    assert str(tmp_path) in refusal(refused)


def test_unreachable_backend_is_named_in_the_error_by_its_address(token_file: Path) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(OperatorRefused, match="does not answer") as refused:
        Operator(address, token_file).open_round("uni_fedrec", cohort=1, cohort_minimum=1, seconds=9)
    assert address in refusal(refused)


def test_answer_without_a_problem_body_is_reported_by_status(token_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpx, "request", lambda *_, **__: httpx.Response(502, text="<html>Bad gateway</html>"))
    with pytest.raises(OperatorRefused, match="answered 502 to POST /v1/admin/rounds") as refused:
        Operator("http://somewhere", token_file).open_round("uni_fedrec", cohort=1, cohort_minimum=1, seconds=9)
    refusal(refused)


def test_round_that_never_ends_times_out(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = operator.open_round("uni_fedrec", cohort=3, cohort_minimum=2, seconds=30)
    past = opened.model_copy(update={"closes_at": opened.opened_at - timedelta(seconds=100)})
    started = time.monotonic()
    with pytest.raises(OperatorRefused, match="past its deadline and still open"):
        list(operator.follow(past))
    assert time.monotonic() - started < 5


def test_running_server_is_found_by_its_folder(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path, port=0)
    configured = load_settings(data_dir=tmp_path, port=8499)
    server = http_server(FastAPI(), settings)

    async def started() -> str:
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup()
        said = address_of(configured)
        await server.shutdown()
        return said

    said = run_on_its_own_loop(started)
    assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d+", said)
    assert said != address_of(load_settings(data_dir=tmp_path / "another", port=8499)) == "http://127.0.0.1:8499"
    server.address.forget()
    assert address_of(configured) == "http://127.0.0.1:8499"
    assert list(settings.servers_dir.iterdir()) == []


def test_command_contacts_the_server_of_its_folder(url: str, tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path)
    settings.admin_token_file.write_text(TOKEN + "\n", encoding="utf-8")
    server = ServerAddress(settings.servers_dir)
    server.say(url)
    command = ["rounds", "list", "--json", "--data-dir", str(tmp_path)]
    found = CliRunner().invoke(ownfeed.app, command)
    server.forget()
    assert found.exit_code == 0, found.output
    assert "rounds" in json.loads(found.stdout)
    assert CliRunner().invoke(ownfeed.app, command, env={"OWNFEED_BACKEND_PORT": str(free_port())}).exit_code != 0


Servers = tuple[BackendSettings, ServerAddress, ServerAddress]


@pytest.fixture
def servers(tmp_path: Path) -> Servers:
    """The settings of a folder, and two servers on it, the second one started last."""
    settings = load_settings(data_dir=tmp_path)
    first, last = ServerAddress(settings.servers_dir), ServerAddress(settings.servers_dir)
    first.say("http://127.0.0.1:1111")
    last.say("http://127.0.0.1:2222")
    for written_ns, file in enumerate(sorted(settings.servers_dir.iterdir(), key=Path.read_text)):
        os.utime(file, ns=(0, written_ns))
    return settings, first, last


def test_command_contacts_the_newest_of_several_servers_of_its_folder(servers: Servers) -> None:
    settings, first, last = servers
    assert address_of(settings) == "http://127.0.0.1:2222"
    last.forget()
    assert address_of(settings) == "http://127.0.0.1:1111"
    first.forget()
    assert address_of(settings) == "http://127.0.0.1:8400"
    assert list(settings.servers_dir.iterdir()) == []


def test_server_counts_as_running_only_while_it_holds_its_own_lock(servers: Servers) -> None:
    """Regression: the first server's lock vouched for the file of the second."""
    settings, first, last = servers
    assert last._locked >= 0
    os.close(last._locked)  # as the system does when a process is killed
    assert address_of(settings) == "http://127.0.0.1:1111"
    assert [file.read_text().split()[0] for file in settings.servers_dir.iterdir()] == ["http://127.0.0.1:1111"]
    first.forget()


def test_starting_server_removes_files_of_killed_ones(servers: Servers) -> None:
    settings, first, last = servers
    os.close(first._locked)
    again = ServerAddress(settings.servers_dir)
    again.say("http://127.0.0.1:3333")
    left = {file.read_text().split()[0] for file in settings.servers_dir.iterdir()}
    assert left == {"http://127.0.0.1:2222", "http://127.0.0.1:3333"}
    again.forget()
    last.forget()


def test_concurrent_command_is_not_mistaken_for_the_server(servers: Servers) -> None:
    """Regression: of two commands beside a killed server, the second was told that the lock was taken."""
    settings, first, last = servers
    os.close(last._locked)
    (killed,) = (file for file in settings.servers_dir.iterdir() if "2222" in file.read_text())
    with killed.open() as other_command:
        fcntl.flock(other_command, fcntl.LOCK_SH)
        assert address_of(settings) == "http://127.0.0.1:1111"
    first.forget()


def test_another_machines_server_is_ignored_and_its_file_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two machines may share a folder, and 127.0.0.1 is a different one on each."""
    settings = load_settings(data_dir=tmp_path)
    server = ServerAddress(settings.servers_dir)
    with monkeypatch.context() as there:
        there.setattr("socket.gethostname", lambda: "another")
        server.say("http://127.0.0.1:2222")
        assert address_of(settings) == "http://127.0.0.1:2222"
    assert address_of(settings) == "http://127.0.0.1:8400"
    assert len(list(settings.servers_dir.iterdir())) == 1
    server.forget()


@pytest.mark.parametrize("content", ["http://127.0.0.1:2222\n{host}\n", "no address\n{host}\n", "", "\xff"])
def test_file_not_written_by_a_running_server_is_ignored(tmp_path: Path, content: str) -> None:
    settings = load_settings(data_dir=tmp_path)
    settings.servers_dir.mkdir()
    (settings.servers_dir / "one").write_bytes(content.format(host=socket.gethostname()).encode("latin-1"))
    (settings.servers_dir / "folder").mkdir()
    assert address_of(settings) == "http://127.0.0.1:8400"


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://127.0.0.1:80"), ("::", "http://[::1]:80"), ("::1", "http://[::1]:80"), ("h", "http://h:80")],
)
def test_address_is_reachable_from_this_machine(host: str, url: str) -> None:
    assert url_of(host, 80) == url
