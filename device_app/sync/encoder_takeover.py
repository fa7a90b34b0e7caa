"""Switches the device to a new release and its news encoder: check it, pull its vectors, then put it in use."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from device_app.errors import NoRelease
from device_app.store.default_list import PulledShards
from device_app.store.news import NewsStore
from device_app.store.releases import InstalledReleases
from device_app.sync.release_sync import ReleaseSync
from device_app.sync.vectors import listed_shards, pull_shard
from device_app.uplink.http import HttpClient


class EncoderTakeover:
    """Moves from the release in use to a newer one; with another encoder, also to another space of vectors.

    Args:
        swap: puts the newest installed release in use: from then on feeds and reports are made by its encoder.
    """

    def __init__(self, releases: ReleaseSync, vectors: VectorSync, swap: Callable[[], None]) -> None:
        self._releases, self._vectors, self._swap = releases, vectors, swap

    def step(self) -> bool:
        """Switch to the newest release if it differs; True if so. Raises what ReleaseSync and VectorSync raise."""
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
    device that meets a new encoder pulls all shards, and discards what it doesn't need.
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
        self._at_first = at_first
        self._client = client
        self._news = news
        self._pulled = pulled
        self._releases = releases
        self._clock = clock

    def refresh(self) -> int:
        """Pull every missing shard of the encoder in use; returns how many. An interrupted pull resumes later.

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
