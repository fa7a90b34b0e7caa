"""GET /metrics for Prometheus: requests, stages, rounds, pool, index, pictures, refusals, feeds.

No data about readers.

It requires its own token (metrics.token in the data folder), with which a monitoring system can't open rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from sqlalchemy import func, select

from backend.api.admin import is_operator
from backend.api.openapi import answers
from backend.db.engine import reading_session
from backend.db.tables import FAILED, LEFT, MADE, REFUSED, RoundRow
from backend.errors import MetricsTokenNeeded

if TYPE_CHECKING:
    from backend.composition import Services

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
NO_ROUTE = "none"
STATES = ("open", "updates", "applied", "failed")
PICTURE_STATES = (MADE, FAILED, REFUSED, LEFT)
REQUEST_SEC = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
FEED_LABELS = ("host", "feed")
FEED_NAME_CHARS = 8
STAGE_SEC = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class BackendMetrics:
    """What one process counts from its start, and what it reads at each scrape."""

    def __init__(self, services: Services) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "ownfeed_backend_requests",
            "Requests answered, by route as it is written in the API.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "ownfeed_backend_request_seconds",
            "From the first byte to the end of the answer.",
            ("route",),
            buckets=REQUEST_SEC,
            registry=self.registry,
        )
        self._stages = Histogram(
            "ownfeed_backend_stage_seconds",
            "Stages of recall, of the default list and of texts; 'total' is all of it.",
            ("request", "stage"),
            buckets=STAGE_SEC,
            registry=self.registry,
        )
        self._of_kind: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        """Counters by method, route and status; finding them by their labels takes longer than counting."""
        services.latency.listen(self._note_stages)
        self.registry.register(StateCollector(services))

    def note_request(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count one answer; route: its template, so that no single reader's address becomes a label."""
        kind = (method if method in METHODS else "other", route or NO_ROUTE, status)
        found = self._of_kind.get(kind)
        if found is None:
            counter = self._requests.labels(kind[0], kind[1], str(status))
            found = self._of_kind[kind] = counter, self._seconds.labels(kind[1])
        found[0].inc()
        found[1].observe(seconds)

    def _note_stages(self, kind: str, stages_ms: Mapping[str, float]) -> None:
        for stage, duration_ms in stages_ms.items():
            self._stages.labels(kind, stage).observe(duration_ms / 1_000)


class StateCollector:
    """Figures that are read at each scrape."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def describe(self) -> Iterable[Metric]:
        """Return nothing before a scrape: the registry would read the database for their names."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Figures of rounds, pool, index, release, pictures, refusals and feeds."""
        parts = self._services
        rounds = GaugeMetricFamily("ownfeed_backend_rounds", "Rounds by state.", labels=("state",))
        with reading_session(parts.engine) as session:
            by_state = session.execute(select(RoundRow.state, func.count()).group_by(RoundRow.state))
            counts = {state: int(count) for state, count in by_state}
        for state in STATES:
            rounds.add_metric((state,), counts.get(state, 0))
        yield rounds
        yield _gauge("waiting_devices", "Looks for a round in the last half minute.", parts.coordinator.polls.waiting())

        pool, catalogue = parts.pool.counts(), parts.live.current
        yield _gauge("pool_news", "News in the pool, duplicates included.", pool.news)
        yield _gauge("index_news", "News in the search index.", len(catalogue))
        yield _gauge("index_built_timestamp_seconds", "When the index was built.", catalogue.built_at.timestamp())
        yield _gauge("news_without_vector", "News that wait for their vector.", catalogue.without_vector)
        if (newest := catalogue.newest_at) is not None:
            at = newest.timestamp()
            yield _gauge("newest_news_timestamp_seconds", "When the newest news on offer was published.", at)
        manifest = parts.releases.current_manifest()
        if manifest is not None:
            yield _gauge("release", "Number of the current release.", int(manifest.release.removeprefix("r")))

        pictures = GaugeMetricFamily(
            "ownfeed_backend_pictures", "Publishers' pictures by what became of them.", labels=("state",)
        )
        found = parts.pictures.store.counts().by_state
        for state in PICTURE_STATES:
            pictures.add_metric((state,), found.get(state, 0))
        yield pictures

        refused = GaugeMetricFamily(
            "ownfeed_backend_refused_requests", "Refused since the start for want of capacity.", labels=("line",)
        )
        refused.add_metric(("recall",), parts.recall_admission.refused)
        yield refused

        answered = GaugeMetricFamily(
            "ownfeed_backend_feed_answered_timestamp_seconds",
            "When a feed last answered; 0: never.",
            labels=FEED_LABELS,
        )
        failures = GaugeMetricFamily(
            "ownfeed_backend_feed_failures", "Failures of a feed since its last answer.", labels=FEED_LABELS
        )
        for feed in parts.feeds.followed.all():
            named = feed_labels(feed.url)
            answered.add_metric(named, _timestamp(feed.fetched_at))
            failures.add_metric(named, feed.failures)
        yield answered
        yield failures


def router(services: Services, metrics: BackendMetrics) -> APIRouter:
    def may_read(request: Request) -> None:
        if not is_operator(request.headers.get("authorization", ""), services.metrics_token):
            raise MetricsTokenNeeded

    routes = APIRouter(dependencies=[Depends(may_read)])

    @routes.get(
        "/metrics", response_class=Response, response_model=None, responses=answers(401, also={200: "text/plain"})
    )
    def read() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    return routes


def feed_labels(url: str) -> tuple[str, str]:
    """A feed's host, and a name: the first 8 hex digits of its address's SHA-256.

    The address itself may contain a password or a token, and labels are stored for years where others can see them.
    """
    return urlsplit(url).hostname or "", sha256(url.encode()).hexdigest()[:FEED_NAME_CHARS]


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(f"ownfeed_backend_{name}", says, value=value)


def _timestamp(at: datetime | None) -> float:
    return 0.0 if at is None else at.timestamp()
