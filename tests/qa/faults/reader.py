"""Everything that a reader's device writes: reading, searching, reporting, copying, moving and deleting.

The server runs in the same process; requests are written to a file before it answers. Oracle: what was reported to the
reader as done (`Said`), against the device's own database, and the server's received bytes against the ledger.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from device_app.composition import build_device
from device_app.device import Device
from device_app.errors import DeviceError
from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.sealed_reports import NOBODYS_CLICKS
from device_app.settings import DeviceSettings
from device_app.store.database_copy import DatabaseCopy
from device_app.stores import searches_of
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.new_page import new_page
from tests.doubles.news import NOW
from tests.qa.faults.points import PointKind

SENT, SAID, EXPORT = "sent.log", "said.log", "other.json"
FULL_DISK = re.compile("disk is full|No space left on device")
TRIES = 100
T = TypeVar("T")
CLICKED, CLICKED_LATER, OTHERS = range(5), range(5, 9), range(10, 13)


class ReportedActions:
    """What somebody requested and was told was done, one line each, kept apart from the tested files.

    told: the errors by which a refusal is reported; anything else is a fault.
    """

    def __init__(self, path: Path, reported: tuple[type[Exception], ...] = (DeviceError,)) -> None:
        self._path, self._told = path, reported
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.facts: dict[str, str] = dict(line.split("\t", 1) for line in lines)

    def __contains__(self, name: str) -> bool:
        return name in self.facts

    def add(self, name: str, fact: str = "") -> None:
        """Write a line that survives a kill of the process."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{name}\t{fact}\n")
        self.facts[name] = fact

    def once(self, name: str, act: Callable[[], object]) -> None:
        """Do it unless it was done: record its begin before, and its end after."""
        if f"done {name}" not in self:
            self.add(f"begun {name}")
            self.until_room(act)
            self.add(f"done {name}")

    def until_room(self, act: Callable[[], T]) -> T:
        """Return the result of `act`, retried while it reports that the disk is full."""
        for _ in range(TRIES):
            try:
                return act()
            except self._told as refused:
                if not FULL_DISK.search(str(refused)):
                    raise
                sys.stdout.write(f"{refused}\n")
        raise AssertionError("there is room, and it still says that there is none")


class ReaderWork:
    """One reader's day; a step that wasn't confirmed is repeated."""

    kinds: tuple[PointKind, ...] = ("write",)

    def prepare(self, folder: Path) -> None:
        """Make an export of another device of this reader, and a device that has synced."""
        other = _device(folder, "other")
        other.sync()
        feed = other.reading.feed()
        for row in OTHERS:
            other.reading.open(feed.items[row].card.id, feed.feed_id)
        new_page(other)
        (folder / EXPORT).write_text(json.dumps(other.privacy.export()), encoding="utf-8")
        other.close()
        (folder / SENT).unlink()

    def run(self, folder: Path) -> None:
        """Do every step that hasn't been done."""
        said = ReportedActions(folder / SAID)
        device, once = said.until_room(lambda: _device(folder, "reader")), said.once
        once("sync", device.sync)
        if "page" not in said:
            feed = said.until_room(device.reading.feed)
            said.add("page", json.dumps([feed.feed_id, *(item.card.id for item in feed.items[:15])]))
        feed_id, *news = json.loads(said.facts["page"])
        for row in CLICKED:
            once(f"click {row}", lambda row=row: device.reading.open(news[row], feed_id))  # type: ignore[misc]
        once("like", lambda: _liked(device, news[0]))
        once("follow", lambda: device.interests.stance("section", "sport", "follow"))
        once("search", lambda: device.library.save_search("rowing"))
        once("report", lambda: new_page(device))
        once("copy", device.copy_step)
        once("delete", lambda: _deleted(device, news[1]))
        once("switch", lambda: device.privacy.change(epsilon_per_day_training=7.0))
        once("take over", lambda: device.moving.take_over((folder / EXPORT).read_bytes(), used=True, settings=False))
        for row in CLICKED_LATER:
            once(f"click {row}", lambda row=row: device.reading.open(news[row], feed_id))  # type: ignore[misc]
        once("mute", lambda: device.interests.mute(device.interests.clusters()[0].key, True))
        once("report again", lambda: new_page(device))
        once("copy again", device.copy_step)
        once("unsearch", lambda: [device.library.delete_search(each.id) for each in device._stores.searches.saved()])
        said.until_room(device.close)

    def check(self, folder: Path, *, killed: bool) -> None:
        """Raise AssertionError for what must not be."""
        said = ReportedActions(folder / SAID)
        path = _settings(folder, "reader").database
        if not path.exists():
            assert killed, "the work has made no database"
            assert not any(each.startswith("done") for each in said.facts)
            return
        searches = searches_of(path)
        for database in (path, searches):
            if database.exists():
                whole_database(database)
            copy = DatabaseCopy(database).path
            # A copy that is dropped is overwritten first: of zeros alone, it is none, and the next look makes another.
            if copy.exists() and copy.read_bytes().strip(b"\0"):
                whole_database(copy)
        with closing(sqlite3.connect(path)) as own:
            clicked = {row[0] for row in own.execute("SELECT news_id FROM click")}
            charges = own.execute("SELECT channel, payload_sha256, epsilon FROM charge").fetchall()
            liked = own.execute("SELECT count(*) FROM reaction WHERE kind = 'like'").fetchone()[0]
            switches = own.execute("SELECT value FROM preference WHERE name = 'privacy'").fetchone()
            report = own.execute("SELECT payload, clicks FROM report_memo").fetchone()
        news = json.loads(said.facts.get("page", "[0]"))[1:]
        for row in (*CLICKED, *CLICKED_LATER):
            if f"done click {row}" in said and (row != 1 or "begun delete" not in said):
                assert news[row] in clicked, f"click {row} was answered and is lost"
        assert "done delete" not in said or news[1] not in clicked, "a deleted click is there"
        assert "done like" not in said or liked == 1
        assert "done follow" not in said or _count(searches, "stance") == 1
        assert "done search" not in said or "begun unsearch" in said or _count(searches, "search") == 1
        assert "done unsearch" not in said or _count(searches, "search") == 0
        assert "done switch" not in said or json.loads(switches[0])["epsilon_per_day_training"] == 7.0
        if "done take over" in said:
            exported = json.loads((folder / EXPORT).read_text(encoding="utf-8"))["tables"]
            assert {row["news_id"] for row in exported["click"]} <= clicked, "a click that was taken over is lost"
            assert {row["payload_sha256"] for row in exported["charge"]} <= {row[1] for row in charges}
        _paid(folder, charges, report, said, killed=killed)


