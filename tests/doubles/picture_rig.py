"""A pool of stories with pictures, a worker over it, and picture servers that answer as a test configures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import httpx
from sqlalchemy import Engine

from backend.news.followed_feeds import FollowedFeeds
from backend.news.item import NewsItem
from backend.news.pictures.shards import PictureShards
from backend.news.pictures.worker import PictureRules, PictureWorker
from backend.news.pool import NewsPool
from backend.storage.object_store import LocalFolder
from protocol.pictures import PictureList, unpack_pictures
from tests.doubles.clock import StillClock


def picture_response(content: bytes, content_type: str = "image/jpeg") -> httpx.Response:
    """An answer whose bytes arrive as from a socket."""
    return httpx.Response(200, headers={"content-type": content_type}, stream=httpx.ByteStream(content))


FEED, OTHER = "https://courant.example/rss", "https://gazette.example/rss"
EVERY = timedelta(minutes=10)


class Rig:
    """A pool of stories with pictures, a worker over it, and the requests that the picture servers got."""

    def __init__(self, engine: Engine, folder: Path, *, served_bytes: int = 4_000_000) -> None:
        self.clock, self.folder = StillClock(), folder
        self.pool, self.feeds = NewsPool(engine, clock=self.clock, keep_newest=0), FollowedFeeds(engine)
        self.asked: list[str] = []
        self.answer: Callable[[str], httpx.Response] = lambda _: picture_response(b"bytes")
        self.listed: Sequence[str] = ()

        def answered(request: httpx.Request) -> httpx.Response:
            self.asked.append(str(request.url))
            return self.answer(str(request.url))

        self.shards = PictureShards(engine, LocalFolder(folder), self.clock)
        rules = PictureRules(served_bytes, EVERY, timedelta(days=30))
        self.worker = PictureWorker(
            engine, self.shards, rules, lambda: self.listed, clock=self.clock, transport=httpx.MockTransport(answered)
        )

    def add(self, *names: str, feed: str = FEED, **fields: object) -> None:
        published_at = self.clock()
        self.pool.add(
            [
                NewsItem.model_validate(
                    {"id": name, "title": f"{name} {' '.join(sha256(name.encode()).hexdigest())}", "section": "world",
                     "topic": "world", "published_at": published_at, "picture": f"https://img.example/{name}.jpg"}
                    | fields
                )
                for name in names
            ],
            source=feed,
        )  # fmt: skip

    def served(self) -> dict[str, bytes]:
        """Return what a device has after it fetched the list and every shard."""
        content, etag = self.shards.listing()
        assert etag == sha256(content).hexdigest()
        found: dict[str, bytes] = {}
        for shard in PictureList.model_validate_json(content).shards:
            blob = self.shards.shard(shard.pictures.sha256)
            assert blob is not None
            for news_id, place, picture in unpack_pictures(blob, shard.count):
                found[f"{news_id} {place}" if place else news_id] = picture
        return found

    def stored(self) -> set[str]:
        return {file.name for file in (self.folder / "pictures").iterdir()}
