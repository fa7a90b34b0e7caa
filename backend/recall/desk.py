"""Answers recall requests: report -> interest vectors -> search -> merge -> bytes."""

from __future__ import annotations

from backend.errors import CatalogueBehind, ReleaseRetired
from backend.recall.catalogue import Catalogue, LiveCatalogue
from backend.recall.compose import compose
from backend.recall.merge import merge
from backend.recall.served import ServedRelease, ServedReleases
from device_app.wire.recall import RecallRequest
from device_app.wire.timing import Stopwatch


class RecallDesk:
    """The whole of recall over one live catalogue. Keeps nothing about anybody who asks."""

    def __init__(self, releases: ServedReleases, live: LiveCatalogue) -> None:
        self._releases, self._live = releases, live

    def answer(self, request: RecallRequest, watch: Stopwatch) -> bytes:
        """A RecallAnswer as JSON bytes. A report about nothing is answered by the front list.

        Raises NothingPublished, ReleaseNotAnswered, ReleaseRetired, CatalogueBehind, or InvalidRequest for a report
        whose shape isn't the release's.
        """
        with watch.stage("aggregate"):
            release = self._releases.answered(request.release)
            catalogue = self._catalogue_of(release)
            interests = compose(request.report, release)
        if not interests.counts:
            with watch.stage("encode"):
                return catalogue.encode(catalogue.front[: request.limit], release.release)
        with watch.stage("search"):
            lists = catalogue.search(interests.vectors, request.limit)
        with watch.stage("merge"):
            rows = merge(lists, interests.counts, request.limit)
        with watch.stage("encode"):
            return catalogue.encode(rows, release.release)

    def front(self, limit: int) -> tuple[bytes, str]:
        """The front list as a RecallAnswer in JSON bytes, and a name of exactly this list for an ETag."""
        release = self._releases.current
        catalogue = self._catalogue_of(release)
        name = f"{release.release}-{catalogue.pool_version}-{catalogue.built_at.timestamp():.6f}-{limit}"
        return catalogue.encode(catalogue.front[:limit], release.release), name

    def _catalogue_of(self, release: ServedRelease) -> Catalogue:
        catalogue = self._live.current
        if catalogue.encoder == release.encoder:
            return catalogue
        current = self._releases.current
        if release is current:
            raise CatalogueBehind(release.release)
        raise ReleaseRetired(release.release, current.release)
