"""Switch the device to a new release and its news encoder.

The release is checked, its vectors are pulled, and it is put in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from device_app.errors import AnswerMalformed, NoRelease
from device_app.store.default_list import PulledShards
from device_app.store.news import NewsStore
from device_app.store.releases import InstalledReleases
from device_app.sync.release_sync import ReleaseSync, checked_blob
from device_app.uplink.backend_client import parsed, read_codes
from device_app.uplink.http import HttpClient
from protocol.ids import NewsId, ReleaseId, short_release
from protocol.releases import BLOB_LIMIT_BYTES, ShardList, ShardRef
from protocol.text_catalogue import TextCatalogue


class EncoderTakeover:
    """Moves from the current release to a newer one, and to another vector space if the encoder differs.

    Args:
        swap: makes the newest installed release the current one, whose encoder is then used for feeds and reports.
    """

    def __init__(self, releases: ReleaseSync, vectors: VectorSync, swap: Callable[[], None]) -> None:
        self._releases, self._vectors, self._swap = releases, vectors, swap

    def step(self) -> bool:
        """Switch to the newest release if it differs; True if so.

        Raises what ReleaseSync and VectorSync raise.
        """
        installed = self._releases.refresh()
        try:
            # First the vectors: the feed would else have none of the reader's clicks. Where the pull is cut off, the
            # release is used all the same, with the vectors that are here, and the next step goes on with the rest.
            self._vectors.refresh()
        finally:
            if installed:
                self._swap()
        return installed


class VectorSync:
    """Pulls the stored articles' vectors by the encoder of the release in use.

    This is needed only when the encoder changes: new articles come with vectors by the current encoder. Which shards
    are requested depends on the release and on which of them were pulled before, never on what is in the store: every
    device that gets a new encoder downloads all shards, and discards what it doesn't need.
    """

    def __init__(
        self,
        client: HttpClient,
        news: NewsStore,
        pulled: PulledShards,
        releases: InstalledReleases,
        clock: Callable[[], datetime],
        *,
        at_first: bool = False,
    ) -> None:
        """at_first: pull under the first release too, for a device that shows stories before there is one."""
        self._client, self._news, self._pulled = client, news, pulled
        self._releases, self._clock, self._at_first = releases, clock, at_first

    def refresh(self) -> int:
        """Pull every missing shard of the encoder in use; returns how many.

        An interrupted pull resumes later.

        Raises NoRelease, network errors as in HttpClient, AnswerMalformed, ReleaseRefused for a shard with another
        hash.
        """
        release = self._releases.current()
        if release is None:
            raise NoRelease
        encoder = release.manifest.encoder
        if self._pulled.encoder() == encoder:
            return 0
        if self._pulled.encoder() is None and not self._at_first:
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


REQUESTS = TextCatalogue("device_app.uplink", "requests.toml")

_IDS = TypeAdapter(tuple[NewsId, ...])
IDS_LIMIT_BYTES = 64 * 1024 * 1024


def listed_shards(client: HttpClient, release: ReleaseId, encoder: str) -> ShardList:
    """Return all shards of a release.

    Raises network errors as in HttpClient, and AnswerMalformed.
    """
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
    """One shard's article ids and their vectors [n, D], checked.

    Raises HttpClient's network errors, AnswerMalformed and ReleaseRefused.
    """
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
    """Pull every shard, one after another: the vectors of the whole pool."""
    listed = listed_shards(client, release, encoder)
    for shard in listed.shards:
        yield pull_shard(client, listed, shard, dimensions)
