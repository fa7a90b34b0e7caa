"""The stores of what leaves the device: the ledger, the outbox, the request log; also blobs and releases."""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from device_app.errors import StoreBroken
from device_app.store import byte_log
from device_app.store.blobs import Blobs
from device_app.store.byte_log import BODY_KEPT_BYTES, ByteLog, Departure
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerEntry, LedgerRepository
from device_app.store.participations import Outbox
from device_app.store.releases import InstalledReleases
from device_app.store.report_memo import Memo, ReportMemo

DAY = timedelta(days=1)


def departure(at: datetime, body: bytes = b"{}") -> Departure:
    return Departure(at, "recall", "A report.", "POST", "http://b/v1/recall", b"POST /v1/recall HTTP/1.1\r\n\r\n", body)


def charge(at: datetime, epsilon: float, channel: str = "reports", payload: str = "ab") -> LedgerEntry:
    return LedgerEntry(at, channel, "basis_laplace", {"clip": 0.2}, epsilon, 0.0, payload * 32, "r1")


def test_ledger_adds_up_charges_by_channel_since_a_time_and_by_day(database: Database, now: datetime) -> None:
    book = LedgerRepository(database)
    for entry in (charge(now - DAY, 50), charge(now, 10), charge(now, 5), charge(now, 7, "training", "cd")):
        book.append(entry)
    assert book.spent("reports", now) == 15
    assert book.total("reports") == 65
    assert book.total("unheard of") == 0
    assert [(str(one.day), one.channel, one.epsilon, one.charges) for one in book.days()] == [
        ("2026-11-20", "reports", 15, 2),
        ("2026-11-20", "training", 7, 1),
        ("2026-11-19", "reports", 50, 1),
    ]
    page = book.entries()
    assert (page.total, page.rows[0].channel, page.rows[0].parameters) == (4, "training", {"clip": 0.2})
    paid = book.charged("cd" * 32)
    assert paid is not None
    assert paid.epsilon == 7
    assert book.charged("ee" * 32) is None


def test_report_memo_holds_one_report_and_only_for_its_release(database: Database, now: datetime) -> None:
    memo = ReportMemo(database)
    memo.keep(Memo("r1", b"one", ((0.1,),), 3, now, "meaning", "code", "encoder"))
    memo.keep(Memo("r2", b"two", ((0.2, -0.2),), 4, now, "meaning", "code", "encoder"))
    assert memo.current("r1") is None
    assert memo.current("r2") == Memo("r2", b"two", ((0.2, -0.2),), 4, now, "meaning", "code", "encoder")
    memo.clear()
    assert memo.latest() is None


def put(outbox: Outbox, now: datetime, subject: str = "round-1", payload: bytes = b"\x00bytes") -> int:
    return outbox.put(
        subject=subject,
        method="PUT",
        path="/v1/x",
        content_type="application/octet-stream",
        payload=payload,
        words="An update.",
        at=now,
        expires_at=now + DAY,
    )


def test_outbox_item_survives_a_restart_unchanged_until_done(tmp_path: Path, now: datetime) -> None:
    first = Database(tmp_path / "device.sqlite")
    item_id = put(Outbox(first), now)
    assert put(Outbox(first), now, payload=b"other bytes for the same round") == item_id
    Outbox(first).fail(item_id, "no answer in time", now + timedelta(minutes=5))
    first.close()
    again = Database(tmp_path / "device.sqlite")
    outbox = Outbox(again)
    assert outbox.due(now) == []
    (item,) = outbox.due(now + timedelta(minutes=5))
    assert (item.payload, item.sha256) == (b"\x00bytes", sha256(b"\x00bytes").hexdigest())
    assert (item.attempts, item.trouble, item.expires_at) == (1, "no answer in time", now + DAY)
    outbox.done(item.id)
    assert outbox.waiting() == []
    again.close()


def test_expired_outbox_item_is_dropped(database: Database, now: datetime) -> None:
    outbox = Outbox(database)
    put(outbox, now)
    assert outbox.due(now + DAY) == []
    assert outbox.waiting() == []


