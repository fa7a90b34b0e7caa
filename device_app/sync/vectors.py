"""Pulling news vectors anew for a new encoder: whole shards, so that no request tells of a click."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from device_app.errors import AnswerMalformed, NoRelease
from device_app.prose import Prose
from device_app.store.default_list import PulledShards
from device_app.store.news import NewsStore
from device_app.store.releases import InstalledReleases
from device_app.sync.releases import checked_blob
from device_app.uplink.answers import read_codes
from device_app.uplink.http import HttpClient
from device_app.uplink.server import parsed
from device_app.wire.ids import NewsId, ReleaseId, short_release
from device_app.wire.releases import BLOB_LIMIT_BYTES, ShardList, ShardRef

REQUESTS = Prose("device_app.uplink", "requests.toml")

_IDS = TypeAdapter(tuple[NewsId, ...])
IDS_LIMIT_BYTES = 64 * 1024 * 1024


class VectorSync:
    """Gives the news of the store their vectors by the encoder of the release in use.

    Needed only when the encoder changes: all news arrive with vectors of their day's encoder. Which shards are asked
    for depends on the release and on which of them were pulled before, never on what is in the store: every device
    that meets a new encoder pulls all shards, and throws away what it has no use for.
    """

    def __init__(
        self,
        client: HttpClient,
        news: NewsStore,
        pulled: PulledShards,
        releases: InstalledReleases,
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._news = news
        self._pulled = pulled
        self._releases = releases
        self._clock = clock

    def refresh(self) -> int:
        """Pull every shard that is missing under the encoder in use; returns how many. A cut-off pull goes on later.

        Raises NoRelease, network errors as in HttpClient, AnswerMalformed, ReleaseRefused for a shard of another hash.
        """
        release = self._releases.current()
        if release is None:
            raise NoRelease
        encoder = release.manifest.encoder
        if self._pulled.encoder() == encoder:
            return 0
        if self._pulled.encoder() is None:
            self._pulled.set_complete(encoder, self._clock())
            return 0
        listed = listed_shards(self._client, release.manifest.release, encoder)
        here = self._pulled.pulled(encoder)
        wanted = [shard for shard in listed.shards if here.get(shard.name) != shard.blob.sha256]
        for shard in wanted:
            ids, vectors = pull_shard(self._client, listed, shard, release.manifest.dimensions)
            self._news.put_vectors(ids, vectors, listed.encoder, of_clicked=True)
            self._pulled.add(listed.encoder, shard.name, shard.blob.sha256)
        self._pulled.set_complete(encoder, self._clock())
        self._news.prune_vectors({encoder})
        return len(wanted)


def listed_shards(client: HttpClient, release: ReleaseId, encoder: str) -> ShardList:
    """All shards of a release. Raises network errors as in HttpClient, and AnswerMalformed."""
    answer = client.get(
        f"/v1/releases/{short_release(release)}/vectors",
        words=REQUESTS("shards"),
        purpose="sync",
    )
    listed = parsed(ShardList, answer, "shard list")
    if listed.encoder != encoder or listed.release != release:
        raise AnswerMalformed("shard list", f"it is for {listed.release} and encoder {listed.encoder[:12]}")
    return listed


def pull_shard(
    client: HttpClient, listed: ShardList, shard: ShardRef, dimensions: int
) -> tuple[tuple[NewsId, ...], NDArray[np.float32]]:
    """One shard's news ids and their vectors [n, D], checked. Raises as HttpClient, AnswerMalformed, ReleaseRefused."""
    path = f"/v1/releases/{short_release(listed.release)}/vectors/{shard.name}"
    what = f"shard {shard.name}"
    blob = client.get(
        path,
        words=REQUESTS("shard", shard=shard.name),
        purpose="sync",
        accept="application/octet-stream",
        limit_bytes=max(1, min(shard.blob.size_bytes, BLOB_LIMIT_BYTES)),
    )
    content = checked_blob(blob.body, shard.blob, listed.release)
    vectors = read_codes(content, shard.count, dimensions, what, BLOB_LIMIT_BYTES)
    ids = client.get(
        f"{path}/ids",
        words=REQUESTS("shard_ids", shard=shard.name),
        purpose="sync",
        limit_bytes=IDS_LIMIT_BYTES,
    )
    try:
        rows = _IDS.validate_json(ids.body)
    except ValidationError as broken:
        raise AnswerMalformed(what, "its ids are not a list of news ids") from broken
    if len(rows) != shard.count:
        raise AnswerMalformed(what, f"{len(rows)} ids for {shard.count} vectors")
    return rows, vectors


def pull_all(
    client: HttpClient, release: ReleaseId, encoder: str, dimensions: int
) -> Iterator[tuple[tuple[NewsId, ...], NDArray[np.float32]]]:
    """Every shard, one after another: the whole pool's vectors."""
    listed = listed_shards(client, release, encoder)
    for shard in listed.shards:
        yield pull_shard(client, listed, shard, dimensions)
