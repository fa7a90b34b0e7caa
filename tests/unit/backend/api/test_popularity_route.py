"""GET /v1/releases/{number}/popularity: the same for everybody; its ETag is its hash. Oracle: the catalogue's lifts."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from numpy.typing import NDArray

from backend.api import releases as release_routes
from backend.db.engine import open_engine
from backend.news.pool import NewsPool
from backend.popularity.estimate import NoisyCounts
from backend.popularity.store import CountSummary
from backend.recall.catalogue import Catalogue, LiveCatalogue, build_catalogue
from backend.releases.store import ReleaseStore
from backend.server.problems import install_problems
from backend.server.shared_answers import SharedAnswers
from backend.settings import BackendSettings
from protocol.popularity import LIFT_STEP, POPULAR_LIMIT, Popularity
from tests.doubles.in_process import InProcess
from tests.doubles.recall_world import ENCODER, fill, indexes_in, publish, settings_in

NEWS = 260


class OneCount:
    """One count of the hundredth and later articles, of which every third is opened often."""

    def __init__(self) -> None:
        self.now = 0

    def version(self) -> int:
        return self.now

    def counted(self, numbers: NDArray[np.int64], now: datetime) -> tuple[NoisyCounts, NDArray[np.bool_]]:
        asked = numbers >= 100
        shown = asked.astype(np.float64)
        clicks = np.where(numbers % 3 == 0, 300.0, 50.0) * shown
        return NoisyCounts(clicks, 1_000.0 * shown, np.ones(len(numbers)), np.ones(len(numbers))), asked

    def made(self, limit: int = 20) -> list[CountSummary]:
        made = [CountSummary(4, datetime(2026, 11, 20, 9, tzinfo=UTC), 77, NEWS, 1.0, 1.0)]
        return made if self.now else []


class ReleaseRoutes:
    """The release routes over a real pool, release and catalogue, and made-up counts."""

    def __init__(self, settings: BackendSettings) -> None:
        fill(settings, NEWS)
        publish(settings)
        self.settings, self.counts = settings, OneCount()
        engine = open_engine(settings.database_url)
        self.pool = NewsPool(engine)
        self.live = LiveCatalogue(self.built())
        services = SimpleNamespace(
            engine=engine,
            releases=ReleaseStore.open(engine, settings),
            live=self.live,
            counts=self.counts,
            storage=settings.open_storage(),
        )
        app = FastAPI()
        app.include_router(release_routes.router(services))  # type: ignore[arg-type]
        app.add_middleware(SharedAnswers, keep_sec=0, on_request={})
        install_problems(app)
        self.client = httpx.Client(transport=InProcess(app), base_url="http://backend")

    def built(self) -> Catalogue:
        now = datetime.now(UTC)
        return build_catalogue(self.pool, ENCODER, now, indexes_in(self.settings), counts=self.counts)

    def reported(self) -> Popularity:
        return Popularity.model_validate_json(self.client.get("/v1/releases/1/popularity").content)


@pytest.fixture
def server(tmp_path: Path) -> ReleaseRoutes:
    return ReleaseRoutes(settings_in(tmp_path))


def test_popularity_before_any_count_has_no_lifts(server: ReleaseRoutes) -> None:
    reported = server.reported()
    assert (reported.rounds, reported.devices, reported.counted_at, reported.news, reported.lifts) == (
        0,
        0,
        None,
        (),
        (),
    )
    catalogue = server.live.current
    order = np.argsort(-catalogue.log_popularity, kind="stable")[:POPULAR_LIMIT]
    assert list(reported.popular) == [catalogue.ids[row] for row in order]


def test_popularity_after_a_count_lists_the_lifted_articles(server: ReleaseRoutes) -> None:
    server.counts.now = 4
    server.live.swap(server.built())
    reported, catalogue = server.reported(), server.live.current
    assert (reported.rounds, reported.devices) == (1, 77)
    lifts = dict(zip(reported.news, reported.lifts, strict=True))
    for row, news_id in enumerate(catalogue.ids):
        assert abs(lifts.get(news_id, 0) * LIFT_STEP - catalogue.lifts[row]) <= LIFT_STEP / 2
    often = {news_id for row, news_id in enumerate(catalogue.ids) if catalogue.keys[row] % 3 == 0}
    assert lifts
    assert all((steps > 0) == (news_id in often) for news_id, steps in lifts.items() if abs(steps) > 16)
    default_list = {catalogue.ids[row] for row in catalogue.default_list[:40]}
    assert len(default_list & often) > 20, "a third of the pool, and most of the default list"


def test_popularity_is_identical_for_everybody_and_cached(server: ReleaseRoutes) -> None:
    first = server.client.get("/v1/releases/1/popularity", headers={"user-agent": "one"})
    second = server.client.get("/v1/releases/1/popularity", headers={"user-agent": "two"})
    assert first.content == second.content
    assert first.headers["etag"] == f'"{sha256(first.content).hexdigest()}"'
    again = server.client.get("/v1/releases/1/popularity", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "set-cookie" not in first.headers
    assert server.client.get("/v1/releases/9/popularity").status_code == 404
    server.counts.now = 4
    server.live.swap(server.built())
    assert server.client.get("/v1/releases/1/popularity").headers["etag"] != first.headers["etag"]


def test_new_count_shifts_log_popularity_by_its_lifts(server: ReleaseRoutes) -> None:
    before = server.live.current
    server.counts.now = 4
    after = server.built()
    assert before.counted != after.counted
    np.testing.assert_allclose(after.log_popularity - before.log_popularity, after.lifts, atol=1e-3)
    assert after.lifts.any()
