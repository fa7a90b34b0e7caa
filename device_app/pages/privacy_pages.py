"""Routes that show what left this device and what it could reveal."""

import json
from datetime import UTC, datetime, time, timedelta
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response

from device_app.pages.openapi import bytes_of, page
from device_app.pages.renderer import WORDS, PageRenderer, RowId
from device_app.pages.settings_pages import level_of, unusable
from device_app.view_models.privacy import ReportPair
from device_app.view_models.traffic import ShownTraffic

BYTES = "application/octet-stream"
SHOWN_BYTES = 60_000
"""Most bytes of a request's body shown on the page; the download is always complete."""


def router(renderer: PageRenderer) -> APIRouter:
    """Return the routes of the privacy page and of a single request, byte by byte."""
    device = renderer.device
    routes = renderer.router()

    @routes.get("/privacy", **page())
    def privacy(
        request: Request,
        page: Annotated[int, Query(ge=1, le=100_000)] = 1,
        show: ShownTraffic | None = None,
    ) -> Response:
        view = device.privacy.overview(page, show)
        return renderer.page(
            request, "privacy", privacy=view, channels=channels(view.report), level=level_of(view.own),
            unusable=unusable(view), day_ends=day_ends(datetime.now(UTC)),
        )  # fmt: skip

    @routes.get("/privacy/polls/{oldest_id}/{newest_id}", **page(404))
    def polls(
        request: Request, oldest_id: RowId, newest_id: RowId, page: Annotated[int, Query(ge=1, le=100_000)] = 1
    ) -> Response:
        found = device.privacy.polls(oldest_id, newest_id, page)
        if found is None:
            return renderer.problem(request, 404, WORDS("no_requests_title"), WORDS("no_request", id=newest_id))
        return renderer.page(request, "polls", polls=found)

    @routes.get("/privacy/requests/{entry_id}", **page(404))
    def one_request(request: Request, entry_id: RowId) -> Response:
        traffic = device.privacy.traffic(entry_id)
        if traffic is None:
            return renderer.problem(request, 404, WORDS("no_request_title"), WORDS("no_request", id=entry_id))
        body = traffic.request_body
        return renderer.page(
            request, "request", traffic=traffic, readable=readable(body), hexdump=hexdump(body[:SHOWN_BYTES]),
            cut=len(body) > SHOWN_BYTES,
        )  # fmt: skip

    @routes.get("/privacy/requests/{entry_id}/body", response_class=Response, responses=bytes_of(BYTES, 404))
    def body(entry_id: RowId) -> Response:
        traffic = device.privacy.traffic(entry_id)
        if traffic is None:
            raise HTTPException(404, f"no request {entry_id}")
        return Response(
            traffic.request_body,
            media_type=BYTES,
            headers={"content-disposition": f'attachment; filename="request-{entry_id}.bin"'},
        )

    return routes


def day_ends(now: datetime) -> datetime:
    """Return when the UTC day of `now` ends and the next day's budgets begin."""
    return datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)


def channels(report: ReportPair | None) -> list[dict[str, object]]:
    """Return one dict per row of the current report; empty if a sentence describes it.

    Each has a label, a count or None, the largest absolute score, and the scores as (index, clear score or None, sent
    score). A report of a single number or a set is described in a sentence.
    """
    if report is None or report.in_a_sentence:
        return []
    return [
        {
            "label": report.labels[at] if at < len(report.labels) else report.row_label or f"Channel {at + 1}",
            "count": report.counts[at] if at < len(report.counts) else None,
            "rows": [(k, report.clear[at][k] if report.clear else None, sent) for k, sent in enumerate(noisy)],
            "peak": max([abs(value) for value in noisy] + [1e-9]),
        }
        for at, noisy in enumerate(report.noisy)
    ]


def readable(body: bytes) -> str | None:
    """Return a JSON body indented; None if the body isn't JSON."""
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)[:SHOWN_BYTES]
    except (ValueError, UnicodeDecodeError):
        return None


def hexdump(body: bytes) -> str:
    """Return sixteen bytes per line: offset, hexadecimal, and printable characters."""
    lines = []
    for start in range(0, len(body), 16):
        row = body[start : start + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{start:06x}  {row.hex(' '):<47}  {text}")
    return "\n".join(lines)
