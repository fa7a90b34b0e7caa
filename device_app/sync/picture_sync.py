"""Pull publishers' pictures.

Every shard of the list is pulled in order, so that no request reveals which article is read.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256

from device_app.errors import AnswerMalformed, BackendRefused
from device_app.store.picture_store import PictureStore
from device_app.uplink.backend_client import parsed
from device_app.uplink.http import HttpClient
from protocol.pictures import PictureError, PictureList, PictureShard, unpack_pictures
from protocol.text_catalogue import TextCatalogue

REQUESTS = TextCatalogue("device_app.uplink", "requests.toml")
log = logging.getLogger(__name__)

LIST_LIMIT_BYTES = 1024 * 1024
NOT_NOW = (404, 410, 503)
"""Statuses of a backend whose list has just changed, or that is busy: the next poll continues."""


class PictureSync:
    """Keeps all pictures of the list up to date.

    Formal guarantees: requests are a function of the server's list, of what was downloaded before, and of the reader's
    switch for pictures; they don't depend on clicks or on what a page shows. With the switch off nothing is requested.
    The ETag is computed here, from the list's bytes, so that the backend can't use it to mark this device; the list
    itself can mark it, like everything that a device repeats (threat model, *What remains*).
    """

    def __init__(self, client: HttpClient, store: PictureStore, clock: Callable[[], datetime]) -> None:
        self._client, self._store, self._clock = client, store, clock

    def refresh(self) -> int:
        """Pull new shards; returns how many.

        An interrupted pull resumes later, and the old pictures stay until then.

        Raises AnswerMalformed for a list or a shard that doesn't match its limits, its size or its hash, and network
        errors as in HttpClient.
        """
        if not self._store.shown():
            return 0
        kept = self._store.current()
        try:
            answer = self._client.get(
                "/v1/pictures",
                words=REQUESTS("picture_list"),
                purpose="sync",
                etag=sha256(kept.text).hexdigest() if kept is not None else None,
                limit_bytes=LIST_LIMIT_BYTES,
            )
            if answer.status == 304:
                return 0
            listing = parsed(PictureList, answer, "pictures")
            self._store.make_room(listing)
            # The reader may say otherwise meanwhile.
            pulled = sum(self._shard(shard) for shard in listing.shards if self._store.shown())
        except BackendRefused as refused:
            if refused.problem.status in NOT_NOW:
                log.info("pictures: the backend answers %d, and the previous pictures stay", refused.problem.status)
                return 0
            raise
        self._store.use(listing, answer.body, self._clock())
        return pulled

    def _shard(self, shard: PictureShard) -> int:
        if self._store.has(shard):
            return 0
        ref = shard.pictures
        answer = self._client.get(
            f"/v1/blobs/{ref.sha256}",
            words=REQUESTS("pictures"),
            purpose="sync",
            accept="application/octet-stream",
            limit_bytes=max(1, ref.size_bytes),
        )
        name, body = f"shard {ref.sha256[:12]}", answer.body
        if len(body) != ref.size_bytes:
            raise AnswerMalformed("pictures", f"{name}: {len(body)} bytes, declared as {ref.size_bytes}")
        if sha256(body).hexdigest() != ref.sha256:
            raise AnswerMalformed("pictures", f"{name}: its hash differs from the declared one")
        try:
            pictures = unpack_pictures(body, shard.count)
        except PictureError as broken:
            raise AnswerMalformed("pictures", f"{name}: {broken}") from broken
        self._store.put(shard, pictures)
        return 1
