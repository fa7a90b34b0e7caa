"""Answers recall requests: decodes the report, searches, merges, and encodes the list as bytes.

Answers that are the same for every device until the catalogue changes, to a report by code and the default list, are
cached.
"""

from __future__ import annotations

import gzip
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple
from weakref import ref as weak_ref

from backend.errors import CatalogueBehind, ReleaseRetired
from backend.popularity.estimate import SHARPNESS
from backend.recall.catalogue import Catalogue, LiveCatalogue
from backend.recall.code_lists import CodeListStore, SearchedNews, aggregated
from backend.recall.decode import Coded, InterestVectors, PrototypeWeights, compose
from backend.recall.indexes.basis import BasisScanStore
from backend.recall.indexes.index import Vectors
from backend.recall.merge import MERGES
from backend.recall.served_releases import ServedRelease, ServedReleases
from backend.releases.errors import NothingPublished
from protocol.ids import short_release
from protocol.recall import DEFAULT_LIST_LENGTH, CodeReport, RecallRequest
from protocol.server_timing import Stopwatch

GZIP_LEVEL = 3
"""Bodies shrink to about 40 % at level 3 in a third of the time that level 9 takes for 37 %; lists to about half."""


class CodeQuery(NamedTuple):
    """What an answer by code depends on besides the catalogue.

    compressed: whether it is gzipped, which most devices accept.
    """

    release: str
    codebook: str
    code: int
    limit: int
    compressed: bool = False


def compress(answer: bytes) -> bytes:
    """Compress with gzip, without a timestamp."""
    return gzip.compress(answer, GZIP_LEVEL, mtime=0)


class AnswerCache:
    """The last answers over one catalogue, as bytes, within a memory limit.

    Safe for several threads.

    It holds nothing about a reader: the answer doesn't depend on who requested it first.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes, self._held_bytes = limit_bytes, 0
        self._catalogue: weak_ref[Catalogue] | None = None  # a weak reference: cached answers don't keep it alive
        self._built_at: datetime | None = None
        self._answers: OrderedDict[CodeQuery, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, catalogue: Catalogue, query: CodeQuery) -> bytes | None:
        """Return the answer, if it was given over exactly this catalogue."""
        with self._lock:
            found = self._answers.get(query) if self._is_of(catalogue) else None
            if found is not None:
                self._answers.move_to_end(query)
            return found

    def keep(self, catalogue: Catalogue, query: CodeQuery, answer: bytes) -> None:
        """Keep the answer.

        Evict the least recently used ones, or all of them if the catalogue changed.
        """
        with self._lock:
            if not self._is_of(catalogue):
                if self._built_at is not None and catalogue.built_at < self._built_at:
                    return  # a search that began before the catalogue changed
                self._catalogue, self._built_at, self._held_bytes = weak_ref(catalogue), catalogue.built_at, 0
                self._answers.clear()
            if query in self._answers:
                return
            self._answers[query] = answer
            self._held_bytes += len(answer)
            while self._held_bytes > self._limit_bytes:
                _, oldest = self._answers.popitem(last=False)
                self._held_bytes -= len(oldest)

    def _is_of(self, catalogue: Catalogue) -> bool:
        return self._catalogue is not None and self._catalogue() is catalogue


DEFAULT_LIST = ""
"""Takes the place of the codebook's name in the key of the default list."""

NAME_DIGITS = 32
EARLIER_LISTS = 120
"""Number of earlier lists kept: two hours of lists that change every minute, some 10 MB."""


class NamedList(NamedTuple):
    """An answer with the default list. name: of the whole list, by its content, so that all processes agree."""

    name: str
    answer: bytes


class EarlierLists:
    """The last default lists of one length, to tell what changed since. Safe for several threads."""

    def __init__(self) -> None:
        self._lists: OrderedDict[str, tuple[str, dict[tuple[str, int], int]]] = OrderedDict()
        self._lock = threading.Lock()

    def changes(
        self, since: str | None, name: str, release: str, catalogue: Catalogue, rows: Sequence[int]
    ) -> bytes | None:
        """The changes from the list named `since` to this one; None if `since` isn't known. Stores this list.

        Lists of two releases share nothing, since their vectors may differ.
        """
        with self._lock:
            if name not in self._lists:
                versions = (
                    (catalogue.ids[row], hash((catalogue.cards[row], catalogue.vectors[row].tobytes()))) for row in rows
                )
                self._lists[name] = release, {version: place for place, version in enumerate(versions)}
                while len(self._lists) > EARLIER_LISTS:
                    self._lists.popitem(last=False)
            of_release, places = self._lists.get(since or "", ("", {}))
            versions_now = self._lists[name][1]
        if of_release != release:
            return None
        new: list[int] = []
        order: list[int] = []
        for row, version in zip(rows, versions_now, strict=True):
            place = places.get(version)
            if place is None:
                place = len(places) + len(new)
                new.append(row)
            order.append(place)
        return catalogue.encode(new, release, order)


