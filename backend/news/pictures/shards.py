"""Packs the pictures that devices download into shards and lists them; every device gets the same.

One process packs them. The list is a row of the database and shards are stored by their hash, so all processes serve
the same. A shard holds consecutive pictures in the order in which they were made, so a new picture changes only the
last shard, and a removed one only its own.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import Engine, delete, insert, select

from backend.db.engine import reading, writing
from backend.db.tables import PictureListRow
from backend.news.pictures.store import PicturedStory
from backend.storage.object_store import ObjectStore
from protocol.pictures import Pictured, PictureList, PictureShard, pack_pictures
from protocol.releases import BlobRef

SHARDS_FOLDER, PICTURES_FOLDER = "picture-shards", "pictures"
RUN = 32
"""Pictures per shard: 250 KB of card pictures or 1 MB of those in texts. A device downloads a whole shard again if one
of them changes."""
READ_EVERY_SEC = 2.0
"""Shortest interval between two reads of the list by one process, however many devices request it."""
EMPTY = PictureList(shards=()).model_dump_json()


class _Key(NamedTuple):
    news_id: str
    of_text: int
    digest: str


def _key(story: PicturedStory) -> _Key:
    return _Key(story.id, story.of_text, story.sha256 or "")


class PictureShards:
    """Cuts and serves shards. Safe for several threads."""

    def __init__(self, engine: Engine, storage: ObjectStore, clock: Callable[[], datetime]) -> None:
        self._engine, self._clock = engine, clock
        self._pictures, self._shards = storage.under(PICTURES_FOLDER), storage.under(SHARDS_FOLDER)
        self._cut: dict[tuple[_Key, ...], PictureShard] = {}
        self._read: tuple[float, bytes] | None = None
        self._lock = threading.Lock()

    def listing(self) -> tuple[bytes, str]:
        """A PictureList as JSON bytes, and its ETag."""
        with self._lock:
            if self._read is None or time.monotonic() - self._read[0] > READ_EVERY_SEC:
                self._read = (time.monotonic(), self._stored()[0].encode())
            content = self._read[1]
        return content, sha256(content).hexdigest()

    def shard(self, digest: str) -> bytes | None:
        """A shard by its hash, if the storage still has it. Raises StorageUnavailable."""
        try:
            content = self._shards.read(digest)
        except FileNotFoundError:
            return None
        return content if sha256(content).hexdigest() == digest else None

    def listed_at(self) -> datetime | None:
        """When the list was last updated; None before the first."""
        return self._stored()[1]

    def keep_picture(self, content: bytes) -> str:
        """Store a picture and return its hash."""
        digest = sha256(content).hexdigest()
        self._pictures.put(digest, content)
        return digest

    def publish(self, stories: Sequence[PicturedStory]) -> list[PicturedStory]:
        """List exactly the pictures of these stories, all of them MADE, and return those missing from the storage.

        Pictures can be missing if a database was restored without its storage.
        """
        runs: dict[int, list[PicturedStory]] = {}
        for story in sorted(stories, key=lambda story: story.place or 0):
            runs.setdefault((story.place or 0) // RUN, []).append(story)
        shards: dict[tuple[_Key, ...], PictureShard] = {}
        lost: list[PicturedStory] = []
        stored = {each.key for each in self._shards.list()}  # another process may have swept shards that were cut here
        cut = {key: shard for key, shard in self._cut.items() if shard.pictures.sha256 in stored}
        for _, run in sorted(runs.items(), reverse=True):  # the newest are downloaded first
            key = tuple(map(_key, run))
            if key not in cut:
                lost += (gone := [story for story in run if not self._has(story)])
                key = tuple(_key(story) for story in run if story not in gone)
            if key:
                shards[key] = cut.get(key) or self._pack(key)
        content = PictureList(shards=tuple(shards.values())).model_dump_json()
        self._cut = shards
        if content != self._stored()[0]:
            with writing(self._engine) as connection:
                connection.execute(delete(PictureListRow))
                connection.execute(insert(PictureListRow), {"id": 1, "content": content, "made_at": self._clock()})
            with self._lock:
                self._read = None
        return lost

    def _has(self, story: PicturedStory) -> bool:
        try:
            content = self._pictures.read(story.sha256 or "")
        except FileNotFoundError:
            return False
        return sha256(content).hexdigest() == story.sha256

    def sweep(self, kept: set[str], older_than_sec: float) -> int:
        """Remove old pictures that are not in `kept` and old shards that aren't listed; return how many."""
        listed = {shard["pictures"]["sha256"] for shard in json.loads(self._stored()[0])["shards"]}
        swept, limit = 0, time.time() - older_than_sec
        for objects, wanted in ((self._pictures, kept), (self._shards, listed)):
            for each in list(objects.list()):
                if each.key not in wanted and each.modified <= limit:
                    objects.delete(each.key)
                    swept += 1
        return swept

    def _pack(self, key: tuple[_Key, ...]) -> PictureShard:
        blob = pack_pictures([Pictured(one.news_id, one.of_text, self._pictures.read(one.digest)) for one in key])
        digest = sha256(blob).hexdigest()
        self._shards.put(digest, blob)
        return PictureShard(count=len(key), pictures=BlobRef(sha256=digest, size_bytes=len(blob)))

    def _stored(self) -> tuple[str, datetime | None]:
        with reading(self._engine) as connection:
            row = connection.execute(select(PictureListRow.content, PictureListRow.made_at)).one_or_none()
        return (EMPTY, None) if row is None else (row.content, row.made_at)
