"""View models of what left this device: today's summary, and the log of requests.

The summary covers all channels, for the sentence at the top of the privacy pages. The log groups polls that every
device makes in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal

from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.accounting.limits import CHANNELS
from device_app.privacy.accounting.moved_charges import MECHANISM as MOVED
from device_app.privacy.accounting.restored_copy import MECHANISM as RESTORED
from device_app.privacy.requests import COMMON
from device_app.reports.policy import ReportPolicy
from device_app.store import byte_log
from device_app.store.database import Database
from device_app.store.preferences import TAKEN_OVER
from device_app.store.rows import PAGE_SIZE, Page, from_us, offset
from device_app.stores import DeviceStores
from device_app.training.tasks import TASKS

POLLS_LISTED = 10
"""This many polls of a grouped line are listed with it; the others have pages of their own."""

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
"""One line of the log per request.

A request concerns the reader if it carries something derived from their reading, or is anything but a GET. Requests
that every device makes in the same way, for the texts of the default list, don't count.

A poll carries nothing: it is such a common request, or a request for the result of a stage of secure aggregation. Polls
with the same value of `asked`, which is their description, are grouped.
"""
COLUMNS = 17
"""Columns of a line of the log; the aggregates of its group follow."""
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
"""`after` counts the requests so far that were no polls, so each of those is its own group.

A masked vector was charged when it was made, not when it was sealed: the ledger finds its cost by its hash.
"""


@dataclass(frozen=True)
class TrafficEntry:
    """One request that left this device, without its bytes.

    concerns: whether it carried anything about the reader.
    """

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
    """A line of the table: one request, or a group of equal polls with the newest as entry.

    Polls are grouped within a day and never across a request that carries something. sent_bytes and received_bytes are
    sums. polls holds the newest ten of count, and is empty if the line is a single request.
    """

    count: int
    oldest_id: int
    first_at: datetime
    unanswered: int
    polls: tuple[TrafficEntry, ...]


@dataclass(frozen=True)
class TrafficLog:
    """One page of lines, newest first, with the total number of requests.

    requests: the number of all requests; concerning: the number of those that concern the reader.
    """

    shown: ShownTraffic
    lines: tuple[TrafficLine, ...]
    page: int
    pages: int
    requests: int
    concerning: int


@dataclass(frozen=True)
class TrafficDetail:
    """One request with the exact bytes that left, and the head of the answer."""

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
    """Return one page of the log.

    By default it shows requests that concern the reader, or all if there are none.
    """
    database = stores.database
    counts = database.row(f"SELECT count(*), coalesce(sum(concerns), 0) FROM ({_LINES})")
    requests, concerning = (int(counts[0]), int(counts[1])) if counts else (0, 0)
    kind: ShownTraffic = shown or ("concerning" if concerning else "all")
    rows = database.rows(_GATHERED, (kind, PAGE_SIZE, offset(page)))
    lines = tuple(_line(database, row) for row in rows)
    total = Page(lines, page, int(rows[0][-2]) if rows else 0)
    return TrafficLog(kind, lines, page, total.pages if rows else page, requests, concerning)


def request_group_page(stores: DeviceStores, oldest_id: int, newest_id: int, page: int) -> RequestGroup | None:
    """Return the polls of one line; None if its newest is not in the log."""
    database = stores.database
    newest = database.row(f"SELECT * FROM ({_LINES}) WHERE id = ?", (newest_id,))
    if newest is None:
        return None
    request = newest[COLUMNS - 1]
    entries = _polls(database, request, oldest_id, newest_id, PAGE_SIZE, offset(page))
    total = database.number(
        f"SELECT count(*) FROM ({_LINES}) WHERE id BETWEEN ? AND ? AND asked = ? AND is_poll",
        (oldest_id, newest_id, request),
    )
    listed = Page(entries, page, total)
    return RequestGroup(_entry(newest), oldest_id, page, listed.pages, total, entries)


def traffic_view(stores: DeviceStores, kept: byte_log.LoggedRequest) -> TrafficDetail:
    """Return one logged request with all its bytes."""
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
    newest, request = _entry(row), row[COLUMNS - 1]
    count, oldest_id, first_at, sent_bytes, received_bytes, unanswered = row[COLUMNS : COLUMNS + 6]
    polls = _polls(database, request, oldest_id, newest.entry_id, POLLS_LISTED, 0) if count > 1 else ()
    epsilon = newest.epsilon or row[-1] or 0.0
    whole = vars(newest) | {"sent_bytes": sent_bytes, "received_bytes": received_bytes, "epsilon": epsilon}
    return TrafficLine(
        **whole, count=count, oldest_id=oldest_id, first_at=from_us(first_at), unanswered=unanswered, polls=polls
    )


def _polls(
    database: Database, request: str, oldest_id: int, newest_id: int, limit: int, skip: int
) -> tuple[TrafficEntry, ...]:
    rows = database.rows(
        f"""SELECT * FROM ({_LINES}) WHERE id BETWEEN ? AND ? AND asked = ? AND is_poll
            ORDER BY id DESC LIMIT ? OFFSET ?""",
        (oldest_id, newest_id, request, limit, skip),
    )
    return tuple(_entry(row) for row in rows)


def _entry(row: Sequence[Any]) -> TrafficEntry:
    entry_id, at, words, method, url, status, ms, epsilon, _, sent, received, _, concerns, *_ = row
    return TrafficEntry(
        entry_id, from_us(at), words, method, url, sent, received, status, ms or 0.0, epsilon, bool(concerns)
    )


SENT = frozenset({"summing", "uploaded", "applied"})
"""States of a participation in which something was sent."""
LEFT_BEFORE_ERASE = "left_before_erase"
"""Preference that survives an erase: when it took place, and what had left that day.

