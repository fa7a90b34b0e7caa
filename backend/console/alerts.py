"""Alerts for the operator about current problems, computed each time the overview is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("backend.console", "words.toml")

if TYPE_CHECKING:
    from backend.composition import Services

STALE_AFTER = timedelta(hours=24)
RECALL_P95_BAR_MS = 10.0


@dataclass(frozen=True)
class Alert:
    """One alert of the overview; page is where the operator can act on it."""

    weight: Literal["bad", "due"]
    message: str
    page: str


def alerts(services: Services, now: datetime | None = None) -> list[Alert]:
    """All current problems, the most severe first."""
    found = [*_releases(services), *_pool(services, now or datetime.now(UTC)), *_rounds(services), *_latency(services)]
    return sorted(found, key=lambda alert: alert.weight == "due")


def _releases(services: Services) -> Iterator[Alert]:
    manifest = services.releases.current_manifest()
    if manifest is None:
        yield Alert("bad", WORDS("no_release"), "releases")
    elif services.live.current.encoder != manifest.encoder:
        yield Alert("bad", WORDS("other_encoder", release=manifest.release), "pool")


def _pool(services: Services, now: datetime) -> Iterator[Alert]:
    catalogue = services.live.current
    if (newest := catalogue.newest_at) is None:
        yield Alert("bad", WORDS("empty"), "pool")
    elif now - newest > STALE_AFTER:
        yield Alert("due", WORDS("stale"), "pool")
    if catalogue.without_vector:
        yield Alert("due", WORDS("without_vector", count=catalogue.without_vector), "pool")
    for refused in catalogue.status.refused:
        yield Alert("due", WORDS("index_refused", why=refused), "pool")
    seen: set[str] = set()
    for run in services.pool.ingests(50):
        if run.source in seen:
            continue
        seen.add(run.source)
        if run.failure is not None:
            yield Alert("bad", WORDS("run_stopped", source=run.source, why=run.failure), "pool")
        elif run.rejected:
            yield Alert("due", WORDS("run_rejected", source=run.source, rows=run.rejected), "pool")


def _rounds(services: Services) -> Iterator[Alert]:
    last = next(iter(services.coordinator.history(1)), None)
    if last is not None and last.state == "failed":
        yield Alert("due", WORDS("round_failed", round=last.round, why=last.reason or WORDS("no_reason")), "rounds")


def _latency(services: Services) -> Iterator[Alert]:
    recall = services.latency.summary().get("recall")
    if recall is not None and recall.window >= 20:
        p95_ms = recall.stages["total"].p95_ms
        if p95_ms > RECALL_P95_BAR_MS:
            yield Alert("due", WORDS("slow_recall", p95_ms=p95_ms, bar_ms=RECALL_P95_BAR_MS), "latency")
