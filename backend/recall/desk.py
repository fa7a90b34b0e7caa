"""Answers recall requests: report -> what is wanted -> search -> merge -> bytes."""

from __future__ import annotations

from collections.abc import Sequence

from backend.errors import CatalogueBehind, ReleaseRetired
from backend.recall.catalogue import Catalogue, LiveCatalogue
from backend.recall.compose import Coded, Interests, Weighted, compose
from backend.recall.merge import merge
from backend.recall.prototype_lists import SHARPNESS, ListShelf
from backend.recall.served import ServedRelease, ServedReleases
from backend.releases.errors import NothingPublished
from device_app.wire.ids import short_release
from device_app.wire.recall import RecallRequest
from device_app.wire.timing import Stopwatch


class RecallDesk:
    """The whole of recall over one live catalogue. Keeps nothing about anybody who asks."""

    def __init__(self, releases: ServedReleases, live: LiveCatalogue, lists: ListShelf | None = None) -> None:
        self._releases, self._live = releases, live
        self._lists = lists or ListShelf()

    def answer(self, request: RecallRequest, watch: Stopwatch) -> bytes:
        """A RecallAnswer as JSON bytes. A report about nothing is answered by the front list.

        Raises NothingPublished, ReleaseNotAnswered, ReleaseRetired, CatalogueBehind, or InvalidRequest for a report
        whose shape isn't the release's.
        """
        with watch.stage("aggregate"):
            release = self._releases.answered(request.release)
            catalogue = self._catalogue_of(release)
            wanted = compose(request.report, release)
        rows = self._found(wanted, catalogue, request.limit, watch)
        with watch.stage("encode"):
            return catalogue.encode(rows, release.release)

    def front(self, limit: int) -> tuple[bytes, str]:
        """The front list as a RecallAnswer in JSON bytes, and a name of exactly this list for an ETag.

        While the catalogue is still an older encoder's, the list is of the newest release of that encoder.
        """
        catalogue = self._live.current
        release = self._releases.newest_of(catalogue.encoder) or self._releases.current
        if release.encoder != catalogue.encoder:
            raise CatalogueBehind(release.release)
        version = f"{catalogue.pool_version}-{catalogue.counted}-{catalogue.built_at.timestamp():.6f}"
        return catalogue.encode(catalogue.front[:limit], release.release), f"{release.release}-{version}-{limit}"

    def prepare(self, catalogue: Catalogue) -> None:
        """Make the current release's lists over a catalogue that is about to serve."""
        try:
            release = self._releases.current
        except NothingPublished:
            return
        if release.encoder == catalogue.encoder:
            self._lists.prepare(catalogue, release.codebooks.values())

    def _found(
        self, wanted: Interests | Coded | Weighted, catalogue: Catalogue, limit: int, watch: Stopwatch
    ) -> Sequence[int]:
        if isinstance(wanted, Coded):
            with watch.stage("search"):
                return self._lists.of(catalogue, wanted.codebook).of_code(wanted.code, limit)
        if isinstance(wanted, Weighted):
            with watch.stage("search"):
                return self._lists.of(catalogue, wanted.codebook).mixed(wanted.weights, limit)
        if not wanted.counts:
            return catalogue.front[:limit]
        with watch.stage("search"):
            lists = catalogue.popular_near(wanted.vectors, limit, sharpness=SHARPNESS)
        with watch.stage("merge"):
            return merge(lists, wanted.counts, limit)

    def _catalogue_of(self, release: ServedRelease) -> Catalogue:
        catalogue = self._live.current
        if catalogue.encoder == release.encoder:
            return catalogue
        current = self._releases.current
        if release is current:
            raise CatalogueBehind(release.release)
        raise ReleaseRetired(short_release(release.release), current.release)