Ranking = Callable[[SearchedNews, Vectors, int], Sequence[Sequence[int]]]
RANKINGS: Mapping[str, Ranking] = {
    "popularity": lambda news, vectors, limit: news.popular_near(vectors, limit, sharpness=SHARPNESS),
    "inner_product": lambda news, vectors, limit: news.search(vectors, min(limit, len(news))),
}
"""Lists per channel for interest vectors [C, D], by their name in the setting `recall_ranking`: by similarity and
popularity, or by the inner product with the vector alone (Uni-FedRec, "News Recall")."""


@dataclass(frozen=True)
class VectorRules:
    """How interest vectors become one list: names in RANKINGS and `merge.MERGES`."""

    ranking: str = "popularity"
    merge: str = "in_turns"


_SERVED = VectorRules()


class RecallService:
    """All of recall over one live catalogue. Stores nothing about clients."""

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
        self._answers, self._earlier = answers or AnswerCache(0), EarlierLists()
        self._ranked, self._merged = RANKINGS[rules.ranking], MERGES[rules.merge]

    def kept(self, request: RecallRequest, *, compressed: bool = False) -> bytes | None:
        """The answer to a report by code, if it is cached: it costs no search, so it needs no thread.

        compressed: as in `answer`. Raises the errors of `answer`.
        """
        if not isinstance(request.report, CodeReport):
            return None
        release = self._releases.answered(request.release)
        codebook = release.codebooks.get(request.report.codebook)
        if codebook is None:
            return None
        query = CodeQuery(release.release, codebook.name, request.report.code, request.limit, compressed)
        return self._answers.get(self._catalogue_of(release), query)

    def answer(self, request: RecallRequest, watch: Stopwatch, *, compressed: bool = False) -> bytes:
        """A RecallAnswer as JSON bytes. A report without interests is answered by the default list.

        compressed: with gzip, which pays off if the answer is cached; otherwise it takes as long as a search.

        Raises NothingPublished, ReleaseNotAnswered, ReleaseRetired, CatalogueBehind, or InvalidRequest for a report
        whose shape differs from the release's.
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
            query = CodeQuery(release.release, wanted.codebook.name, wanted.code, request.limit, compressed)
            self._answers.keep(catalogue, query, answer)
        return answer

    def default_list(self, limit: int, since: str | None = None) -> NamedList:
        """The default list as a DefaultListAnswer in JSON bytes: its changes if `since` names one of the last lists.

        While the catalogue is still by an older encoder, the list is of that encoder's newest release.

        Raises NothingPublished or CatalogueBehind.
        """
        catalogue, release = self._default_list_of()
        rows = catalogue.default_list[:limit]
        query = CodeQuery(release.release, DEFAULT_LIST, 0, limit)
        answer = self._answers.get(catalogue, query)
        if answer is None:
            answer = catalogue.encode(rows, release.release)
            self._answers.keep(catalogue, query, answer)
        name = sha256(answer).hexdigest()[:NAME_DIGITS]
        if limit != DEFAULT_LIST_LENGTH:  # so nobody can push out the lists that devices have
            return NamedList(name, answer)
        changes = self._earlier.changes(since, name, release.release, catalogue, rows)
        return NamedList(name, changes or answer)

    def prepare(self, catalogue: Catalogue) -> None:
        """Compute the current release's lists and the scan of its basis for a catalogue that is about to serve."""
        try:
            release = self._releases.current
        except NothingPublished:
            return
        if release.encoder == catalogue.encoder:
            self._lists.prepare(catalogue, release.codebooks.values())
            if catalogue.by_basis:
                self._scans.of(catalogue, release.basis_values)

    def _default_list_of(self) -> tuple[Catalogue, ServedRelease]:
        catalogue = self._live.current
        release = self._releases.newest_of(catalogue.encoder) or self._releases.current
        if release.encoder != catalogue.encoder:
            raise CatalogueBehind(release.release)
        return catalogue, release

    def _found(
        self,
        wanted: InterestVectors | Coded | PrototypeWeights,
        catalogue: Catalogue,
        release: ServedRelease,
        limit: int,
        watch: Stopwatch,
    ) -> Sequence[int]:
        if isinstance(wanted, Coded):
            with watch.stage("search"):
                return self._lists.of(catalogue, wanted.codebook).of_code(wanted.code, limit)
        if isinstance(wanted, PrototypeWeights):
            prototypes = wanted.codebook.prototypes
            with watch.stage("aggregate"):
                (vector,) = aggregated(wanted.weights[None], prototypes)
            with watch.stage("search"):
                news = self._searched(catalogue, prototypes)
                return self._lists.of(catalogue, wanted.codebook).of_vector(vector, limit, news)
        if not wanted.counts:
            return catalogue.default_list[:limit]
        with watch.stage("search"):
            lists = self._ranked(self._searched(catalogue, release.basis_values), wanted.vectors, limit)
        with watch.stage("merge"):
            return self._merged(lists, wanted.counts, limit)

    def _searched(self, catalogue: Catalogue, values: Vectors) -> SearchedNews:
        """What finds articles near mixtures of these values [B, D]."""
        return self._scans.of(catalogue, values) if catalogue.by_basis else catalogue

    def _catalogue_of(self, release: ServedRelease) -> Catalogue:
        catalogue = self._live.current
        if catalogue.encoder == release.encoder:
            return catalogue
        current = self._releases.current
        if release is current:
            raise CatalogueBehind(release.release)
        raise ReleaseRetired(short_release(release.release), current.release)
