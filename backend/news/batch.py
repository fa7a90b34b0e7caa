"""Applies one batch of deliveries to the pool: what each article changes, and the rows to write."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from backend.db.statements import among
from backend.db.tables import BodyRow, FeedRow, NewsRow, TextPictureRow, VectorRow
from backend.news.duplicates import Text, link, says_the_same, unlink
from backend.news.item import NewsItem
from backend.news.newest import mark_newest

NOT_COMPARED = {"id", "published_at", "picture", "text_pictures"}
"""Fields in which a delivered article may differ from the stored one without counting as a change. Many sources give no
time, and many sign a picture's address again at every read."""
_SOURCES = re.compile(r' src="[^"]*"')
"""Addresses of pictures in a body, which aren't compared either."""


@dataclass(slots=True)
class _Slot:
    """The row of one id: as stored in the database (`old`, None for a new one), and as the batch leaves it."""

    number: int
    arrival: int
    digest: bytes
    text: Text
    old: Text | None = None
    moved: bool = False
    brought_by: str = ""
    published_at: datetime | None = None
    dated: bool = True
    taken_down: bool = False
    pictured: bool = False
    item: NewsItem | None = None


class DeliveryBatch:
    """Deliveries in order; the later of two with the same id wins.

    Used within one write transaction.

    Formal guarantees: a feed changes no article that another followed feed or the operator has delivered, unless the
    article's link leads to the feed's own host or a subdomain of it. So a feed can't attach its own text to other
    publishers' links.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        source: str,
        now: datetime,
        next_number: int,
        read_before: bool = False,
        keep_newest: int = 0,
    ) -> None:
        """read_before: the source was read before, so a new article without a date is dated by its arrival.

        keep_newest: how many articles of a feed are kept at any age.
        """
        self._connection = connection
        self._read_before, self._keep_newest = read_before, keep_newest
        self._source = source
        self._followed: dict[str, str] | None = None  # addresses of feeds by key
        self._now = now
        self.next_number = next_number
        self.added = self.updated = self.unchanged = self.withheld = self.duplicates = 0
        self.changed: set[int] = set()
        self._pictured: dict[int, str] = {}

    def store(self, items: Sequence[NewsItem]) -> None:
        """Write the articles, and link those that are new or have changed."""
        slots = self._slots({item.id for item in items})
        for item in items:
            self._deliver(slots, item)
        written = [slot for slot in slots.values() if slot.item is not None]
        if written:
            self._write(written)
        if self._pictured:  # an article's first picture arrived later: no change of the pool
            rows = [{"at": number, "to": picture} for number, picture in self._pictured.items()]
            one = update(NewsRow).where(NewsRow.number == bindparam("at")).values(picture=bindparam("to"))
            self._connection.execute(one, rows)
        self.changed |= mark_newest(self._connection, self._source, self._keep_newest)

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
            NewsRow.url,
            NewsRow.picture,
            NewsRow.published_at,
            NewsRow.dated,
        )
        for row in self._connection.execute(select(*columns).where(among(self._connection, NewsRow.id, ids))):
            text = Text(row.title, row.abstract, row.url, row.source)
            slots[row.id] = _Slot(
                number=row.number,
                arrival=row.arrival,
                digest=row.content_digest,
                text=text,
                old=text,
                brought_by=row.source,
                taken_down=row.taken_down_at is not None,
                pictured=bool(row.picture),
                published_at=row.published_at,
                dated=row.dated,
            )
        return slots

    def _deliver(self, slots: dict[str, _Slot], item: NewsItem) -> None:
        digest, text = content_digest(item), Text(item.title, item.abstract, item.url, self._source)
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
            if slot.text.words != text.words and not says_the_same(slot.text, text):
                # An old article that becomes a copy of a newer one doesn't come before it.
                slot.arrival = self.next_number
                self.next_number += 1
            slot.moved |= slot.text != text
            slot.digest, slot.text, slot.item = digest, text, item
            self.updated += 1

    def _may_change(self, brought_by: str, link: str) -> bool:
        if self._source == brought_by or not _has_address(self._source):
            return True
        if self._followed is None:
            rows = self._connection.execute(select(FeedRow.key, FeedRow.url).where(FeedRow.removed_at.is_(None)))
            self._followed = {row.key: row.url for row in rows}
        if _leads_below(link, self._followed.get(self._source, self._source)):
            return True
        return _has_address(brought_by) and brought_by not in self._followed

    def _write(self, written: list[_Slot]) -> None:
        new = [slot for slot in written if slot.old is None]
        changed = [slot for slot in written if slot.old is not None]
        moved = {slot.number: slot.old for slot in changed if slot.old and slot.moved}
        unlinked = unlink(self._connection, moved)
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
        linked = link(self._connection, fresh, unlinked.orphans)
        self.duplicates = sum(linked.links.get(number) is not None for number in fresh)
        self.changed = {*linked.touched, *unlinked.originals, *(slot.number for slot in written)}

    def _replace_bodies(self, new: list[_Slot], changed: list[_Slot]) -> None:
        old = among(self._connection, BodyRow.news, [slot.number for slot in changed])
        self._connection.execute(delete(BodyRow).where(old))
        bodies = [
            {"news": slot.number, "body": slot.item.body} for slot in (*new, *changed) if slot.item and slot.item.body
        ]
        if bodies:
            self._connection.execute(insert(BodyRow), bodies)
        old = among(self._connection, TextPictureRow.news, [slot.number for slot in changed])
        self._connection.execute(delete(TextPictureRow).where(old))
        pictures = [
            {"news": slot.number, "place": place, "url": url}
            for slot in (*new, *changed)
            if slot.item
            for place, url in enumerate(slot.item.text_pictures, start=1)
        ]
        if pictures:
            self._connection.execute(insert(TextPictureRow), pictures)

    def _values(self, slot: _Slot) -> dict[str, Any]:
        assert slot.item is not None
        values = slot.item.model_dump(exclude={"body", "text_pictures"})
        if not slot.item.dated:  # editing an article doesn't change its date
            known = {"published_at": slot.published_at, "dated": slot.dated}
            values |= {"dated": self._read_before} if slot.published_at is None else known
        written = {"arrival": slot.arrival, "content_digest": slot.digest, "updated_at": self._now}
        return values | written | {"source": self._source, "sorted_by": None}


def content_digest(item: NewsItem) -> bytes:
    """16 bytes that change with everything in a delivery except its time."""
    compared = item.model_dump_json(exclude=NOT_COMPARED | {"body"}) + _SOURCES.sub("", item.body)
    return blake2b(compared.encode(), digest_size=16).digest()


def _has_address(source: str) -> bool:
    """Return whether a source is a feed with a URL; files and the newsroom belong to the operator."""
    return "://" in source


def _leads_below(link: str, feed: str) -> bool:
    """Whether a link leads to the feed's host or to a subdomain of it."""
    to, by = ((urlsplit(one).hostname or "").removeprefix("www.") for one in (link, feed))
    return bool(by) and (to == by or to.endswith(f".{by}"))
