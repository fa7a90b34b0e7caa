"""The browser's end of the wire in Node: the device's own modules, bundled as for a browser, asked many things."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
WEB = ROOT / "web"
LIMIT_S = 300


def ask_node(folder: Path, questions: Sequence[tuple[str, Any]]) -> list[Any]:
    """An answer for each (what to do, with what), of one process; `browser_end.ts` has what can be done.

    folder: of one test, which keeps the bundle there from one call to the next.

    Fails, naming what is missing, where Node or the npm packages are.
    """
    node, bundler = shutil.which("node"), WEB / "bundling.mjs"
    if node is None:
        pytest.fail("node is missing: install Node.js 20 or newer; `make test` says so too")
    if not all((WEB / "node_modules" / name).is_dir() for name in ("esbuild", "@noble/curves", "minijinja-js")):
        pytest.fail("the npm packages of web/package-lock.json are missing: run `npm ci` in web/; `make test` does it")
    bundle, asked, answered = folder / "browser_end.mjs", folder / "asked.jsonl", folder / "answered.jsonl"
    if not bundle.exists():  # as for a browser: an import of a Node module ends it here
        _run(node, bundler, HERE / "browser_end.ts", bundle)
    asked.write_text("".join(json.dumps(each) + "\n" for each in questions), encoding="utf-8")
    _run(node, "--no-warnings", HERE / "run_browser_end.mjs", bundle, asked, answered)
    answers = [json.loads(line) for line in answered.read_text(encoding="utf-8").split("\n")[:-1]]
    assert len(answers) == len(questions)
    return answers


def _run(*command: str | Path) -> None:
    ran = subprocess.run(
        [str(each) for each in command],
        env=os.environ | {"PYTHON": sys.executable},  # reads the TOML of a bundle
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3_000:]
