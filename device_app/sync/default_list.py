"""Pulling the default list: recent news, the same for every device."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from device_app.errors import NoRelease
from device_app.prose import Prose
from device_app.store.default_list import DefaultListStore
from device_app.store.news import NewsStore
from device_app.store.releases import InstalledReleases
from device_app.uplink.answers import read_vectors
from device_app.uplink.backend_client import parsed
from device_app.uplink.http import HttpClient, etag_of
from device_app.wire.recall import RecallAnswer

REQUESTS = Prose("device_app.uplink", "requests.toml")


class DefaultListSync:
    """Keeps the default list and the news on it."""

    def __init__(
        self,
        client: HttpClient,
        default_list: DefaultListStore,
        news: NewsStore,
        releases: InstalledReleases,
        clock: Callable[[], datetime],
        limit: Callable[[], int] = lambda: 600,
    ) -> None:
        self._client = client
        self._default_list = default_list
        self._news = news
        self._releases = releases
        self._clock = clock
        self._limit = limit

    def refresh(self) -> RecallAnswer | None:
        """Pull the list if it changed and keep it with its cards and vectors; None if it's the one here.

        Raises NoRelease before the first release, errors as in HttpClient, AnswerMalformed; the old list stays then.
        """
        release = self._releases.current()
        if release is None:
            raise NoRelease
        kept = self._default_list.current()
        whole = kept is not None and len(self._news.cards(kept.news_ids)) == len(kept.news_ids)
        answer = self._client.get(
            f"/v1/news/front?limit={self._limit()}",
            words=REQUESTS("default_list"),
            purpose="sync",
            etag=kept.etag if kept is not None and whole else None,
        )
        if answer.status == 304:
            return None
        found = parsed(RecallAnswer, answer, "default list")
        vectors = read_vectors(found, release.manifest.dimensions)
        now = self._clock()
        self._news.put(found.candidates, vectors, found.encoder, now)
        self._default_list.keep(
            etag=etag_of(answer),
            release=found.release,
            encoder=found.encoder,
            news_ids=[card.id for card in found.candidates],
            at=now,
        )
        return found