def test_request_is_logged_before_its_answer_and_completed_by_it(database: Database, now: datetime) -> None:
    log = ByteLog(database)
    entry_id = log.record(departure(now, b'{"a":1}'))
    open_entry = log.entry(entry_id)
    assert open_entry is not None
    assert (open_entry.status, open_entry.body, open_entry.sent_bytes) == (None, b'{"a":1}', 28 + 7)
    log.answered(entry_id, status=200, head=b"HTTP/1.1 200 OK\r\n\r\n", response_bytes=12, ms=3.5)
    log.failed(log.record(departure(now)), why="no answer in time", ms=9.0)
    page = log.entries()
    assert [(row.status, row.trouble, row.body) for row in page.rows] == [
        (None, "no answer in time", b""),
        (200, None, b""),
    ]
    assert log.entry(99) is None


def test_long_body_is_logged_as_its_beginning_length_and_hash(database: Database, now: datetime) -> None:
    body = bytes(BODY_KEPT_BYTES) + b"tail"
    log = ByteLog(database)
    kept = log.entry(log.record(departure(now, body)))
    assert kept is not None
    assert kept.body == bytes(BODY_KEPT_BYTES)
    assert not kept.body_is_whole
    assert (kept.body_bytes, kept.body_sha256) == (len(body), sha256(body).hexdigest())


def test_log_is_pruned_by_age_number_and_size(
    database: Database, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_log, "ENTRIES_KEPT", 5)
    monkeypatch.setattr(byte_log, "BODIES_KEPT_BYTES", 25)
    log = ByteLog(database)
    log.record(departure(now - 91 * DAY))
    ids = [log.record(departure(now, bytes(10))) for _ in range(6)]
    log.prune(now)
    assert [row.id for row in log.entries().rows] == ids[:0:-1]
    whole = {row.id: log.entry(row.id).body_is_whole for row in log.entries().rows}  # type: ignore[union-attr]
    assert whole == {ids[5]: True, ids[4]: True, ids[3]: False, ids[2]: False, ids[1]: False}
    assert log.entry(ids[1]).body_bytes == 10  # type: ignore[union-attr]


def test_request_log_is_pruned_while_it_grows(
    database: Database, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_log, "_PRUNE_EVERY", 4)
    log = ByteLog(database)
    log.record(departure(now - 91 * DAY))
    for _ in range(3):
        log.record(departure(now))
    assert log.entries().total == 3


def test_damaged_blob_counts_as_missing(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    digest = blobs.put(b"graph")
    assert blobs.put(b"graph") == digest
    assert blobs.read(digest) == b"graph"
    blobs.path(digest).write_bytes(b"grapf")
    assert blobs.read(digest) is None
    assert not blobs.has(digest)
    assert blobs.read("00" * 32) is None


def test_unwritable_folder_leaves_no_partial_blob(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file where the folder should be")
    with pytest.raises(StoreBroken):
        Blobs(tmp_path / "blobs").put(b"graph")


def test_pruning_tolerates_a_file_just_finished_by_another_device(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    kept = blobs.put(b"graph")
    (tmp_path / "blobs" / ".part-gone").symlink_to(tmp_path / "nowhere")  # listed, and not there when looked at
    assert blobs.prune([]) == 0
    assert blobs.read(kept) == b"graph"


def test_only_old_unused_blobs_are_pruned(tmp_path: Path) -> None:
    import os

    blobs = Blobs(tmp_path / "blobs")
    assert blobs.prune([]) == 0
    kept, old, young = blobs.put(b"kept"), blobs.put(b"old"), blobs.put(b"young")
    for digest in (kept, old):
        os.utime(blobs.path(digest), (0, 0))
    assert blobs.prune([kept]) == 1
    assert (blobs.has(kept), blobs.has(old), blobs.has(young)) == (True, False, True)


def test_pinned_key_is_never_replaced_by_another(database: Database, now: datetime) -> None:
    store = InstalledReleases(database)
    assert store.pinned_key() is None
    store.pin(b"k" * 32, now)
    store.pin(b"k" * 32, now)
    with pytest.raises(ValueError, match="another key"):
        store.pin(b"x" * 32, now)
    assert store.pinned_key() == b"k" * 32
