"""Work in forks of one process. Oracle: a script that says who and what it is, and what the last document left."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from backend.server.forked_scripts import LATE, ForkedScript

SCRIPT = """
import json, os, signal, sys, time
sys.path.append({root!r})
from backend.server.forked_scripts import serve_forks
seen, started = [], os.getpid()

def work(arguments):
    document = sys.stdin.read()
    if document == "end":
        os.kill(os.getpid(), signal.SIGSEGV)
    if document == "sleep":
        time.sleep(60)
    if document == "raise":
        raise ValueError
    seen.append(document)
    print(json.dumps([document, arguments, seen, started, os.getpid(), sys.argv[3:]]))

serve_forks(int(sys.argv[2]), work)
"""


@pytest.fixture
def forked() -> Iterator[ForkedScript]:
    forked = ForkedScript()
    yield forked
    forked.close()


@pytest.fixture
def script(tmp_path: Path) -> list[str]:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(root=str(Path(__file__).parents[4])), encoding="utf-8")
    return [str(path), "always"]


def run(
    forked: ForkedScript, script: list[str], document: str, *arguments: str, limit_sec: float = 60
) -> tuple[int, Any]:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        given.write(document.encode())
        given.seek(0)
        code = forked.run(script, arguments, given, made, limit_sec)
        made.seek(0)
        said = made.read()
    return code, json.loads(said) if said else None


def test_each_document_has_its_own_fork_of_one_process(forked: ForkedScript, script: list[str]) -> None:
    one, other = run(forked, script, "a", "x"), run(forked, script, "b", "y", "z" * 100_000)
    (code, (document, arguments, seen, started, mine, always)) = other
    assert (code, document, arguments, seen, always) == (0, "b", ["y", "z" * 100_000], ["b"], ["always"])
    assert one[1][3] == started
    assert len({one[1][4], mine, started}) == 3


def test_fork_that_fails_ends_only_itself(forked: ForkedScript, script: list[str]) -> None:
    started = run(forked, script, "a")[1][3]
    assert run(forked, script, "end") == (-signal.SIGSEGV, None)
    assert run(forked, script, "raise") == (1, None)
    assert run(forked, script, "sleep", limit_sec=0.2) == (LATE, None)
    assert run(forked, script, "b")[1][3] == started


def test_process_that_was_ended_is_started_again(forked: ForkedScript, script: list[str]) -> None:
    started = run(forked, script, "a")[1][3]
    os.kill(started, signal.SIGKILL)
    assert run(forked, script, "b")[1][3] != started


def test_script_that_ends_before_it_answers_is_an_error(forked: ForkedScript, tmp_path: Path) -> None:
    path = tmp_path / "nothing.py"
    path.write_text("pass", encoding="utf-8")
    with pytest.raises(ChildProcessError, match="ended before it answered"):
        run(forked, [str(path)], "a")


def test_documents_of_several_threads_keep_their_answers(forked: ForkedScript, script: list[str]) -> None:
    documents = [f"document {number}" for number in range(20)]
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda document: run(forked, script, document, document), documents))
    assert [(code, said[:2]) for code, said in answers] == [(0, [each, [each]]) for each in documents]
