"""Publishers' pictures on this device, which every device has alike, and whether its reader wants to see them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from device_app.store.database import Database
from device_app.store.preferences import PICTURES_HIDDEN, Preferences
from device_app.store.rows import RowCache, if_readable, to_us
from device_app.wire.ids import NewsId
from device_app.wire.pictures import PictureList, PictureShard

MARK_CHARS = 12
"""Of a shard's hash, in a picture's address, so that a browser asks again for one that may have changed."""


@dataclass(frozen=True)
class StoredPictures:
    """text is the list to the byte, from which its ETag is computed; shards are its hashes; marks are by story."""

    text: bytes
    shards: tuple[str, ...]
    marks: Mapping[NewsId, str]


class PictureStore:
    """Shards by the hash of their blob; the list is in use once all of them are here."""

    def __init__(self, database: Database, preferences: Preferences) -> None:
        self._database, self._preferences = database, preferences
        self._current = RowCache(database, self._read)
        self._hidden = RowCache(database, lambda: bool(preferences.get(PICTURES_HIDDEN)))

    def shown(self) -> bool:
        """Whether the reader wants to see them, as is usual."""
        return not self._hidden.get()

    def show(self, wanted: bool) -> None:
        """See them from now on, or no longer: then none are kept, and none are asked for."""
        with self._database.transaction():
            self._preferences.set(PICTURES_HIDDEN, None if wanted else True)
            self._hidden.forget()
            if not wanted:
                self.drop()

    def current(self) -> StoredPictures | None:
        """The list in use."""
        return self._current.get()

    def has(self, shard: PictureShard) -> bool:
        """Whether all its pictures are here."""
        count = self._database.row("SELECT count(*) FROM picture WHERE shard = ?", (shard.pictures.sha256,))
        return count is not None and count[0] == shard.count

    def put(self, shard: PictureShard, pictures: Sequence[tuple[NewsId, bytes]]) -> None:
        """Keep a shard's pictures, checked before, in one step; none where the reader wants none any more."""
        sha256 = shard.pictures.sha256
        with self._database.quick_transaction():
            if not self.shown():
                return
            self._database.write("DELETE FROM picture WHERE shard = ?", (sha256,))
            for place, (news_id, content) in enumerate(pictures):
                self._database.write(
                    "INSERT INTO picture (shard, place, news_id, picture) VALUES (?, ?, ?, ?)",
                    (sha256, place, news_id, content),
                )

    def make_room(self, listing: PictureList) -> None:
        """Let go of what neither the list in use nor this one names, as of lists that were never here whole: so there
        are never more than two lists' pictures, twice PICTURES_LIMIT_BYTES."""
        with self._database.quick_transaction():
            kept = self._current.get()
            self._keep_only((*_hashes(listing), *(kept.shards if kept else ())))

    def use(self, listing: PictureList, text: bytes, at: datetime) -> None:
        """Put a list in use, in one step, and let go of the pictures that it doesn't name.

        Nothing is done where it isn't here whole, or the reader wants none: both can come about while it is pulled.
        """
        with self._database.quick_transaction():
            if not self.shown() or not all(map(self.has, listing.shards)):
                return
            self._database.write(
                "INSERT OR REPLACE INTO picture_list (only, listing, kept_at) VALUES (1, ?, ?)", (text, to_us(at))
            )
            self._keep_only(_hashes(listing))
            self._current.forget()

    def _keep_only(self, shards: tuple[str, ...]) -> None:
        self._database.write(
            "DELETE FROM picture WHERE shard NOT IN (SELECT value FROM json_each(?))", (json.dumps(shards),)
        )

    def drop(self) -> None:
        """Let go of all of them."""
        with self._database.transaction():
            self._database.write("DELETE FROM picture_list")
            self._database.write("DELETE FROM picture")
            self._current.forget()

    def path(self, news_id: NewsId) -> str:
        """A picture's address on this device; '' where the story has none here, or none is wanted."""
        kept = self._current.get() if self.shown() else None
        mark = kept.marks.get(news_id) if kept else None
        return f"/pictures/{quote(news_id)}.webp?of={mark}" if mark else ""

    def content(self, news_id: NewsId) -> bytes | None:
        """A story's picture, of the list in use."""
        kept = self._current.get()
        if kept is None or news_id not in kept.marks:
            return None
        row = self._database.row(
            "SELECT picture FROM picture WHERE news_id = ? AND substr(shard, 1, ?) = ?",
            (news_id, MARK_CHARS, kept.marks[news_id]),
        )
        return None if row is None else row[0]

    def _read(self) -> StoredPictures | None:
        row = self._database.row("SELECT listing FROM picture_list")
        if row is None:
            return None
        listing = if_readable("the list of pictures", lambda: PictureList.model_validate_json(row[0]))
        if listing is None:
            return None
        shards = _hashes(listing)
        marks: dict[str, str] = {}
        for news_id, shard in self._database.rows(
            "SELECT news_id, shard FROM json_each(?) AS named JOIN picture ON shard = named.value ORDER BY named.key",
            (json.dumps(shards),),
        ):
            marks.setdefault(news_id, shard[:MARK_CHARS])
        return StoredPictures(row[0], shards, marks)


def _hashes(listing: PictureList) -> tuple[str, ...]:
    return tuple(shard.pictures.sha256 for shard in listing.shards)
