"""What left this device: its log, with the polls that every device makes alike drawn together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from device_app.privacy.requests import COMMON
from device_app.store import byte_log
from device_app.store.database import Database
from device_app.store.rows import PAGE_SIZE, Page, from_us, offset
from device_app.stores import DeviceStores

POLLS_LISTED = 10
"""So many polls of a drawn-together line are listed with it; the others have pages of their own."""

ShownTraffic = Literal["concerning", "all"]

_LINES = f"""
  SELECT id, at, words, method, url, status, ms, epsilon, date(at / 1000000, 'unixepoch', 'localtime') AS day,
         length(head) + body_bytes AS sent,
         coalesce(length(response_head), 0) + coalesce(response_bytes, 0) AS received,
         status IS NULL OR status >= 400 AS unanswered,
         epsilon > 0 OR mechanism <> '{COMMON}' AND (mechanism <> 'nothing' OR method <> 'GET') AS concerns,
         mechanism = '{COMMON}' OR method = 'GET' AND mechanism IN ('nothing', 'presence') AS is_poll,
         mechanism, body_sha256, CASE mechanism WHEN '{COMMON}' THEN mechanism ELSE words END AS asked
  FROM traffic"""
"""A request concerns the reader if it carries something made from their reading, or anything at all beyond a GET but
what every device asks alike: the texts of the list that everybody gets.

A poll carries nothing: what every device asks alike, or what a stage of a secure sum came to. Those with the same
`asked` are drawn together: with the same words, which for texts of that list say how many they are.
"""
COLUMNS = 17
"""Of a line of the log; what is gathered of its group follows."""
_GATHERED = f"""
  WITH line AS ({_LINES}),
       stretch AS (SELECT *, sum(NOT is_poll) OVER (ORDER BY id) AS after FROM line WHERE concerns OR ?1 = 'all'),
       gathered AS (
         SELECT max(id) AS newest, count(*) AS number, min(id) AS oldest, min(at) AS first_at, sum(sent) AS all_sent,
                sum(received) AS all_received, sum(unanswered) AS failures, count(*) OVER () AS total
         FROM stretch
         GROUP BY after, is_poll, day, asked
         ORDER BY newest DESC LIMIT ?2 OFFSET ?3)
  SELECT line.*, number, oldest, first_at, all_sent, all_received, failures, total,
         CASE mechanism WHEN 'secure_sum'
           THEN (SELECT max(charge.epsilon) FROM charge WHERE payload_sha256 = body_sha256) END AS paid
  FROM gathered JOIN line ON line.id = newest ORDER BY newest DESC"""
"""`after` counts the requests that were no polls so far, so each of these stands alone in its group.