It counts only what left without a charge.
"""


@dataclass(frozen=True)
class TodayView:
    """Counts of one day of the ledger (UTC).

    reports: new ones, each of which was charged. one_number: whether the mode reports a single number, or a set that
    hides one. again: how often an already charged report was resent, which reveals nothing new. counts: private counts.
    rounds: training rounds. spent_before: whether anything was ever charged, which an erase doesn't undo. erased_at:
    when everything was last erased here, if ever. moved: whether another device's charges were imported today, so that
    reports, counts and rounds are those that both devices may have sent. up_to_limits: whether a charge of today covers
    anything up to a limit, so that none of these numbers is known.
    """

    reports: int
    again: int
    counts: int
    rounds: int
    one_number: bool
    spent_before: bool
    erased_at: datetime | None = None
    moved: bool = False
    up_to_limits: bool = False

    def __bool__(self) -> bool:
        return bool(self.reports or self.again or self.counts or self.rounds)


def today_view(stores: DeviceStores, policy: ReportPolicy, ledger: Ledger) -> TodayView:
    """Return today's counts.

    Charges come from the ledger, which an erase keeps. What cost nothing comes from the logs, which an erase deletes,
    and from the totals that it keeps. A charge is made before bytes are sent, so whatever was charged counts as sent.
    """
    day = ledger.day()
    midnight = datetime.combine(day, datetime.min.time(), UTC)
    charges = {one.channel: one.charges for one in stores.ledger_entries.days() if one.day == day}
    left = left_so_far(stores, ledger)
    erased_at = (stores.preferences.get(LEFT_BEFORE_ERASE) or {}).get("at")
    moved_at = stores.preferences.get(TAKEN_OVER)
    return TodayView(
        reports=charges.get("reports", 0),
        again=left["again"],
        counts=charges.get("counts", 0) + left["counts"],
        rounds=charges.get("training", 0) + left["rounds"],
        one_number=policy.mode.label.in_a_sentence,
        spent_before=any(ledger.total(channel) > 0 for channel in CHANNELS),
        erased_at=None if erased_at is None else datetime.fromisoformat(erased_at),
        moved=moved_at is not None and datetime.fromisoformat(moved_at).date() == day,
        up_to_limits=stores.ledger_entries.charged_by((MOVED, RESTORED), midnight),
    )


def left_so_far(stores: DeviceStores, ledger: Ledger) -> dict[str, Any]:
    """Return how many messages were sent today without a charge.

    Keys are 'again', 'counts' and 'rounds', and 'at' for the time of counting.
    """
    day = ledger.day()
    midnight = datetime.combine(day, datetime.min.time(), UTC)
    kept = stores.preferences.get(LEFT_BEFORE_ERASE)
    before = kept if kept and datetime.fromisoformat(kept["at"]).date() == day else {}
    charged = stores.ledger_entries.of_sums()
    since = datetime.fromisoformat(before["at"]) if before else midnight
    reports = stores.byte_log.sent_since("recall", since) - stores.ledger_entries.charges_since("reports", since)
    uncharged = sum(one.until >= midnight and one.round not in charged for one in stores.counted.list())
    return {
        "at": ledger.now().astimezone(UTC).isoformat(),
        "again": before.get("again", 0) + max(0, reports),
        "counts": before.get("counts", 0) + uncharged,
        "rounds": before.get("rounds", 0) + _exact_rounds(stores, day),
    }


def _exact_rounds(stores: DeviceStores, day: date) -> int:
    """Return how many of today's training rounds had sums without noise, which have no charge."""
    return sum(
        one.state in SENT and one.sent_bytes > 0 and one.epsilon == 0 and TASKS[one.task].channel == "training"
        for one in stores.participations.list()
        if one.task in TASKS and one.changed_at.astimezone(UTC).date() == day
    )
