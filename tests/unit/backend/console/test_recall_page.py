"""The recall page: the frontier as the bench wrote it, and what stands there before it ever ran."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from backend.console.auth import COOKIE, pass_of
from backend.console.recall_pages import apart, drawing, frontier_file, measured
from backend.console.routes import router
from experiments.bench.recall import as_json
from experiments.recall.frontier import Chosen, Frontier, FrontierRow
from experiments.recall.measure import Paired
from tests.doubles.console_services import TOKEN, StandInServices
from tests.doubles.recall_app import running

HOME = "http://127.0.0.1:8400"


def row(mode: str, epsilon: float, gain: float, attack: tuple[float, float] | None = None) -> FrontierRow:
    return FrontierRow(
        mode, epsilon, (20.0, 30.0, 50.0, 70.0 + gain), (Paired(gain, gain - 1, gain + 1),) * 4, 15.0, 9.0, 14.0, attack
    )


FRONTIER = Frontier(
    rows=(
        row("popularity (none)", 0.0, 0.0, (21.9, 45.4)),
        row("exact vector", float("inf"), 5.8, (46.6, 70.4)),
        row("code K=16", 1.0, 0.1),
        row("code K=16", 4.0, 2.1, (24.7, 49.3)),
        row("basis_laplace, naive", 50.0, -1.9),
    ),
    chosen=Chosen(4, {"exact": 0.8}),
    wide=77.2,
    readers=709,
    channels=3.7,
    code_bytes={16: 196_992},
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    frontier_file().parent.mkdir(parents=True)
    return frontier_file()


def page() -> str:
    app = FastAPI(openapi_url=None)
    app.include_router(router(StandInServices()))  # type: ignore[arg-type]
    answer = TestClient(app, base_url=HOME, cookies={COOKIE: pass_of(TOKEN)}).get("/console/recall")
    assert answer.status_code == 200
    return answer.text


def test_before_any_bench_the_page_says_how_to_measure(cache: Path) -> None:
    assert measured() is None
    assert "ownfeed bench recall" in page()


def test_the_frontier_is_shown_as_the_bench_wrote_it(cache: Path) -> None:
    cache.write_text(as_json(FRONTIER), encoding="utf-8")
    text = page()
    for figure in ("+2.1 (+1.1 to +3.1)", "without bound", "45.4", "709", "77.2 %"):
        assert figure in text
    assert text.count("<circle") == 3, "a dot for each epsilon of the modes that have one"


def test_a_file_of_another_format_is_as_good_as_none(cache: Path) -> None:
    cache.write_text(json.dumps({"rows": [{"mode": 1}]}), encoding="utf-8")
    assert measured() is None


def test_more_gain_is_drawn_higher_and_more_epsilon_further_right(cache: Path) -> None:
    cache.write_text(as_json(FRONTIER), encoding="utf-8")
    found: Any = measured()
    picture = drawing(found.rows)
    code = next(line for line in picture.lines if line.name == "code K=16")
    (x1, y1), (x4, y4) = code.points
    assert x4 > x1
    assert y4 < y1
    levels = {level.name: level.y for level in picture.levels}
    assert levels["exact vector"] < y4 < levels["popularity (none)"]


def test_codebooks_are_listed_with_their_price_and_their_truth(tmp_path: Path, cache: Path) -> None:
    with running(tmp_path / "server", news=60, admin_token_file=tmp_path / "token") as server:
        token = (tmp_path / "token").read_text(encoding="utf-8").strip()
        server.client.cookies.set(COOKIE, pass_of(token))
        text = server.client.get("/console/recall").text
        assert "0.7845" in text  # RECALL, section 7: e^4 / (e^4 + 15)
        assert "One of 64" in server.client.get("/console/privacy").text


@given(st.lists(st.floats(0, 300), min_size=1, max_size=12))
def test_names_stand_in_their_lines_order_and_never_over_one_another(heights: list[float]) -> None:
    placed = apart(heights, 14.0)
    order = sorted(range(len(heights)), key=lambda at: heights[at])
    gaps = [placed[after] - placed[before] for before, after in pairwise(order)]
    assert all(gap >= 14.0 - 0.15 for gap in gaps)
    assert abs(sum(placed) - sum(heights)) <= 0.1 * len(heights), "moved no further than room needs"


def test_names_that_have_room_stay_where_they_are() -> None:
    assert apart([90.0, 10.0, 50.0], 14.0) == [90.0, 10.0, 50.0]
    assert apart([50.0, 50.0, 100.0], 14.0) == [43.0, 57.0, 100.0]
