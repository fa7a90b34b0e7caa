"""Fetching what a round's task reads besides the release: blobs by hash, the same for every device."""

from __future__ import annotations

from device_app.store.blobs import Blobs
from device_app.sync.releases import checked_blob
from device_app.uplink.http import HttpClient
from device_app.wire.releases import BlobRef


class MaterialSync:
    """Blobs of rounds, kept in the folder of releases' blobs, where those that no release names go after a day.

    What it asks for is named in the offer of a round, and by nothing the reader did.
    """

    def __init__(self, client: HttpClient, blobs: Blobs) -> None:
        self._client, self._blobs = client, blobs

    def fetch(self, ref: BlobRef) -> bytes:
        """The blob, its size and hash checked. Raises ReleaseRefused if they don't fit, and errors as HttpClient."""
        kept = self._blobs.read(ref.sha256)
        if kept is not None:
            return kept
        answer = self._client.get(
            f"/v1/blobs/{ref.sha256}",
            words="Something a training round's task needs, the same for everybody.",
            purpose="sync",
            accept="application/octet-stream",
            limit_bytes=max(1, ref.size_bytes),
        )
        content = checked_blob(answer.body, ref, "of the round")
        self._blobs.put(content)
        return content
