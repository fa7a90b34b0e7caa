"""Pulls the pool's codes by whole publishing days, so that no request reveals a click."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from device_app.errors import AnswerMalformed, BackendRefused, NoRelease
from device_app.store.pool_codes import PoolStore
from device_app.store.releases import InstalledReleases
from device_app.sync.release_sync import checked_blob
from device_app.uplink.backend_client import parsed
from device_app.uplink.http import HttpClient
from protocol.broadcast import (
    CodeShard,
    PoolCodes,
    etag_of_codes,
    unpack_book,
    unpack_cards,
    unpack_codes,
    unpack_priors,
)
from protocol.ids import short_release
from protocol.releases import BlobRef, ReleaseManifest
from protocol.tensors import TensorError
from protocol.text_catalogue import TextCatalogue

REQUESTS = TextCatalogue("device_app.uplink", "requests.toml")

LISTING_LIMIT_BYTES = 4 * 1024 * 1024


class PoolSync:
    """Keeps the pool's codes and cards up to date.

    wanted(n) says whether this reader's settings want a pool of n articles stored; nothing else decides. Requests
    depend on the release, the settings and what was pulled before. The ETag is computed here, from the listing's bytes,
    so that the backend can't use it to mark this device.
    """

    def __init__(
        self,
        client: HttpClient,
        pool: PoolStore,
        releases: InstalledReleases,
        clock: Callable[[], datetime],
        wanted: Callable[[int], bool],
    ) -> None:
        self._client, self._pool, self._releases, self._clock, self._wanted = client, pool, releases, clock, wanted

    def refresh(self) -> int:
        """Pull new blobs; returns how many.

        An interrupted pull resumes later, and the old pool stays until then.

        Raises NoRelease, network errors as in HttpClient, AnswerMalformed, ReleaseRefused for a blob with another hash.
        """
        release = self._releases.current()
        if release is None:
            raise NoRelease
        manifest = release.manifest
        if not (manifest.recall.pool_codes and self._wanted(0)):
            if self._pool.current() is not None:
                self._pool.drop()
            return 0
        kept = self._pool.current()
        here = kept is not None and kept.listing.encoder == manifest.encoder
        try:
            answer = self._client.get(
                f"/v1/releases/{short_release(manifest.release)}/codes",
                words=REQUESTS("code_list"),
                purpose="sync",
                etag=etag_of_codes(kept.text) if kept is not None and here else None,
                limit_bytes=LISTING_LIMIT_BYTES,
            )
        except BackendRefused as refused:
            if refused.problem.status == 503:  # they are being made: the next poll finds them
                return 0
            raise
        if answer.status == 304:
            return 0
        listing = parsed(PoolCodes, answer, "pool codes")
        if listing.release != manifest.release or listing.encoder != manifest.encoder:
            raise AnswerMalformed("pool codes", f"they are for {listing.release} and encoder {listing.encoder[:12]}")
        if not self._wanted(listing.count):
            self._pool.drop()
            return 0
        pulled = self._parts(listing, manifest) + sum(self._shard(listing, shard) for shard in listing.shards)
        self._pool.use(listing, answer.body, self._clock())
        return pulled

    def _parts(self, listing: PoolCodes, manifest: ReleaseManifest) -> int:
        """Pull the parts and check them against this listing.

        Parts that are already stored are checked, too. If a mismatch were found only when a reader's vector is used in
        a search, the pull that follows would reveal that vector.
        """
        pulled = 0
        checks: tuple[tuple[BlobRef, Callable[[bytes], object]], ...] = (
            (listing.book, lambda content: unpack_book(content, listing.subspaces, manifest.dimensions)),
            (listing.priors, lambda content: unpack_priors(content, listing.count)),
        )
        for ref, check in checks:
            kept = self._pool.part(ref.sha256)
            content = self._blob(ref, listing.release) if kept is None else kept
            with _declared():
                check(content)
            if kept is None:
                self._pool.put_part(ref.sha256, content)
                pulled += 1
        return pulled

    def _shard(self, listing: PoolCodes, shard: CodeShard) -> int:
        kept, has_cards = self._pool.part(shard.codes.sha256), self._pool.has_cards(shard)
        here = kept is not None and has_cards
        codes = kept if kept is not None and has_cards else self._blob(shard.codes, listing.release)
        with _declared():
            unpack_codes(codes, shard.count, listing.subspaces)
        if here:
            return 0
        if has_cards:  # another encoder gives the same articles other codes
            self._pool.put_part(shard.codes.sha256, codes)
            return 1
        packed = self._blob(shard.cards, listing.release)
        with _declared():
            cards = unpack_cards(packed, shard.count)
        self._pool.put_shard(shard, codes, cards)
        return 2

    def _blob(self, ref: BlobRef, release: str) -> bytes:
        answer = self._client.get(
            f"/v1/blobs/{ref.sha256}",
            words=REQUESTS("codes"),
            purpose="sync",
            accept="application/octet-stream",
            limit_bytes=max(1, ref.size_bytes),
        )
        return checked_blob(answer.body, ref, release)


@contextmanager
def _declared() -> Iterator[None]:
    """Raise AnswerMalformed for blobs whose content is not what the listing declares."""
    try:
        yield
    except TensorError as broken:
        raise AnswerMalformed("pool codes", str(broken)) from broken
