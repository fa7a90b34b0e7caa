"""What an operator should look at first: found afresh for every overview, each with what still works and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from backend.composition import Services

STALE_AFTER = timedelta(hours=24)
RECALL_P95_BAR_MS = 10.0


@dataclass(frozen=True)
class Alert:
    """One line of the overview; page is where to act on it."""

    weight: Literal["bad", "due"]
    words: str
    page: str


def alerts(services: Services, now: datetime | None = None) -> list[Alert]:
    """All that is wrong now, the worst first."""
    found = [*_releases(services), *_pool(services, now or datetime.now(UTC)), *_rounds(services), *_latency(services)]
    return sorted(found, key=lambda alert: alert.weight == "due")


def _releases(services: Services) -> Iterator[Alert]:
    manifest = services.releases.current_manifest()
    if manifest is None:
        yield Alert(
            "bad", "No release is published, so devices get no feed. The first start publishes one.", "releases"
        )
    elif services.live.current.encoder != manifest.encoder:
        yield Alert(
            "bad",
            f"The catalogue is of another encoder than release {manifest.release}; recall waits for new vectors.",
            "pool",
        )


def _pool(services: Services, now: datetime) -> Iterator[Alert]:
    catalogue = services.live.current
    if not len(catalogue):
        yield Alert("bad", "The catalogue is empty: ingest a source.", "pool")
    elif now - max(catalogue.published_at) > STALE_AFTER:
        yield Alert("due", "No news of the last 24 hours is on offer: a source may have stopped.", "pool")
    if catalogue.without_vector:
        yield Alert("due", f"{catalogue.without_vector:,} news wait for their vector and aren't recalled yet.", "pool")
    for refused in catalogue.status.refused:
        yield Alert("due", f"An index was refused by its gate: {refused}.", "pool")
    seen: set[str] = set()
    for run in services.pool.ingests(50):
        if run.source in seen:
            continue
        seen.add(run.source)
        if run.failure is not None:
            yield Alert("bad", f"The last run of {run.source} stopped early: {run.failure}", "pool")
        elif run.rejected:
            yield Alert("due", f"The last run of {run.source} rejected {run.rejected:,} rows.", "pool")


def _rounds(services: Services) -> Iterator[Alert]:
    last = next(iter(services.coordinator.history(1)), None)
    if last is not None and last.state == "failed":
        yield Alert("due", f"{last.round} failed: {last.reason or 'no reason was noted'}.", "rounds")


def _latency(services: Services) -> Iterator[Alert]:
    recall = services.latency.summary().get("recall")
    if recall is not None and recall.window >= 20:
        p95_ms = recall.stages["total"].p95_ms
        if p95_ms > RECALL_P95_BAR_MS:
            yield Alert("due", f"Recall takes {p95_ms:.1f} ms at p95; the bar is {RECALL_P95_BAR_MS:g} ms.", "latency")
