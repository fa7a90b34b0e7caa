"""Pull what is the same for every device: the default list and the articles' popularity."""

from collections.abc import Callable
from datetime import datetime
from urllib.parse import quote

from device_app.errors import AnswerMalformed, BackendRefused, NoRelease
from device_app.store.default_list import DefaultListStore, PopularityStore
from device_app.store.news import NewsStore
from device_app.store.releases import InstalledReleases
from device_app.uplink.backend_client import parsed, read_vectors
from device_app.uplink.http import HttpClient, etag_of
from protocol.ids import short_release
from protocol.popularity import Popularity, etag_of_popularity
from protocol.recall import DefaultListAnswer
from protocol.text_catalogue import TextCatalogue

REQUESTS = TextCatalogue("device_app.uplink", "requests.toml")


class DefaultListSync:
    """Keeps the default list and its articles up to date."""

    def __init__(
        self,
        client: HttpClient,
        default_list: DefaultListStore,
        news: NewsStore,
        releases: InstalledReleases,
        clock: Callable[[], datetime],
        limit: Callable[[], int] = lambda: 600,
    ) -> None:
        self._client, self._default_list, self._news = client, default_list, news
        self._releases, self._clock, self._limit = releases, clock, limit

    def refresh(self) -> DefaultListAnswer | None:
        """Pull the list if it changed, or its changes, and store it with its cards and vectors.

        The request names the list that this device has, which everybody got at that time. None if it is unchanged.

        Raises NoRelease before the first release, AnswerMalformed, and errors as in HttpClient; the old list stays
        then.
        """
        release = self._releases.current()
        if release is None:
            raise NoRelease
        kept = self._default_list.current()
        whole = kept is not None and len(self._news.cards(kept.news_ids)) == len(kept.news_ids)
        etag = kept.etag if kept is not None and whole else None
        since = f"&since={quote(etag, safe='')}" if etag else ""
        answer = self._client.get(
            f"/v1/news/front?limit={self._limit()}{since}", words=REQUESTS("default_list"), purpose="sync", etag=etag
        )
        if answer.status == 304:
            return None
        found = parsed(DefaultListAnswer, answer, "default list")
        vectors = read_vectors(found, release.manifest.dimensions)
        if found.order is not None and (kept is None or not since or found.encoder != kept.encoder):
            raise AnswerMalformed("default list", "order: changes of a list that this device doesn't have")
        try:
            news_ids = found.listed(kept.news_ids if kept is not None else ())
        except ValueError as wrong:
            raise AnswerMalformed("default list", str(wrong)) from wrong
        now = self._clock()
        self._news.put(found.candidates, vectors, found.encoder, now)
        self._default_list.keep(
            etag=etag_of(answer),
            release=found.release,
            encoder=found.encoder,
            news_ids=news_ids,
            at=now,
        )
        return found


ANSWER_LIMIT_BYTES = 8 * 1024 * 1024
NOT_NOW = (404, 409, 410, 503)
"""Statuses of a backend without popularity, behind its release, or ahead of it: the stored answer stays."""


class PopularitySync:
    """Keeps the last answer up to date.

    Requests depend on the release in use, never on the reader. The ETag is computed here, from the answer's bytes, so
    that the server can't use it to mark this device.
    """

    def __init__(
        self, client: HttpClient, store: PopularityStore, releases: InstalledReleases, clock: Callable[[], datetime]
    ) -> None:
        self._client, self._store, self._releases, self._clock = client, store, releases, clock

    def refresh(self) -> bool:
        """Poll for another answer; True if there was one.

        Raises NoRelease, AnswerMalformed, errors as in HttpClient.
        """
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
        received = parsed(Popularity, answer, "popularity")
        if received.release != name:
            raise AnswerMalformed("popularity", f"it is for {received.release}, this device asked for {name}")
        self._store.keep(answer.body, self._clock())
        return True
