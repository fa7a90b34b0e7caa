"""GET /metrics of the reader's own app, for Prometheus, behind the page key.

It shows that the app works and how fast, and nothing about what is read. No label contains an address, story, section
or topic, and requests aren't distinguished by page.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from device_app.pages.openapi import bytes_of
from device_app.privacy.accounting.limits import CHANNELS

if TYPE_CHECKING:
    from device_app.device import Device

METHODS = frozenset({"GET", "HEAD", "POST"})
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class DeviceMetrics:
    """Counts one reader's requests since the app started, and provides the route to them."""

    def __init__(self, device: Device) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "ownfeed_device_requests",
            "Requests of the browser that were answered.",
            ("method", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "ownfeed_device_request_seconds", "Until the end of the answer.", buckets=SECONDS, registry=self.registry
        )
        self._stages = Histogram(
            "ownfeed_device_stage_seconds",
            "Stages of making a page of the feed, on this device and on the server.",
            ("request", "where", "stage"),
            buckets=SECONDS,
            registry=self.registry,
        )
        self._refusals = Counter(
            "ownfeed_device_ledger_refusals",
            "Charges for which a budget had not enough left, so that nothing was sent.",
            ("channel",),
            registry=self.registry,
        )
        for channel in CHANNELS:
            self._refusals.labels(channel)
        device.parts.stores.timings.listen(self._note_stages)
        device.parts.ledger.listen(lambda channel: self._refusals.labels(channel).inc())

    def router(self) -> APIRouter:
        routes = APIRouter()

        @routes.get("/metrics", response_class=Response, responses=bytes_of("text/plain"))
        def read() -> Response:
            return Response(generate_latest(self.registry), media_type=CONTENT_TYPE_LATEST)

        return routes

    def note_request(self, method: str, status: int, seconds: float) -> None:
        """Record one answer."""
        self._requests.labels(method if method in METHODS else "other", str(status)).inc()
        self._seconds.observe(seconds)

    def _note_stages(self, kind: str, device_ms: Mapping[str, float], server_ms: Mapping[str, float]) -> None:
        for where, stages in (("device", device_ms), ("server", server_ms)):
            for stage, duration_ms in stages.items():
                self._stages.labels(kind, where, stage).observe(duration_ms / 1_000)


class MeasuredRequests:
    """ASGI middleware that records each answer's method, status and duration in seconds."""

    def __init__(self, app: ASGIApp, *, metrics: DeviceMetrics) -> None:
        self.app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            self._metrics.note_request(scope["method"], status, time.perf_counter() - started)
