"""The browser's end of the wire in Node: the device's own modules, bundled as for a browser.

One Node process answers all tests of a pytest worker, since starting it with its bundle and wasm costs more than most
questions.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
WEB = ROOT / "web"
LIMIT_S = 300.0


def ask_node(questions: Sequence[tuple[str, Any]]) -> list[Any]:
    """Return an answer for each pair of operation and input; `browser_end.ts` lists the operations.

    Fails with the error from Node, or naming what is missing if Node or the npm packages are.
    """
    return _end().ask(questions)


class NodeEnd:
    """A process that answers a line with a line until it is closed; it needs the bundle only to start."""

    def __init__(self, node: str, bundle: Path) -> None:
        self._process = subprocess.Popen(
            [node, "--no-warnings", str(HERE / "run_browser_end.mjs"), str(bundle)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        with self._within_the_limit():
            assert self._received() == "ready"

    def ask(self, questions: Sequence[tuple[str, Any]]) -> list[Any]:
        """Return the answers; fails with the first error, or if the process has ended or takes too long."""
        written = self._process.stdin
        answers: list[Any] = []
        assert written is not None
        with self._within_the_limit():
            for question in questions:
                written.write(json.dumps(question) + "\n")
                written.flush()
                reported = self._received()
                assert "fault" not in reported, reported["fault"]
                answers.append(reported["answer"])
        return answers

    def _received(self) -> Any:
        read = self._process.stdout
        assert read is not None
        line = read.readline()
        assert line, "the browser's end has ended"
        return json.loads(line)

    @contextmanager
    def _within_the_limit(self) -> Iterator[None]:
        overdue = threading.Timer(LIMIT_S, self._process.kill)
        overdue.start()
        try:
            yield
        finally:
            overdue.cancel()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@cache
def _end() -> NodeEnd:
    """Return the worker's process, on a bundle of this checkout."""
    node = shutil.which("node")
    if node is None:
        pytest.fail("node is missing: install Node.js 20 or newer; `make test` says so too")
    if not all((WEB / "node_modules" / name).is_dir() for name in ("esbuild", "@noble/curves", "minijinja-js")):
        pytest.fail("the npm packages of web/package-lock.json are missing: run `npm ci` in web/; `make test` does it")
    with TemporaryDirectory(prefix="ownfeed-node-") as folder:
        bundle = Path(folder) / "browser_end.mjs"
        ran = subprocess.run(  # as for a browser: an import of a Node module ends it here
            [node, str(WEB / "bundling.mjs"), str(HERE / "browser_end.ts"), str(bundle)],
            env=os.environ | {"PYTHON": sys.executable},  # reads the TOML of a bundle
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3_000:]
        end = NodeEnd(node, bundle)
    atexit.register(end.close)
    return end