A masked vector was paid for when it was made, not when it was sealed: the ledger knows its price by its hash.
"""


@dataclass(frozen=True)
class TrafficEntry:
    """One request that left this device, without the bytes. concerns: whether it told something about the reader."""

    entry_id: int
    at: datetime
    words: str
    method: str
    url: str
    sent_bytes: int
    received_bytes: int
    status: int | None
    ms: float
    epsilon: float
    concerns: bool


@dataclass(frozen=True)
class TrafficLine(TrafficEntry):
    """A line of the table: one request, or several polls that ask the same, of which the entry is the newest.

    Polls are drawn together within a day and never across a request that carries something. sent_bytes and
    received_bytes are sums; polls holds the newest ten of count, and is empty where the line is one request.
    """

    count: int
    oldest_id: int
    first_at: datetime
    unanswered: int
    polls: tuple[TrafficEntry, ...]


@dataclass(frozen=True)
class TrafficLog:
    """One page of lines, newest first, and how many requests there are: of any kind, and concerning the reader."""

    shown: ShownTraffic
    lines: tuple[TrafficLine, ...]
    page: int
    pages: int
    requests: int
    concerning: int


@dataclass(frozen=True)
class TrafficDetail:
    """One request with the very bytes that left, and the head of what came back."""

    entry: TrafficEntry
    request_head: str
    request_body: bytes
    body_is_whole: bool
    body_bytes: int
    response_head: str
    trouble: str | None


@dataclass(frozen=True)
class RequestGroup:
    """A page of the polls behind one line, newest first."""

    newest: TrafficEntry
    oldest_id: int
    page: int
    pages: int
    total: int
    entries: tuple[TrafficEntry, ...]


def traffic_log(stores: DeviceStores, page: int, shown: ShownTraffic | None) -> TrafficLog:
    """One page of the log; by default what concerned the reader, or all where nothing did."""
    database = stores.database
    counts = database.row(f"SELECT count(*), coalesce(sum(concerns), 0) FROM ({_LINES})")
    requests, concerning = (int(counts[0]), int(counts[1])) if counts else (0, 0)
    kind: ShownTraffic = shown or ("concerning" if concerning else "all")
    rows = database.rows(_GATHERED, (kind, PAGE_SIZE, offset(page)))
    lines = tuple(_line(database, row) for row in rows)
    total = Page(lines, page, int(rows[0][-2]) if rows else 0)
    return TrafficLog(kind, lines, page, total.pages if rows else page, requests, concerning)


def request_group_page(stores: DeviceStores, oldest_id: int, newest_id: int, page: int) -> RequestGroup | None:
    """The polls of one line; None if its newest is not in the log."""
    database = stores.database
    newest = database.row(f"SELECT * FROM ({_LINES}) WHERE id = ?", (newest_id,))
    if newest is None:
        return None
    asked = newest[COLUMNS - 1]
    entries = _polls(database, asked, oldest_id, newest_id, PAGE_SIZE, offset(page))
    total = database.number(
        f"SELECT count(*) FROM ({_LINES}) WHERE id BETWEEN ? AND ? AND asked = ? AND is_poll",
        (oldest_id, newest_id, asked),
    )
    listed = Page(entries, page, total)
    return RequestGroup(_entry(newest), oldest_id, page, listed.pages, total, entries)


def traffic_view(stores: DeviceStores, kept: byte_log.LoggedRequest) -> TrafficDetail:
    """One kept request, to the byte."""
    masked = kept.mechanism == "secure_sum" and stores.ledger_entries.charged(kept.body_sha256)
    return TrafficDetail(
        entry=TrafficEntry(
            entry_id=kept.id,
            at=kept.at,
            words=kept.words,
            method=kept.method,
            url=kept.url,
            sent_bytes=kept.sent_bytes,
            received_bytes=len(kept.response_head or b"") + (kept.response_bytes or 0),
            status=kept.status,
            ms=kept.ms or 0.0,
            epsilon=masked.epsilon if masked else kept.epsilon,
            concerns=kept.epsilon > 0
            or (kept.mechanism != COMMON and (kept.mechanism, kept.method) != ("nothing", "GET")),
        ),
        request_head=kept.head.decode("latin-1"),
        request_body=kept.body,
        body_is_whole=kept.body_is_whole,
        body_bytes=kept.body_bytes,
        response_head=(kept.response_head or b"").decode("latin-1"),
        trouble=kept.trouble,
    )


def _line(database: Database, row: Sequence[Any]) -> TrafficLine:
    newest, asked = _entry(row), row[COLUMNS - 1]
    count, oldest_id, first_at, sent_bytes, received_bytes, unanswered = row[COLUMNS : COLUMNS + 6]
    polls = _polls(database, asked, oldest_id, newest.entry_id, POLLS_LISTED, 0) if count > 1 else ()
    epsilon = newest.epsilon or row[-1] or 0.0
    whole = vars(newest) | {"sent_bytes": sent_bytes, "received_bytes": received_bytes, "epsilon": epsilon}
    return TrafficLine(
        **whole, count=count, oldest_id=oldest_id, first_at=from_us(first_at), unanswered=unanswered, polls=polls
    )


def _polls(
    database: Database, asked: str, oldest_id: int, newest_id: int, limit: int, skip: int
) -> tuple[TrafficEntry, ...]:
    rows = database.rows(
        f"""SELECT * FROM ({_LINES}) WHERE id BETWEEN ? AND ? AND asked = ? AND is_poll
            ORDER BY id DESC LIMIT ? OFFSET ?""",
        (oldest_id, newest_id, asked, limit, skip),
    )
    return tuple(_entry(row) for row in rows)


def _entry(row: Sequence[Any]) -> TrafficEntry:
    entry_id, at, words, method, url, status, ms, epsilon, _, sent, received, _, concerns, *_ = row
    return TrafficEntry(
        entry_id, from_us(at), words, method, url, sent, received, status, ms or 0.0, epsilon, bool(concerns)
    )
