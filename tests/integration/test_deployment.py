"""The files under docs/deploy are valid as written.

Oracles: the command line's own parser, systemd's and Prometheus's own checks where they are installed, and the answer
of a running backend at /metrics.
"""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ownfeed import app
from tests.doubles.recall_app import running_server

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((DEPLOY / "ownfeed-alerts.yml").read_text())["groups"] for rule in group["rules"]
]


def unit(path: Path) -> configparser.ConfigParser:
    parsed = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parsed.optionxform = str  # type: ignore[assignment, method-assign]
    parsed.read_string(path.read_text())
    return parsed


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_unit_runs_a_command_of_this_version(path: Path) -> None:
    program, *words = shlex.split(unit(path)["Service"]["ExecStart"])
    assert program == "/opt/ownfeed/bin/ownfeed"
    command = typer.main.get_command(app)
    context = command.make_context("ownfeed", words, resilient_parsing=True)
    left = words
    while hasattr(command, "resolve_command"):
        name, found, left = command.resolve_command(context, left)
        assert found is not None, words
        context = found.make_context(
            name, list(left), parent=context, resilient_parsing=hasattr(found, "resolve_command")
        )
        command = found
    assert context.params["data_dir"] == Path("/var/lib/ownfeed/backend")


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not on PATH")
    for path in (*UNITS, *DEPLOY.glob("*.timer")):
        (tmp_path / path.name).write_text(path.read_text().replace("/opt/ownfeed/bin/ownfeed", "/bin/true"))
    units = [str(path) for path in sorted(tmp_path.iterdir())]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_prometheus_accepts_the_rules() -> None:
    if shutil.which("promtool") is None:
        pytest.skip("Prometheus' promtool is not on PATH")
    done = subprocess.run(
        ["promtool", "check", "rules", str(DEPLOY / "ownfeed-alerts.yml")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_alert_rules_use_only_exported_metrics(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", news=20) as backend:
        token = (backend.folder / "metrics.token").read_text().strip()
        backend.client.get("/v1/health")
        backend.client.get("/v1/news/front")
        reported = backend.client.get("/metrics", headers={"authorization": f"Bearer {token}"}).text
        routes = {getattr(route, "path", "") for route in backend.app.routes}
    families = list(text_string_to_metric_families(reported))
    endings = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
    names = {f"{each.name}{end}" for each in families for end in endings.get(each.type, ("",))}
    values = {(label, value) for each in families for sample in each.samples for label, value in sample.labels.items()}
    values |= {("route", path) for path in routes}
    assert len(RULES) == len({rule["alert"] for rule in RULES})
    for rule in RULES:
        asked = set(re.findall(r"\bownfeed_\w+", rule["expr"]))
        assert asked or "up{" in rule["expr"], rule["alert"]
        assert asked <= names, rule["alert"]
        for label, wanted in re.findall(r"\b(line|state|route)=~?\"([^\"]+)\"", rule["expr"]):
            assert {(label, value) for value in wanted.split("|")} <= values, rule["alert"]
        assert rule["annotations"]["summary"].endswith(".")
