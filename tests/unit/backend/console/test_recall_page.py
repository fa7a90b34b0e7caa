"""The recall page: the frontier as the bench wrote it, and what it shows before the first bench."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from fastapi import FastAPI
from markupsafe import escape
from starlette.testclient import TestClient

from backend.console.controller import cookie_name, pass_of
from backend.console.routes import router
from backend.measurements.frontier import NAME_HEIGHT, PUBLISHED_BY_POOL, drawn_pools, frontier_file, keep, measured
from backend.measurements.published import published
from tests.doubles.console_services import TOKEN, StandInServices
from tests.doubles.measured_frontier import FRONTIER
from tests.doubles.recall_app import running_server

ROOT = Path(__file__).parents[4]
HOME = "http://127.0.0.1:8400"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    frontier_file().parent.mkdir(parents=True)
    return frontier_file()


def page() -> str:
    app = FastAPI(openapi_url=None)
    app.include_router(router(StandInServices()))  # type: ignore[arg-type]
    answer = TestClient(app, base_url=HOME, cookies={cookie_name("127.0.0.1:8400"): pass_of(TOKEN)}).get(
        "/console/recall"
    )
    assert answer.status_code == 200
    return answer.text


def test_page_before_any_bench_shows_published_results_and_the_command(cache: Path) -> None:
    assert measured() is None
    text = page()
    assert "<code>ownfeed bench recall</code>; it takes" in text
    record = json.loads((ROOT / "experiments/results/bench-recall.json").read_text(encoding="utf-8"))
    rows = [row for table in record["tables"] for row in table["rows"]]
    assert len(rows) > 40
    for row in rows:
        for cell in row:
            assert cell is None or str(escape(cell)) in text, cell
    assert "Ownfeed 0.1.0" in text
    first = text.partition("By bytes and pool size")[0]
    assert first.count("<circle") == 36, "a dot for each epsilon of the modes that have three and more"
    assert published("no-such-record") is None


def test_every_measured_pool_is_drawn_with_its_labels_inside() -> None:
    record = published(PUBLISHED_BY_POOL)
    assert record is not None
    pools = drawn_pools(record)
    assert [pool.news for pool in pools] == [12_312, 41_312, 99_312]
    for pool in pools:
        drawing = pool.drawing
        heights = sorted([line.name_y for line in drawing.lines] + [level.name_y for level in drawing.levels])
        assert all(NAME_HEIGHT <= height <= drawing.height for height in heights)
        assert all(high - low >= NAME_HEIGHT - 0.11 for low, high in pairwise(heights)), "rounded to a tenth"
        for line in drawing.lines:
            assert [x for x, _ in line.points] == sorted(x for x, _ in line.points), "a longer list weighs more"
            assert len(line.points) == 5
    table = next(table for table in record.tables if table.title == "What a list weighs")
    with pytest.raises(ValueError, match="no table"):
        drawn_pools(record.model_copy(update={"tables": (table,)}))


def test_recall_page_shows_the_frontier_as_measured(cache: Path) -> None:
    keep(FRONTIER)
    text = page()
    for figure in ("+2.1 (+1.1 to +3.1)", "without bound", "45.4", "709", "77.2 %"):
        assert figure in text
    assert text.partition("By bytes and pool size")[0].count("<circle") == 3, (
        "a dot for each epsilon of the modes that have one"
    )


def test_record_in_another_format_counts_as_missing(cache: Path) -> None:
    cache.write_text(json.dumps({"rows": [{"mode": 1}]}), encoding="utf-8")
    assert measured() is None


def test_codebooks_are_listed_with_price_and_truth_probability(tmp_path: Path, cache: Path) -> None:
    with running_server(tmp_path / "server", news=60, admin_token_file=tmp_path / "token") as server:
        token = (tmp_path / "token").read_text(encoding="utf-8").strip()
        server.client.cookies.set(cookie_name("testserver"), pass_of(token))
        text = server.client.get("/console/recall").text
        assert "0.7845" in text  # e^4 / (e^4 + 15)
        assert "Under the current release, with 60 articles" in text
        assert "One of 64" in server.client.get("/console/privacy").text
