"""The server's log, written by several processes at once. Oracle: the written lines, counted."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from backend.server import log as server_log
from backend.server.log import ServerLogFile

LINES, WRITERS, FILES, LIMIT_BYTES = 60, 3, 4, 1_000
"""More than one file holds, and less than all do."""


def line(writer: int, number: int) -> logging.LogRecord:
    return logging.LogRecord("backend", logging.INFO, "", 0, f"writer {writer} line {number:03}", (), None)


def all_lines(path: Path) -> list[str]:
    """Return the lines of all files, oldest first."""
    older = [path.with_name(f"{path.name}.{at}") for at in range(FILES, 0, -1)]
    return [text for each in (*older, path) if each.exists() for text in each.read_text(encoding="utf-8").splitlines()]


def test_alternating_writers_keep_every_line_in_order(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    logs = [ServerLogFile(path, limit_bytes=LIMIT_BYTES, files=FILES) for _ in range(WRITERS)]
    for number in range(LINES):
        for writer, log in enumerate(logs):
            log.handle(line(writer, number))
    for log in logs:
        log.close()
    written = [f"writer {writer} line {number:03}" for number in range(LINES) for writer in range(WRITERS)]
    assert all_lines(path) == written
    assert all(each.stat().st_size <= LIMIT_BYTES for each in tmp_path.glob("server.log*") if each.suffix != ".lock")


def test_concurrent_writers_lose_no_line(tmp_path: Path) -> None:
    path, ready = tmp_path / "server.log", threading.Barrier(WRITERS)

    def write(writer: int) -> None:
        log = ServerLogFile(path, limit_bytes=LIMIT_BYTES, files=FILES)
        ready.wait(60)
        for number in range(LINES):
            log.handle(line(writer, number))
        log.close()

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert sorted(all_lines(path)) == [
        f"writer {writer} line {number:03}" for writer in range(WRITERS) for number in range(LINES)
    ]


def test_single_writer_keeps_the_newest_lines_and_the_set_number_of_files(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    log = ServerLogFile(path, limit_bytes=100, files=2)
    for number in range(50):
        log.handle(line(0, number))
    log.close()
    assert all_lines(path)[-1] == "writer 0 line 049"
    assert sorted(each.name for each in tmp_path.glob("server.log*") if each.suffix != ".lock") == [
        "server.log",
        "server.log.1",
        "server.log.2",
    ]


def test_failed_log_reopening_is_retried_at_the_next_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "server.log"
    one, other = (ServerLogFile(path, limit_bytes=LIMIT_BYTES, files=FILES) for _ in range(2))
    one.handle(line(0, 0))
    other.doRollover()

    def refuse() -> None:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(one, "_open", refuse)
        patch.setattr(one, "handleError", lambda _: None)
        one.handle(line(0, 1))
        one.handle(line(0, 2))
    one.handle(line(0, 3))
    for log in (one, other):
        log.close()
    assert all_lines(path) == ["writer 0 line 000", "writer 0 line 003"]


def test_log_continues_in_the_full_file_while_another_process_has_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_log, "LOCK_SEC", 0)
    path = tmp_path / "server.log"
    log, other = (ServerLogFile(path, limit_bytes=20, files=FILES) for _ in range(2))
    with other._turn:
        for number in range(3):
            log.handle(line(0, number))
    log.handle(line(0, 3))
    for each in (log, other):
        each.close()
    assert all_lines(path) == [f"writer 0 line {number:03}" for number in range(4)]
    assert path.read_text(encoding="utf-8") == "writer 0 line 003\n"


def test_missing_log_folder_raises_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ServerLogFile(tmp_path / "nowhere" / "server.log", limit_bytes=LIMIT_BYTES, files=FILES)
