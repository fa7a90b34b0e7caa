"""The latency page's measurement from a report to a page."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest

from backend.measurements import end_to_end
from backend.measurements.end_to_end import LIMIT_SEC, EndToEndLatency, last, start
from protocol.fleet_figures import MeasuredLatency, MeasuredStage
from tests.doubles.console_client import OURS, client_of
from tests.doubles.console_services import StandInServices

FOUND = MeasuredLatency(
    readers=4,
    pages=40,
    stages=(
        MeasuredStage(place="device", name="cluster", p50_ms=1.25, p95_ms=2.5),
        MeasuredStage(place="network", name="network", p50_ms=3.0, p95_ms=4.0),
        MeasuredStage(place="server", name="aggregate", p50_ms=0.5, p95_ms=0.75),
        MeasuredStage(place="whole", name="total", p50_ms=5.0, p95_ms=7.5),
    ),
)
PRINTS = (sys.executable, "-c", f"print({FOUND.model_dump_json()!r})")


def services_in(folder: Path) -> StandInServices:
    services = StandInServices()
    services.settings.data_dir = folder
    return services


def test_button_measures_in_another_process_and_the_page_shows_its_stages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oracle: the figures that the process printed, and the address that it was given."""
    client = client_of(services_in(tmp_path))
    assert "Not measured yet." in client.get("/console/latency").text
    threads = []

    def started(folder: Path, url: str) -> None:
        threads.append((folder, url, start(folder, url, PRINTS)))

    monkeypatch.setattr(end_to_end, "start", started)
    done = client.post("/console/latency/measure", headers=OURS)
    assert done.headers["location"] == "/console/latency?said=measuring#end-to-end"
    ((folder, url, thread),) = threads
    assert (folder, url) == (tmp_path, "http://127.0.0.1:8400")
    assert thread is not None
    thread.join()
    page = unescape(client.get("/console/latency").text)
    for words in ("40 pages of 4 readers", "Group the reading", "Rebuild directions", "Report to page", "7.5 ms"):
        assert words in page, words
    assert client.get("/console/latency/measured").json()["state"] == "done"


def test_page_follows_a_measurement_and_cannot_begin_another(tmp_path: Path) -> None:
    (tmp_path / "end-to-end-latency.json").write_text(
        EndToEndLatency(state="running", at=datetime.now(UTC)).model_dump_json()
    )
    page = client_of(services_in(tmp_path)).get("/console/latency").text
    assert 'data-live="/console/latency/measured" data-state="running"' in page
    assert "disabled>Measure now" in page
    assert start(tmp_path, "http://127.0.0.1:1", PRINTS) is None


def test_failed_measurement_says_why(tmp_path: Path) -> None:
    thread = start(tmp_path, "http://127.0.0.1:1", (sys.executable, "-c", "raise SystemExit('nothing answers')"))
    assert thread is not None
    thread.join()
    page = client_of(services_in(tmp_path)).get("/console/latency").text
    assert "nothing answers" in page
    assert "disabled>Measure now" not in page


def test_measurement_of_a_server_that_was_killed_has_failed(tmp_path: Path) -> None:
    begun = datetime(2026, 1, 2, tzinfo=UTC)
    (tmp_path / "end-to-end-latency.json").write_text(EndToEndLatency(state="running", at=begun).model_dump_json())
    soon, late = last(tmp_path, begun + timedelta(seconds=LIMIT_SEC)), last(tmp_path, begun + timedelta(hours=1))
    assert soon is not None
    assert late is not None
    assert (soon.state, late.state) == ("running", "failed")


def test_measuring_needs_a_signed_in_operator(tmp_path: Path) -> None:
    assert (
        client_of(services_in(tmp_path), signed_in=False).post("/console/latency/measure", headers=OURS).status_code
        == 401
    )
    assert not list(tmp_path.iterdir())
