"""The application as a whole: what a start imports, creates and leaves; latency figures."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from backend.composition import load_or_create_token
from backend.errors import BackendSettingsRefused
from backend.server.latency import LatencyLog
from tests.doubles.recall_app import running_server
from tests.doubles.recall_world import ENCODER, clustered_vectors, fill, items, publish, report, settings_in

START = """
import json, sys
from starlette.testclient import TestClient
from backend.app import create_app
from backend.settings import BackendSettings
with TestClient(create_app(BackendSettings(data_dir=sys.argv[1]))) as client:
    answer = client.post("/v1/recall", json=json.loads(sys.argv[2]))
    assert answer.status_code == 200, answer.text
heavy = ("torch", "transformers", "onnx", "onnxruntime", "sklearn", "models", "exporters")
print(json.dumps([name for name in heavy if name in sys.modules]))
"""


def test_serving_imports_neither_torch_nor_transformers_nor_onnx(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    fill(settings, 50)
    publish(settings)
    request = json.dumps({"release": 1, "limit": 10, "report": report()})
    done = subprocess.run(
        [sys.executable, "-c", START, str(tmp_path), request], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_articles_added_while_serving_appear_without_a_restart(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        pool = server.services.pool
        pool.add(items(5, first=900), source="test")
        pool.store_vectors(ENCODER, [f"n{n}" for n in range(900, 905)], clustered_vectors(5, seed=9))
        deadline = time.monotonic() + 20
        while server.client.get("/v1/health").json()["news"] < 305 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert server.client.get("/v1/health").json()["news"] == 305


def test_first_start_creates_a_private_token(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "admin.token"
    token = load_or_create_token(path)
    assert len(token) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_or_create_token(path) == token


LONG = b"x" * 40


@pytest.mark.parametrize(
    "damage",
    [b"", b"\n", b"a", b"x" * 31 + b"\n", LONG + b"\xff\xfe\x00", LONG + b"\nlines", LONG + b"\x00b", LONG + b" words"],
)
def test_damaged_token_is_named_in_the_error_and_not_replaced(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "admin.token"
    path.write_bytes(damage)
    with pytest.raises(BackendSettingsRefused, match=r"admin\.token is damaged, or is too short: .* Remove the file"):
        load_or_create_token(path)
    assert path.read_bytes() == damage


def test_latency_percentiles_match_numpys_over_the_window() -> None:
    log = LatencyLog(window=100)
    for value in range(150):
        log.record("recall", {"search": float(value)} if value % 2 else {}, 2.0 * value)
    figures = log.summary()["recall"]
    assert (figures.seen, figures.window) == (150, 100)
    totals = [2.0 * value for value in range(50, 150)]
    assert figures.stages["total"].p95_ms == pytest.approx(np.percentile(totals, 95), abs=1e-3)
    odd = [float(value) for value in range(50, 150) if value % 2]
    assert figures.stages["search"].p50_ms == pytest.approx(np.percentile(odd, 50), abs=1e-3)
    assert log.last("recall", 2) == [{"total": 296.0}, {"search": 149.0, "total": 298.0}]
    assert log.last("unknown", 2) == []
