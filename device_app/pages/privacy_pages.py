"""What left this device, what it could reveal, and the switches."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Form, HTTPException, Query, Request
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from device_app.pages.openapi import bytes_of, form, page
from device_app.pages.privacy_view import PrivacyView, ReportPair
from device_app.pages.renderer import PageRenderer, RowId, see_other
from device_app.pages.traffic_view import Shown
from device_app.settings import Mode

ERASE_WORD = "erase"
BYTES = "application/octet-stream"
SHOWN_BYTES = 60_000
"""Most of a request's body shown on the page; the download always has all of it."""


def router(renderer: PageRenderer) -> APIRouter:
    """The privacy page, one request to the byte, and the switches."""
    device = renderer.device
    routes = renderer.router()

    def whole(request: Request, view: PrivacyView, problem: str | None = None) -> Response:
        return renderer.page(
            request, "privacy", privacy=view, problem=problem, channels=channels(view.report), erase_word=ERASE_WORD,
            day_ends=day_ends(datetime.now(UTC)), status_code=422 if problem else 200,
        )  # fmt: skip

    @routes.get("/privacy", **page())
    def privacy(
        request: Request,
        page: Annotated[int, Query(ge=1, le=100_000)] = 1,
        show: Shown | None = None,
    ) -> Response:
        return whole(request, device.privacy(page, show))

    @routes.get("/privacy/polls/{oldest_id}/{newest_id}", **page(404))
    def polls(
        request: Request, oldest_id: RowId, newest_id: RowId, page: Annotated[int, Query(ge=1, le=100_000)] = 1
    ) -> Response:
        found = device.polls(oldest_id, newest_id, page)
        if found is None:
            return renderer.problem(
                request, 404, "No such requests", f"No request {newest_id} is in this device's log."
            )
        return renderer.page(request, "polls", polls=found)

    @routes.get("/privacy/requests/{entry_id}", **page(404))
    def one_request(request: Request, entry_id: RowId) -> Response:
        traffic = device.traffic(entry_id)
        if traffic is None:
            return renderer.problem(request, 404, "No such request", f"No request {entry_id} is in this device's log.")
        body = traffic.request_body
        return renderer.page(
            request, "request", traffic=traffic, readable=readable(body), hexdump=hexdump(body[:SHOWN_BYTES]),
            cut=len(body) > SHOWN_BYTES,
        )  # fmt: skip

    @routes.get("/privacy/requests/{entry_id}/body", response_class=Response, responses=bytes_of(BYTES, 404))
    def body(entry_id: RowId) -> Response:
        traffic = device.traffic(entry_id)
        if traffic is None:
            raise HTTPException(404, f"no request {entry_id}")
        return Response(
            traffic.request_body,
            media_type=BYTES,
            headers={"content-disposition": f'attachment; filename="request-{entry_id}.bin"'},
        )

    @routes.post("/privacy/switches", **form())
    def switches(
        request: Request,
        mode: Annotated[Mode, Form()],
        epsilon_per_day_reports: Annotated[float, Form()],
        epsilon_per_day_training: Annotated[float, Form()],
        clicks_per_report: Annotated[int, Form()],
        training: Annotated[Literal["on", "off"], Form()] = "off",
        searches_in_reports: Annotated[list[Literal["on", "off"]], Form()] = [],  # noqa: B006
        epsilon_per_report: Annotated[float | None, Form()] = None,
        epsilon_lifetime_reports: Annotated[float | None, Form()] = None,
        epsilon_lifetime_training: Annotated[float | None, Form()] = None,
        counting: Annotated[list[Literal["on", "off"]], Form()] = [],  # noqa: B006
        epsilon_per_day_counts: Annotated[float | None, Form()] = None,
        epsilon_per_sum_alone: Annotated[float | None, Form()] = None,
        epsilon_per_click_alone: Annotated[float | None, Form()] = None,
        epsilon_per_day_alone: Annotated[float | None, Form()] = None,
        epsilon_lifetime_alone: Annotated[float | None, Form()] = None,
    ) -> Response:
        given = {
            "epsilon_per_report": epsilon_per_report,
            "epsilon_lifetime_reports": epsilon_lifetime_reports,
            "epsilon_lifetime_training": epsilon_lifetime_training,
            "searches_in_reports": "on" in searches_in_reports if searches_in_reports else None,
            "counting": "on" in counting if counting else None,
            "epsilon_per_day_counts": epsilon_per_day_counts,
            "epsilon_per_sum_alone": epsilon_per_sum_alone,
            "epsilon_per_click_alone": epsilon_per_click_alone,
            "epsilon_per_day_alone": epsilon_per_day_alone,
            "epsilon_lifetime_alone": epsilon_lifetime_alone,
        }
        try:
            device.set_privacy(
                mode=mode,
                epsilon_per_day_reports=epsilon_per_day_reports,
                epsilon_per_day_training=epsilon_per_day_training,
                clicks_per_report=clicks_per_report,
                training=training == "on",
                **{name: value for name, value in given.items() if value is not None},
            )
        except ValidationError as refused:
            first = refused.errors()[0]
            words = f"Nothing was changed: {' '.join(map(str, first['loc'])).replace('_', ' ')}: {first['msg']}."
            return whole(request, device.privacy(), words)
        return see_other("/privacy", "settings")

    @routes.get("/privacy/export")
    def export() -> Response:
        return JSONResponse(
            jsonable_encoder(device.export()),
            headers={"content-disposition": 'attachment; filename="ownfeed-everything.json"'},
        )

    @routes.post("/privacy/erase", **form())
    def erase(request: Request, confirm: Annotated[str, Form(max_length=40)] = "") -> Response:
        if confirm.strip().lower() != ERASE_WORD:
            return whole(request, device.privacy(), f"Nothing was erased: type {ERASE_WORD} to confirm.")
        device.erase()
        return see_other("/welcome", "erased")

    return routes


def day_ends(now: datetime) -> datetime:
    """When the UTC day of `now` ends, and the budgets of the next begin."""
    return datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)


def channels(report: ReportPair | None) -> list[dict[str, object]]:
    """The report in use, row by row: label, count or None, and (index, clear score or None, sent score).

    Nothing for a report of one number or a set: it is told in a sentence.
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
    """A JSON body indented; None where the body is something else."""
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)[:SHOWN_BYTES]
    except (ValueError, UnicodeDecodeError):
        return None


def hexdump(body: bytes) -> str:
    """Sixteen bytes a line: offset, hexadecimal, and the printable ones as text."""
    lines = []
    for start in range(0, len(body), 16):
        row = body[start : start + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{start:06x}  {row.hex(' '):<47}  {text}")
    return "\n".join(lines)