def _paid(
    folder: Path,
    charges: list[tuple[str, str, float]],
    report: tuple[bytes, int] | None,
    said: ReportedActions,
    *,
    killed: bool,
) -> None:
    """Check that all bytes but one cover report were charged, and every charged report was sent or is waiting.

    report: the one in use and the clicks behind it.
    """
    sent = set((folder / SENT).read_text(encoding="ascii").split()) if (folder / SENT).exists() else set()
    own = [payload for channel, payload, _ in charges if channel == "reports"]
    waiting = set() if report is None else {sha256(report[0]).hexdigest()}
    covers = waiting if report is not None and report[1] == NOBODYS_CLICKS and "begun take over" in said else set()
    assert sent <= set(own) | covers, "bytes left without a charge"
    moved: set[str] = set()
    if "begun take over" in said:
        exported = json.loads((folder / EXPORT).read_text(encoding="utf-8"))["tables"]["charge"]
        # What the other device may have spent since is charged whole, without bytes of its own (`moved_charges`).
        moved = {row["payload_sha256"] for row in exported} | {""}
    unsent = [payload for payload in own if payload not in sent | moved | waiting]
    assert not unsent, f"{len(unsent)} reports were charged whose bytes are gone"
    drawn = [payload for payload in own if payload not in moved]
    assert len(drawn) == len(set(drawn)), "a report was charged twice"
    if not killed:
        assert sent, "no report was sent"


def whole_database(path: Path) -> None:
    """Raise AssertionError if SQLite finds a fault in the file."""
    with closing(sqlite3.connect(path)) as database:
        try:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)], path.name
            assert database.execute("PRAGMA foreign_key_check").fetchall() == [], path.name
        except sqlite3.DatabaseError as broken:
            raise AssertionError(f"{path.name}: {broken}; begins with {path.read_bytes()[:16]!r}") from broken


def _count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _liked(device: Device, news_id: str) -> None:
    """React unless the reaction is there: repeating it would take it back."""
    if "like" not in device.library.reactions().get(news_id, frozenset()):
        device.library.react(news_id, "like")


def _deleted(device: Device, news_id: str) -> None:
    for entry in device.library.history().entries:
        if entry.news_id == news_id:
            device.library.delete_click(entry.click_id)


def _settings(folder: Path, profile: str) -> DeviceSettings:
    return DeviceSettings(profile=profile, data_dir=folder)


def _device(folder: Path, profile: str) -> Device:
    """Open the device; everything random comes from its own seed, since draws after a kill may differ."""
    backend = FakeBackend(key=Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
    return build_device(
        _settings(folder, profile),
        transport=httpx.MockTransport(lambda request: _received(folder / SENT, backend, request)),
        # Charges of one moment would be taken for one and the same: the other device was used an hour before.
        clock=StillClock(NOW - timedelta(hours=profile == "other")),
        noise=SeededNoise(5),
        chance=random.Random(5),
    )


def _received(sent: Path, backend: FakeBackend, request: httpx.Request) -> httpx.Response:
    if request.url.path == "/v1/recall":
        with sent.open("a", encoding="ascii") as file:
            file.write(f"{sha256(request.content).hexdigest()}\n")
    return backend.answer(request)
