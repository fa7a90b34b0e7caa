"""One batch of deliveries: what each means for the pool, and the rows to write for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from backend.db.chunks import among
from backend.db.tables import BodyRow, FeedRow, NewsRow, VectorRow
from backend.news.duplicates import Text, link, says_the_same, unlink
from backend.news.item import NewsItem

SOURCE_CHARS = 200
NOT_COMPARED = {"id", "published_at", "picture"}
"""Fields in which a delivered item may differ from the stored one without being a change. Many sources give no time,
and many a picture's address is signed anew at every read."""


@dataclass(slots=True)
class _Slot:
    """The row of one id: as the database has it (`old` is None for a new one), and as the batch leaves it."""

    number: int
    arrival: int
    digest: bytes
    text: Text
    old: Text | None = None
    moved: bool = False
    brought_by: str = ""
    taken_down: bool = False
    pictured: bool = False
    item: NewsItem | None = None


class DeliveryBatch:
    """Deliveries in order; the later of two with the same id wins. Lives within one write transaction.

    Formal guarantees: a feed changes no news that another followed feed or the operator has brought, unless their link
    leads to its own host or one below it. So a feed can't put other words to other people's links.
    """

    def __init__(self, connection: Connection, *, source: str, now: datetime, next_number: int) -> None:
        self._connection = connection
        self._source = source
        self._followed: frozenset[str] | None = None
        self._now = now
        self.next_number = next_number
        self.added = self.updated = self.unchanged = self.withheld = self.duplicates = 0
        self.changed: set[int] = set()
        self._pictured: dict[int, str] = {}

    def store(self, items: Sequence[NewsItem]) -> None:
        """Writes the items, and links what is new or has changed."""
        slots = self._slots({item.id for item in items})
        for item in items:
            self._deliver(slots, item)
        written = [slot for slot in slots.values() if slot.item is not None]
        if written:
            self._write(written)
        if self._pictured:  # a story's first picture came after it: no change of the pool
            rows = [{"at": number, "to": picture} for number, picture in self._pictured.items()]
            one = update(NewsRow).where(NewsRow.number == bindparam("at")).values(picture=bindparam("to"))
            self._connection.execute(one, rows)

    def _slots(self, ids: set[str]) -> dict[str, _Slot]:
        slots: dict[str, _Slot] = {}
        columns = (
            NewsRow.id,
            NewsRow.number,
            NewsRow.arrival,
            NewsRow.content_digest,
            NewsRow.title,
            NewsRow.abstract,
            NewsRow.taken_down_at,
            NewsRow.source,
            NewsRow.picture,
        )
        for row in self._connection.execute(select(*columns).where(among(self._connection, NewsRow.id, ids))):
            text = Text(row.title, row.abstract)
            slots[row.id] = _Slot(
                number=row.number,
                arrival=row.arrival,
                digest=row.content_digest,
                text=text,
                old=text,
                brought_by=row.source,
                taken_down=row.taken_down_at is not None,
                pictured=bool(row.picture),
            )
        return slots

    def _deliver(self, slots: dict[str, _Slot], item: NewsItem) -> None:
        digest, text = content_digest(item), Text(item.title, item.abstract)
        slot = slots.get(item.id)
        if slot is None:
            slots[item.id] = _Slot(self.next_number, self.next_number, digest, text, item=item)
            self.next_number += 1
            self.added += 1
        elif slot.taken_down:
            self.withheld += 1
        elif slot.digest == digest:
            self.unchanged += 1
            if item.picture and not slot.pictured and slot.item is None and slot.brought_by == self._source:
                self._pictured[slot.number] = item.picture
        elif slot.old is not None and not self._may_change(slot.brought_by, item.url):
            self.withheld += 1
        else:
            if slot.text != text and not says_the_same(slot.text, text):
                # An old piece of news that is made a copy of a newer one doesn't come before it.
                slot.arrival = self.next_number
                self.next_number += 1
            slot.moved |= slot.text != text
            slot.digest, slot.text, slot.item = digest, text, item
            self.updated += 1

    def _may_change(self, brought_by: str, link: str) -> bool:
        if self._source == brought_by or not _is_feed(self._source) or _leads_below(link, self._source):
            return True
        if self._followed is None:
            urls = self._connection.scalars(select(FeedRow.url))
            self._followed = frozenset(url[:SOURCE_CHARS] for url in urls)
        return _is_feed(brought_by) and brought_by not in self._followed

    def _write(self, written: list[_Slot]) -> None:
        new = [slot for slot in written if slot.old is None]
        changed = [slot for slot in written if slot.old is not None]
        moved = {slot.number: slot.old for slot in changed if slot.old and slot.moved}
        orphans = unlink(self._connection, moved)
        if new:
            self._connection.execute(
                insert(NewsRow),
                [self._values(slot) | {"number": slot.number, "added_at": self._now} for slot in new],
            )
        if changed:
            one = update(NewsRow).where(NewsRow.number == bindparam("at"))
            self._connection.execute(one, [self._values(slot) | {"at": slot.number} for slot in changed])
        self._replace_bodies(new, changed)
        retitled = [slot.number for slot in changed if slot.old and slot.item and slot.old.title != slot.item.title]
        self._connection.execute(delete(VectorRow).where(among(self._connection, VectorRow.news, retitled)))
        fresh = {slot.number: slot.text for slot in written if slot.old is None or slot.number in moved}
        linked = link(self._connection, fresh, orphans)
        self.duplicates = sum(linked.get(number) is not None for number in fresh)
        self.changed = {*linked, *(slot.number for slot in written)}

    def _replace_bodies(self, new: list[_Slot], changed: list[_Slot]) -> None:
        old = among(self._connection, BodyRow.news, [slot.number for slot in changed])
        self._connection.execute(delete(BodyRow).where(old))
        bodies = [
            {"news": slot.number, "body": slot.item.body} for slot in (*new, *changed) if slot.item and slot.item.body
        ]
        if bodies:
            self._connection.execute(insert(BodyRow), bodies)

    def _values(self, slot: _Slot) -> dict[str, Any]:
        assert slot.item is not None
        values = slot.item.model_dump(exclude={"body"})
        written = {"arrival": slot.arrival, "content_digest": slot.digest, "updated_at": self._now}
        return values | written | {"source": self._source, "sorted_by": None}


def content_digest(item: NewsItem) -> bytes:
    """16 bytes that change with anything a delivery says but its time."""
    return blake2b(item.model_dump_json(exclude=NOT_COMPARED).encode(), digest_size=16).digest()


def _is_feed(source: str) -> bool:
    """Whether a source is a feed by its address; files and the newsroom are the operator's own."""
    return "://" in source


def _leads_below(link: str, feed: str) -> bool:
    """Whether a link leads to the feed's host or to one below it."""
    to, by = ((urlsplit(one).hostname or "").removeprefix("www.") for one in (link, feed))
    return bool(by) and (to == by or to.endswith(f".{by}"))
