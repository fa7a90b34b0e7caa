"""Publishers' pictures, the same on every device, and whether the reader wants to see them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from device_app.store.database import Database
from device_app.store.preferences import PICTURES_HIDDEN, Preferences
from device_app.store.rows import RowCache, if_readable, to_us
from protocol.ids import NewsId
from protocol.pictures import Pictured, PictureList, PictureShard

MARK_CHARS = 12
"""Number of characters of a shard's hash in a picture's address; if they change, the browser requests the picture
again.
"""


@dataclass(frozen=True)
class StoredPictures:
    """The stored list of pictures.

    text is the exact list, from which its ETag is computed; shards are its hashes. marks are by id and place.
    """

    text: bytes
    shards: tuple[str, ...]
    marks: Mapping[tuple[NewsId, int], str]


class PictureStore:
    """Stores shards by the hash of their blob; a list is used once all of its shards are stored."""

    def __init__(self, database: Database, preferences: Preferences) -> None:
        self._database, self._preferences = database, preferences
        self._current = RowCache(database, self._read)
        self._hidden = RowCache(database, lambda: bool(preferences.get(PICTURES_HIDDEN)))

    def shown(self) -> bool:
        """Return whether the reader wants to see pictures; True by default."""
        return not self._hidden.get()

    def show(self, wanted: bool) -> None:
        """Switch pictures on or off; if off, none are stored or requested."""
        with self._database.transaction():
            self._preferences.set(PICTURES_HIDDEN, None if wanted else True)
            self._hidden.forget()
            if not wanted:
                self.drop()

    def current(self) -> StoredPictures | None:
        """Return the list in use."""
        return self._current.get()

    def has(self, shard: PictureShard) -> bool:
        """Return whether all pictures of a shard are stored."""
        count = self._database.row("SELECT count(*) FROM picture WHERE shard = ?", (shard.pictures.sha256,))
        return count is not None and count[0] == shard.count

    def put(self, shard: PictureShard, pictures: Sequence[Pictured]) -> None:
        """Store a shard's checked pictures in one step; none if the reader no longer wants any."""
        sha256 = shard.pictures.sha256
        with self._database.quick_transaction():
            if not self.shown():
                return
            self._database.write("DELETE FROM picture WHERE shard = ?", (sha256,))
            for place, one in enumerate(pictures):
                self._database.write(
                    "INSERT INTO picture (shard, place, news_id, of_text, picture) VALUES (?, ?, ?, ?, ?)",
                    (sha256, place, one.news_id, one.place, one.content),
                )

    def make_room(self, listing: PictureList) -> None:
        """Delete pictures that neither this list nor the current one names.

        They belong to lists that were never completed. So the pictures of at most two lists are stored, twice
        PICTURES_LIMIT_BYTES.
        """
        with self._database.quick_transaction():
            kept = self._current.get()
            self._keep_only((*_hashes(listing), *(kept.shards if kept else ())))

    def use(self, listing: PictureList, text: bytes, at: datetime) -> None:
        """Make this list the current one in one step, and delete pictures that it doesn't name.

        Does nothing if the list is incomplete on this device or the reader wants no pictures: both can happen while it
        is downloaded.
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
        with self._database.transaction():
            self._database.write("DELETE FROM picture_list")
            self._database.write("DELETE FROM picture")
            self._current.forget()

    def path(self, news_id: NewsId, of_text: int = 0) -> str:
        """Return a picture's address on this device.

        '' if there is none on this device, or the reader wants no pictures. of_text: 0 for the card's picture, else the
        picture's number in the text.
        """
        kept = self._current.get() if self.shown() else None
        mark = kept.marks.get((news_id, of_text)) if kept else None
        return f"/pictures/{quote(news_id)}.webp?of={mark}{f'&n={of_text}' if of_text else ''}" if mark else ""

    def content(self, news_id: NewsId, of_text: int = 0) -> bytes | None:
        """Return an article's picture, from the list in use."""
        kept = self._current.get()
        mark = kept.marks.get((news_id, of_text)) if kept else None
        if mark is None:
            return None
        row = self._database.row(
            "SELECT picture FROM picture WHERE news_id = ? AND of_text = ? AND substr(shard, 1, ?) = ?",
            (news_id, of_text, MARK_CHARS, mark),
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
        marks: dict[tuple[str, int], str] = {}
        for news_id, of_text, shard in self._database.rows(
            """SELECT news_id, of_text, shard FROM json_each(?) AS named JOIN picture ON shard = named.value
               ORDER BY named.key""",
            (json.dumps(shards),),
        ):
            marks.setdefault((news_id, of_text), shard[:MARK_CHARS])
        return StoredPictures(row[0], shards, marks)


def _hashes(listing: PictureList) -> tuple[str, ...]:
    return tuple(shard.pictures.sha256 for shard in listing.shards)
