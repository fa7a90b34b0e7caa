"""The popularity of the live catalogue's articles by private counts, as sent to every device."""

from dataclasses import dataclass

import numpy as np

from backend.popularity.store import CountRepository
from backend.recall.catalogue import Catalogue, LiveCatalogue
from protocol.ids import ReleaseId
from protocol.popularity import LIFT_STEP, LIFTS_LIMIT, POPULAR_LIMIT, Popularity, etag_of_popularity


@dataclass(frozen=True)
class _Published:
    catalogue: Catalogue
    release: ReleaseId
    content: bytes


class PublishedPopularity:
    """The answer for one catalogue, encoded on first request."""

    def __init__(self, live: LiveCatalogue, counts: CountRepository) -> None:
        self._live, self._counts = live, counts
        self._current: _Published | None = None

    def answer(self, release: ReleaseId) -> tuple[bytes, str]:
        """A Popularity as JSON bytes, and its ETag."""
        catalogue, current = self._live.current, self._current
        if current is None or current.catalogue is not catalogue or current.release != release:
            content = self._written(catalogue, release).model_dump_json().encode()
            self._current = current = _Published(catalogue, release, content)
        return current.content, etag_of_popularity(current.content)

    def _written(self, catalogue: Catalogue, release: ReleaseId) -> Popularity:
        counts = [count for count in self._counts.made(1_000) if count.round <= catalogue.counted]
        steps = np.rint(catalogue.lifts / LIFT_STEP).astype(int)
        lifted = np.flatnonzero(steps)
        if len(lifted) > LIFTS_LIMIT:
            lifted = np.sort(lifted[np.argsort(-np.abs(steps[lifted]), kind="stable")[:LIFTS_LIMIT]])
        popular = np.argsort(-catalogue.log_popularity, kind="stable")[:POPULAR_LIMIT]
        return Popularity(
            release=release,
            rounds=len(counts),
            devices=counts[0].devices if counts else 0,
            counted_at=counts[0].counted_at if counts else None,
            news=tuple(catalogue.ids[row] for row in lifted),
            lifts=tuple(steps[lifted].tolist()),
            popular=tuple(catalogue.ids[row] for row in popular),
        )
