"""The quality page: the gate's verdicts, and what the bench measured."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from backend.console.controller import cookie_name, pass_of
from backend.console.quality_pages import of_scores, of_tastes
from backend.console.routes import router
from backend.measurements import curves
from backend.measurements.curves import Curve, MeasuredCurves, Point
from protocol.fleet_figures import write_fleet_figures
from tests.doubles.console_client import client_of
from tests.doubles.console_rounds import StandInCoordinator
from tests.doubles.console_services import TOKEN, StandInServices, fresh_services
from tests.doubles.fleet_figures import FLEET_FIGURES

CURVE = Curve(
    name="AUC of the small ranker",
    points=(
        Point(rounds=0, release="r4", value=0.61, gain=0.0, low=0.0, high=0.0),
        Point(rounds=50, release="r54", value=0.68, gain=0.07, low=0.06, high=0.08),
    ),
)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "quality.json"
    monkeypatch.setattr(curves, "quality_file", lambda: path)
    return path


def shown(services: StandInServices) -> str:
    app = FastAPI(openapi_url=None)
    app.include_router(router(services))  # type: ignore[arg-type]
    client = TestClient(app, base_url="http://127.0.0.1:8400", cookies={cookie_name("127.0.0.1:8400"): pass_of(TOKEN)})
    answer = client.get("/console/quality")
    assert answer.status_code == 200
    return answer.text


def test_measured_curves_are_drawn_with_figures(kept: Path) -> None:
    reported = MeasuredCurves(
        curves=(CURVE,), readers=300, devices=100, cohort=60, measured_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    )
    kept.write_text(reported.model_dump_json())
    page = shown(StandInServices())
    assert "+0.0700 (+0.0600 to +0.0800)" in page
    assert "300 simulated readers" in page
    assert page.count("<svg") == 2, "the gate's scores, and this curve"
    assert page.count("<polyline") == 1, "the gate's are each over another release"


@pytest.mark.parametrize("content", [None, "{}", "no JSON"])
def test_page_without_bench_figures_explains_how_to_get_them(kept: Path, content: str | None) -> None:
    if content is not None:
        kept.write_text(content)
    page = shown(fresh_services())
    assert "ownfeed bench quality" in page
    assert "No release has been scored yet" in page
    assert "<svg" not in page


def test_gate_verdicts_are_shown_with_rolled_back_releases(kept: Path) -> None:
    page = shown(StandInServices())
    assert page.index("-0.0121") < page.index("+0.0042"), "newest first"
    assert page.count("taken back") == 1
    assert "0.641 ±0.405" in page, "the noise of a small cohort leaves little of the level"


def test_every_auc_is_shown_next_to_that_of_chance(kept: Path, tmp_path: Path) -> None:
    """Oracle: an AUC is the share of pairs in the right order, of which a coin gets half."""
    services = StandInServices()
    services.settings.fleet_figures = tmp_path / "fleet-figures.json"
    write_fleet_figures(services.settings.fleet_figures, FLEET_FIGURES)
    measured = MeasuredCurves(
        curves=(CURVE,), readers=300, devices=100, cohort=60, measured_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    )
    for content in (None, measured.model_dump_json()):  # the published record, or this machine's own curves
        kept.unlink(missing_ok=True) if content is None else kept.write_text(content)
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", shown(services), re.DOTALL)
        named = [cell for cell in cells if "AUC" in cell]
        assert len(named) >= 1 + 3 + 2, "the gate's column, three releases, and the bench's curve"
        assert all("(chance 0.5)" in cell for cell in named)
        assert not any("chance" in cell for cell in cells if "nDCG" in cell)


def test_gate_has_no_drawing_before_its_first_verdict() -> None:
    assert of_scores([]) is None
    assert of_scores(StandInCoordinator().scores()) is not None


def test_quality_curve_of_a_demo_states_its_simulated_readers_and_noise_level(kept: Path, tmp_path: Path) -> None:
    services = StandInServices()
    assert "simulated readers would open" not in shown(services), "without a fleet nobody's tastes are known"
    services.settings.fleet_figures = tmp_path / "fleet-figures.json"
    assert "No measurement yet" in shown(services)
    assert live_state(services) == "waiting"
    write_fleet_figures(services.settings.fleet_figures, FLEET_FIGURES)
    page = shown(services)
    assert "simulated readers whose interests are known" in page
    assert "The demo knows what its simulated readers like, since it chose their interests." in page
    assert "58 of 60 readers" in page
    mine = page[: page.index("Release quality reported by devices")]
    rows = {row.split("</th>")[0]: row for row in mine.split('<th scope="row">')[1:] if "+0.0" in row}
    assert "within noise" in rows["r2"].split("</tr>")[0]
    assert "within noise" not in rows["r3"].split("</tr>")[0]
    assert page.count("<polyline") == 2, "a line for each measure"
    assert live_state(services) == "6 points"


def test_unknown_quality_measure_is_shown_under_its_own_name() -> None:
    curve = FLEET_FIGURES.curves[0].model_copy(update={"measure": "other"})
    (view,) = of_tastes(FLEET_FIGURES.model_copy(update={"curves": (curve,)}))
    assert (view.drawing.name, view.line) == ("other", "")
    assert of_tastes(None) == []


def live_state(services: StandInServices) -> str:
    return str(client_of(services).get("/console/quality/live").json()["state"])
