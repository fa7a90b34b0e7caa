"""The command as a user sees it: exit codes, one-line errors, JSON that parses."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ownfeed
from backend.demo import RunningDemo
from backend.news.newspaper import GeneratedNewspaper
from backend.server.home_network import OwnCertificate
from backend.settings import BackendSettings
from tests.doubles.small_world import free_port

ROOT = Path(__file__).parents[2]
RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>Paper</title>
<item><title>Bridge reopens after a year of repairs</title><link>https://example.org/a</link></item>
<item><title></title><link>https://example.org/b</link></item></channel></rss>"""
MIND = (
    "N1\tsports\trowing\tRowers win in the rain\tThey did.\thttps://example.org/1\t[]\t[]\nN2\tsports\trowing\n"
    "N3\tnews\tlocal\t" + "x" * 10_000 + "\t\t\t[]\t[]\nN4\tnews\tlocal\t👷 مدينة جديدة\t\t\t[]\t[]\n"
)


RunOutcome = tuple[int, str, str]
"""Exit code, standard output, standard error."""
Run = Callable[..., RunOutcome]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run `ownfeed` in an empty folder, in this process: importing all of it takes a second or more each time."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")

    def call(*words: str, **environment: str) -> RunOutcome:
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["ownfeed", *words])
            for name, value in environment.items():
                patched.setenv(name, value)
            try:
                ownfeed.main()
                code = 0
            except SystemExit as ended:
                code = int(ended.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    yield call
    signal.signal(signal.SIGTERM, before)


def start_process(folder: Path, *words: str) -> subprocess.Popen[str]:
    """`ownfeed` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "ownfeed", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "300", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def failed_in_one_line(result: RunOutcome) -> str:
    code, out, err = result
    assert (code, out) == (1, ""), result
    lines = [line for line in err.splitlines() if not line.endswith(" ...")]
    assert len(lines) == 1, err
    assert lines[0].startswith("ownfeed: ")
    assert "Traceback" not in err
    return lines[0]


@pytest.mark.parametrize(
    "words",
    [
        ("fleet", "--devices", "0"),
        ("fleet", "--devices", "many"),
        ("fleet", "--replay", "no-such-folder"),
        ("round", "--cohort", "0"),
        ("bench", "everything"),
        ("ingest",),
        ("ingest", "mind"),
        ("serve", "--port", "70000"),
        ("nonsense",),
        ("demo", "--articles", "3"),
    ],
)
def test_wrong_usage_exits_with_2_and_shows_usage(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    code, out, err = run(*words)
    assert code == 2
    assert re.search(r"Usage: (\S.*)?ownfeed", out + err)
    assert "Traceback" not in err


def test_ingest_prints_json_with_rejections_and_can_be_repeated(run: Run, tmp_path: Path) -> None:
    (tmp_path / "news.tsv").write_text(MIND, encoding="utf-8")
    reports = []
    for _ in range(2):
        code, out, err = run("ingest", "mind", "news.tsv", "--data-dir", "data", "--json")
        assert (code, err) == (0, "")
        reports.append(json.loads(out)["report"])
    first, again = reports
    assert (first["added"], again["added"], again["unchanged"]) == (2, 0, 2)
    assert [(one["line"], one["field"]) for one in first["rejected"]] == [(2, "row"), (3, "title")]

    (tmp_path / "feed.xml").write_text(RSS, encoding="utf-8")
    code, out, err = run("ingest", "rss", "feed.xml", "--data-dir", "data", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["report"]["added"] == 2, "an entry without a title as well"

    line = {"id": "j1", "title": "From a line", "section": "s", "topic": "t", "published_at": "2026-11-20T08:00:00Z"}
    (tmp_path / "news.jsonl").write_text(json.dumps(line) + "\nno json\n", encoding="utf-8")
    code, out, _ = run("ingest", "jsonl", "news.jsonl", "--data-dir", "data")
    assert code == 0
    assert "jsonl news.jsonl" in out
    assert "line 2" in out, "a person is told which line"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("page.html", b"<!DOCTYPE html><html><body>Hello</body></html>", "is a web page"),
        ("empty.xml", b"", "is empty"),
        ("large.xml", b" " * (50 * 1024 * 1024), "limit"),
        ("missing.xml", None, "missing.xml"),
    ],
)
def test_invalid_feed_is_reported_in_one_line_and_leaves_the_pool_unchanged(
    run: Run, tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert words in failed_in_one_line(run("ingest", "rss", name, "--data-dir", "data"))


def test_invalid_setting_is_reported_in_one_line_naming_it(run: Run, tmp_path: Path) -> None:
    words = failed_in_one_line(run("serve", "--data-dir", "data", OWNFEED_BACKEND_RECALL_WORKERS="0"))
    assert "recall_workers" in words
    words = failed_in_one_line(run("device", "--profile", "../anna", "--data-dir", "data"))
    assert "profile" in words
    assert not (tmp_path / "data").exists(), "nothing is written"


def test_serving_an_empty_pool_names_the_command_to_run(run: Run, tmp_path: Path) -> None:
    assert "run `ownfeed ingest newsroom`" in failed_in_one_line(run("serve", "--data-dir", "data"))


def test_taken_port_is_reported_in_one_line(run: Run, tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        words = failed_in_one_line(run("device", "--data-dir", "data", "--port", str(port)))
        assert f"127.0.0.1:{port}" in words
        assert "--port" in words
        taken = ("--backend-port", str(port), "--data-dir", "demo")
        assert f"Port {port} is taken" in failed_in_one_line(run("demo", *taken))
    assert [path.name for path in (tmp_path / "demo").iterdir()] == ["demo.lock"]


def test_round_and_fleet_report_a_missing_backend(run: Run, tmp_path: Path) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    words = failed_in_one_line(run("round", "--backend", nobody, "--data-dir", "data"))
    assert "No admin token" in words
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "admin.token").write_text("t", encoding="utf-8")
    words = failed_in_one_line(run("round", "--backend", nobody, "--data-dir", "data"))
    assert nobody in words
    words = failed_in_one_line(run("fleet", "--devices", "2", "--backend", nobody, "--data-dir", "fleet"))
    assert nobody in words


def test_replay_of_an_invalid_mind_folder_names_the_missing_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "not-mind").mkdir()
    words = failed_in_one_line(run("fleet", "--replay", "not-mind", "--data-dir", "fleet"))
    assert "behaviors.tsv" in words


def test_device_serves_its_pages_and_ends_on_a_signal(tmp_path: Path) -> None:
    port = free_port()
    process = start_process(
        tmp_path, "device", "--data-dir", "data", "--port", str(port), "--backend", "http://127.0.0.1:1"
    )
    try:
        until = time.monotonic() + 60
        while True:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert f"http://127.0.0.1:{port}/" in err
    assert "Traceback" not in out + err


def test_bench_without_its_data_is_skipped_and_named(run: Run, tmp_path: Path) -> None:
    code, out, err = run("bench", "recall", "--data", "nowhere", "--json")
    assert (code, json.loads(out)) == (0, {})
    assert "skipped: research data: nowhere/mind-subset/train/news.tsv does not exist" in err


def test_unopenable_database_is_reported_in_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "ownfeed.sqlite").write_bytes(b"no database " * 100)
    (tmp_path / "feed.xml").write_text(RSS, encoding="utf-8")
    assert "ownfeed.sqlite" in failed_in_one_line(run("ingest", "rss", "feed.xml", "--data-dir", "data"))


def test_failed_process_prints_one_line_and_exits_with_1(tmp_path: Path) -> None:
    process = start_process(tmp_path, "ingest", "rss", "missing.xml", "--data-dir", "data")
    out, err = process.communicate(timeout=120)
    failed_in_one_line((process.returncode, out, err))


def test_unexpected_failure_keeps_its_traceback() -> None:
    assert ownfeed.expected(OSError("disk full"))
    assert not ownfeed.expected(KeyError("a bug"))


def test_stopped_demo_names_its_folder_and_leaves_it_for_the_next(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []

    def interrupted(processes: object) -> None:
        stopped.append("watched")
        raise KeyboardInterrupt

    settings = BackendSettings(data_dir=tmp_path / "news")
    newspaper = GeneratedNewspaper.of(settings, articles=500, seed=7)
    demo = RunningDemo("http://feed", "http://backend/reader/", "http://console", newspaper)
    monkeypatch.setattr("backend.demo.start_demo", lambda *_: demo)
    monkeypatch.setattr("backend.demo.print_progress", lambda *_: None)
    monkeypatch.setattr("backend.server.local_processes.watch", interrupted)
    monkeypatch.setattr(
        "backend.server.local_processes.LocalProcesses.stop", lambda processes: stopped.append("stopped")
    )
    ports = ("--backend-port", str(free_port()), "--device-port", str(free_port()))
    for _ in range(2):  # the second finds the folder free
        code, _, said = run("demo", "--data-dir", str(tmp_path / "demo"), *ports)
        assert code == 0
        reported = (
            r"Your feed +http://feed",
            r"In a browser +http://backend/reader/",
            r"Console +http://console",
            "Logs +",
        )
        assert re.search(r"\n +".join(reported), said)
        assert said.endswith("Stopping ...\n")
    assert stopped == ["watched", "stopped"] * 2


def test_home_network_fingerprint_is_printed_verbatim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: rich took the ":CD:" in one for a picture of a disc."""
    made = OwnCertificate(tmp_path / "lan.crt", tmp_path / "lan.key", "8C:CD:B7:ON:OFF")
    monkeypatch.setattr("backend.server.home_network.own_certificate", lambda folder, address: made)
    ownfeed.print_lan_access("192.168.1.5:8443", tmp_path)
    captured = capsys.readouterr()
    reported = captured.out + captured.err
    assert "8C:CD:B7:ON:OFF" in reported
    assert "https://192.168.1.5:8443/" in reported
