"""Imported libraries send no telemetry.

They open no socket, write no id and keep no store of events. The uplink's log can only hold what goes through the
uplink. Processes run here as a reader's do: in their own home, and without the variables by which a library recognises
a test or a build machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNS_A_GRAPH = """
import json, os
from device_app.ranking.session import shared_session
from tests.doubles.graphs import cosine_score_graph
session = shared_session(cosine_score_graph(8), threads=1)
paths = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
held = [os.readlink(path) for path in paths if os.path.lexists(path)]
print(json.dumps([name for name in held if name.startswith("socket:")]))
"""
IMPORTS = "import os, importlib; importlib.import_module({package!r}); print(os.environ['ORT_DISABLE_TELEMETRY'])"


def run(code: str, home: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are listed on Linux only")
def test_running_a_graph_opens_no_socket_and_writes_no_home_files(tmp_path: Path) -> None:
    """Regression: ~/.cache/Microsoft/DeveloperTools/.onnxruntime with an id of the machine, and a list of what ran."""
    assert json.loads(run(RUNS_A_GRAPH, tmp_path)) == []
    assert list(tmp_path.rglob("*")) == []


def test_packages_disable_onnx_runtime_telemetry_before_importing_it(tmp_path: Path) -> None:
    tracked = subprocess.run(
        ["git", "grep", "-lE", r"^\s*(import|from) onnxruntime", "--", "*.py", ":!tests"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    packages = {file.partition("/")[0] for file in tracked.stdout.split()}
    assert {"device_app", "backend", "exporters"} <= packages
    for package in packages:
        assert re.fullmatch(r"[a-z_]+", package), "a package, whose __init__ runs before all else in it"
        assert run(IMPORTS.format(package=package), tmp_path).strip() == "1"
