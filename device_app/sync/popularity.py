"""Pulling what is popular: the same answer for everybody."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from device_app.errors import AnswerMalformed, BackendRefused, NoRelease
from device_app.prose import Prose
from device_app.store.popularity import PopularityStore
from device_app.store.releases import InstalledReleases
from device_app.uplink.backend_client import parsed
from device_app.uplink.http import HttpClient
from device_app.wire.ids import short_release
from device_app.wire.popularity import Popularity, etag_of_popularity

REQUESTS = Prose("device_app.uplink", "requests.toml")

ANSWER_LIMIT_BYTES = 8 * 1024 * 1024
NOT_NOW = (404, 409, 410, 503)
"""A backend that does not tell, is behind its release, or has moved on: what is here stays."""


class PopularitySync:
    """Keeps the last answer. What is asked for depends on the release in use and on nothing of the reader.

    The ETag is computed here, from the answer's bytes, so that it can't be made a mark of this device.
    """

    def __init__(
        self, client: HttpClient, store: PopularityStore, releases: InstalledReleases, clock: Callable[[], datetime]
    ) -> None:
        self._client, self._store, self._releases, self._clock = client, store, releases, clock

    def refresh(self) -> bool:
        """Look for another answer; True if there was one. Raises NoRelease, AnswerMalformed, errors as HttpClient."""
        release = self._releases.current()
        if release is None:
            raise NoRelease
        name = release.manifest.release
        kept = self._store.current()
        try:
            answer = self._client.get(
                f"/v1/releases/{short_release(name)}/popularity",
                words=REQUESTS("popularity"),
                purpose="sync",
                etag=etag_of_popularity(kept.content) if kept is not None else None,
                limit_bytes=ANSWER_LIMIT_BYTES,
            )
        except BackendRefused as refused:
            if refused.problem.status in NOT_NOW:
                return False
            raise
        if answer.status == 304:
            return False
        told = parsed(Popularity, answer, "popularity")
        if told.release != name:
            raise AnswerMalformed("popularity", f"it is for {told.release}, this device asked for {name}")
        self._store.keep(answer.body, self._clock())
        return True
