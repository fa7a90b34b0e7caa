"""The requests that the stand-in device behind the pages has sent: six kinds, and many polls."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from device_app.view_models.traffic import (
    RequestGroup,
    ShownTraffic,
    TrafficDetail,
    TrafficEntry,
    TrafficLine,
    TrafficLog,
)

Kind = Literal["empty", "typical", "overfull", "offline"]


def log(kind: Kind, now: datetime, page: int, shown: ShownTraffic) -> TrafficLog:
    """Return the requests as lines; one line stands for fourteen polls for a release."""
    if kind == "empty":
        return TrafficLog(shown, (), page, page, 0, 0)
    lines = [_as_line(entry) for entry in _entries(now) if entry.concerns or shown == "all"]
    total = 48_211 if kind == "overfull" else 19
    return TrafficLog(shown, tuple(lines), page, 40 if kind == "overfull" else 1, total, 4)


def polls(now: datetime, oldest_id: int, newest_id: int, page: int) -> RequestGroup | None:
    """Return ten polls of fourteen."""
    entry = next((one for one in _entries(now) if one.entry_id == newest_id), None)
    return None if entry is None else RequestGroup(entry, oldest_id, page, 2, 14, _as_line(entry).polls)


def traffic(now: datetime, entry_id: int) -> TrafficDetail | None:
    """One request; number 2 has no body, number 6 one that is not JSON."""
    entry = next((one for one in _entries(now) if one.entry_id == entry_id), None)
    if entry is None:
        return None
    report = {
        "release": 3,
        "limit": 400,
        "report": {"kind": "basis_laplace", "scores": [[0.81, -1.92]], "counts": [21]},
    }
    body = {2: b"", 6: bytes(range(256))}.get(entry_id, json.dumps(report).encode())
    head = f"{entry.method} /v1/recall HTTP/1.1\r\nhost: 127.0.0.1:8400\r\ncontent-type: application/json\r\n"
    answer = "" if entry.status is None else "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    trouble = "no answer within 10 s" if entry.status is None else None
    gone = entry_id == 4
    return TrafficDetail(entry, head, b"" if gone else body, not gone, len(body), answer, trouble)


def _as_line(entry: TrafficEntry) -> TrafficLine:
    count = 14 if entry.entry_id == 1 else 1
    polls = tuple(replace(entry, at=entry.at - timedelta(seconds=5 * at)) for at in range(10)) if count > 1 else ()
    return TrafficLine(
        **vars(entry), count=count, oldest_id=1, first_at=entry.at - timedelta(seconds=65), unanswered=0,
        polls=polls,
    )  # fmt: skip


def _entries(now: datetime) -> tuple[TrafficEntry, ...]:
    base = "http://127.0.0.1:8400/v1"
    rows = (
        ("Asks for the current release", "GET", "/releases/current", 212, 1_890, 200, 3.2, 0.0),
        (
            "Asks for the default list, the same for every device",
            "GET",
            "/news/front?limit=600",
            230,
            412_201,
            200,
            14.0,
            0.0,
        ),
        ("Sends the noisy report of your interests", "POST", "/recall", 2_411, 233_410, 200, 9.8, 50.0),
        ("Sends the same report again, bit for bit", "POST", "/recall", 2_411, 233_402, 200, 8.1, 0.0),
        (
            "Asks for the texts of all 400 recalled news at once",
            "POST",
            "/news/bodies",
            8_122,
            520_114,
            200,
            21.0,
            0.0,
        ),
        ("Checks in for a training round", "POST", "/rounds/check-in", 301, 0, None, 2_000.0, 0.0),
    )
    return tuple(
        TrafficEntry(
            at,
            now - timedelta(minutes=at * 7),
            words,
            method,
            base + path,
            sent,
            received,
            status,
            ms,
            cost,
            method == "POST",
        )
        for at, (words, method, path, sent, received, status, ms, cost) in enumerate(rows, 1)
    )
