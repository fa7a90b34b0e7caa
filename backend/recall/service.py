"""Answers recall requests: report -> what is wanted -> search -> merge -> bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from backend.errors import CatalogueBehind, ReleaseRetired
from backend.popularity.prior import SHARPNESS
from backend.recall.answer_cache import AnswerCache, Asked, compress
from backend.recall.basis_scan import BasisScanStore
from backend.recall.catalogue import Catalogue, LiveCatalogue
from backend.recall.compose import Coded, InterestVectors, Weighted, compose
from backend.recall.index import Vectors
from backend.recall.merge import MERGES
from backend.recall.prototype_lists import CodeListStore
from backend.recall.served_releases import ServedRelease, ServedReleases
from backend.releases.errors import NothingPublished
from device_app.wire.ids import short_release
from device_app.wire.recall import CodeReport, RecallRequest
from device_app.wire.server_timing import Stopwatch

DEFAULT_LIST = ""
"""Stands where an answer by code has its codebook's name."""


class SearchedNews(Protocol):
    """A catalogue by its index, or by a scan of the release's basis: rows for interest vectors [C, D], best first."""

    def __len__(self) -> int: ...

    def search(self, queries: Vectors, k: int) -> list[list[int]]:
        """By inner product with the vector."""
        ...

    def popular_near(self, queries: Vectors, k: int, *, sharpness: float) -> list[list[int]]:
        """By nearness and popularity."""
        ...


Ranking = Callable[[SearchedNews, Vectors, int], Sequence[Sequence[int]]]
RANKINGS: Mapping[str, Ranking] = {
    "popularity": lambda news, vectors, limit: news.popular_near(vectors, limit, sharpness=SHARPNESS),
    "inner_product": lambda news, vectors, limit: news.search(vectors, min(limit, len(news))),
}
"""A list a channel of interest vectors [C, D], by the name that the setting `recall_ranking` has for them: the nearest
news with popularity beside, or by their inner product with the vector alone (Uni-FedRec, "News Recall")."""


@dataclass(frozen=True)
class VectorRules:
    """How interest vectors become one list: names of RANKINGS and of `merge.MERGES`."""

    ranking: str = "popularity"
    merge: str = "in_turns"


_SERVED = VectorRules()


class RecallService:
    """The whole of recall over one live catalogue. Keeps nothing about anybody who asks."""

    def __init__(
        self,
        releases: ServedReleases,
        live: LiveCatalogue,
        lists: CodeListStore | None = None,
        answers: AnswerCache | None = None,
        rules: VectorRules = _SERVED,
        scans: BasisScanStore | None = None,
    ) -> None:
        self._releases, self._live = releases, live
        self._lists, self._scans = lists or CodeListStore(), scans or BasisScanStore()
        self._answers = answers or AnswerCache(0)
        self._ranked, self._merged = RANKINGS[rules.ranking], MERGES[rules.merge]

    def kept(self, request: RecallRequest, *, compressed: bool = False) -> bytes | None:
        """The answer to a report by code, if it was given before: it costs no search, so it needs no thread.

        compressed: as of `answer`.

        Raises as `answer`.
        """
        if not isinstance(request.report, CodeReport):
            return None
        release = self._releases.answered(request.release)
        codebook = release.codebooks.get(request.report.codebook)
        if codebook is None:
            return None
        asked = Asked(release.release, codebook.name, request.report.code, request.limit, compressed)
        return self._answers.get(self._catalogue_of(release), asked)

    def answer(self, request: RecallRequest, watch: Stopwatch, *, compressed: bool = False) -> bytes:
        """A RecallAnswer as JSON bytes. A report about nothing is answered by the default list.

        compressed: by gzip, which pays where the answer is kept, and takes as long as a search where it isn't.

        Raises NothingPublished, ReleaseNotAnswered, ReleaseRetired, CatalogueBehind, or InvalidRequest for a report
        whose shape isn't the release's.
        """
        with watch.stage("aggregate"):
            release = self._releases.answered(request.release)
            catalogue = self._catalogue_of(release)
            wanted = compose(request.report, release)
        rows = self._found(wanted, catalogue, release, request.limit, watch)
        with watch.stage("encode"):
            answer = catalogue.encode(rows, release.release)
            answer = compress(answer) if compressed else answer
        if isinstance(wanted, Coded):
            asked = Asked(release.release, wanted.codebook.name, wanted.code, request.limit, compressed)
            self._answers.keep(catalogue, asked, answer)
        return answer

    def default_list_name(self, limit: int) -> str:
        """A name of exactly the list that `default_list` gives now, for an ETag.

        Raises NothingPublished or CatalogueBehind.
        """
        catalogue, release = self._default_list_of()
        version = f"{catalogue.pool_version}-{catalogue.counted}-{catalogue.built_at.timestamp():.6f}"
        return f"{release.release}-{version}-{limit}"

    def kept_default_list(self, limit: int) -> bytes | None:
        """The default list, if it was made before: it costs nothing, so it needs no thread. Raises as
        `default_list_name`.
        """
        catalogue, release = self._default_list_of()
        return self._answers.get(catalogue, Asked(release.release, DEFAULT_LIST, 0, limit))

    def default_list(self, limit: int) -> bytes:
        """The default list as a RecallAnswer in JSON bytes. Raises as `default_list_name`.

        While the catalogue is still an older encoder's, the list is of the newest release of that encoder.
        """
        catalogue, release = self._default_list_of()
        answer = catalogue.encode(catalogue.default_list[:limit], release.release)
        self._answers.keep(catalogue, Asked(release.release, DEFAULT_LIST, 0, limit), answer)
        return answer

    def prepare(self, catalogue: Catalogue) -> None:
        """Make the current release's lists, and the scan of its basis, over a catalogue that is about to serve."""
        try:
            release = self._releases.current
        except NothingPublished:
            return
        if release.encoder == catalogue.encoder:
            self._lists.prepare(catalogue, release.codebooks.values())
            if catalogue.by_basis:
                self._scans.of(catalogue, release)

    def _default_list_of(self) -> tuple[Catalogue, ServedRelease]:
        catalogue = self._live.current
        release = self._releases.newest_of(catalogue.encoder) or self._releases.current
        if release.encoder != catalogue.encoder:
            raise CatalogueBehind(release.release)
        return catalogue, release

    def _found(
        self,
        wanted: InterestVectors | Coded | Weighted,
        catalogue: Catalogue,
        release: ServedRelease,
        limit: int,
        watch: Stopwatch,
    ) -> Sequence[int]:
        if isinstance(wanted, Coded):
            with watch.stage("search"):
                return self._lists.of(catalogue, wanted.codebook).of_code(wanted.code, limit)
        if isinstance(wanted, Weighted):
            with watch.stage("search"):
                return self._lists.of(catalogue, wanted.codebook).mixed(wanted.weights, limit)
        if not wanted.counts:
            return catalogue.default_list[:limit]
        with watch.stage("search"):
            news = self._scans.of(catalogue, release) if catalogue.by_basis else catalogue
            lists = self._ranked(news, wanted.vectors, limit)
        with watch.stage("merge"):
            return self._merged(lists, wanted.counts, limit)

    def _catalogue_of(self, release: ServedRelease) -> Catalogue:
        catalogue = self._live.current
        if catalogue.encoder == release.encoder:
            return catalogue
        current = self._releases.current
        if release is current:
            raise CatalogueBehind(release.release)
        raise ReleaseRetired(short_release(release.release), current.release)
