"""The releases that recall answers: the current one and the few before it, since devices swap at their own time."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.errors import ReleaseNotAnswered, ReleaseRetired
from backend.releases.errors import NothingPublished, UnknownRelease
from device_app.wire.releases import ReleaseManifest

RECALL_MODEL = "recall"
BASIS_VALUES = "basis_values"


@dataclass(frozen=True)
class ServedRelease:
    """What recall needs of one release: the server's half of its recall model.

    basis_values: float32 [B, D], the values of the basic interests.
    """

    release: str
    encoder: str
    basis_values: NDArray[np.float32]
    channels_limit: int


class PublishedReleases(Protocol):
    """The part of `backend.releases.store.ReleaseStore` that recall reads."""

    def current_manifest(self) -> ReleaseManifest | None:
        """The newest release's manifest."""
        ...

    def manifest(self, release: str) -> ReleaseManifest:
        """One release's manifest. Raises UnknownRelease."""
        ...

    def weights(self, manifest: ReleaseManifest, model: str) -> dict[str, NDArray[np.float32]]:
        """The parameters of one model."""
        ...


class ServedReleases:
    """A small table in memory, so that answering a request reads neither database nor disk."""

    def __init__(self, published: PublishedReleases, *, answered: int) -> None:
        self._published, self._answered = published, answered
        self._served: dict[str, ServedRelease] = {}
        self._current: ServedRelease | None = None
        self._refreshing = threading.Lock()

    @property
    def current(self) -> ServedRelease:
        """The newest release. Raises NothingPublished before the first."""
        if self._current is None:
            raise NothingPublished
        return self._current

    def refresh(self) -> None:
        """Look for a newer release and load it, with those before it that share its encoder."""
        with self._refreshing:
            newest = self._published.current_manifest()
            if newest is None or (self._current is not None and newest.release == self._current.release):
                return
            served: dict[str, ServedRelease] = {}
            manifest: ReleaseManifest | None = newest
            while manifest is not None and len(served) < self._answered and manifest.encoder == newest.encoder:
                served[manifest.release] = self._served.get(manifest.release) or self._load(manifest)
                manifest = None if manifest.previous is None else self._published.manifest(manifest.previous)
            self._served, self._current = served, served[newest.release]

    def answered(self, release: str) -> ServedRelease:
        """The release a request names. Raises NothingPublished, ReleaseNotAnswered or ReleaseRetired."""
        if (found := self._served.get(release)) is not None:
            return found
        self.refresh()  # it may have been published a moment ago
        if (found := self._served.get(release)) is not None:
            return found
        current = self.current.release
        try:
            self._published.manifest(release)
        except UnknownRelease:
            raise ReleaseNotAnswered(release, current) from None
        raise ReleaseRetired(release, current)

    def _load(self, manifest: ReleaseManifest) -> ServedRelease:
        values = self._published.weights(manifest, RECALL_MODEL)[BASIS_VALUES]
        return ServedRelease(manifest.release, manifest.encoder, values, manifest.recall.channels_limit)
