"""The releases that recall answers: the current one and a few before it.

Devices swap releases at different times.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from backend.errors import ReleaseNotAnswered, ReleaseRetired
from backend.recall.posterior import READINGS, ScoreReading, clipped, within_l1
from backend.releases.errors import NothingPublished
from backend.releases.store import ReleaseReader
from protocol.ids import SHORT_RELEASES, release_number, short_release
from protocol.releases import BLOB_LIMIT_BYTES, Codebook, ReleaseManifest
from protocol.tensors import TensorSpec, unpack

RECALL_MODEL = "recall"
BASIS_KEYS, BASIS_VALUES, CONTEXT_MAP = "basis_keys", "basis_values", "attention.value.weight"


@dataclass(frozen=True)
class ServedCodebook:
    """K user prototypes: float32 [K, D] of length 1, and shares [K], the estimated share of readers at each.

    name identifies the codebook: two releases with the same codebook share its lists.
    """

    name: str
    epsilon: float
    prototypes: NDArray[np.float32]
    shares: NDArray[np.float64]


@dataclass(frozen=True)
class ServedRelease:
    """What recall needs of one release: the server's half of its recall model.

    basis_values: float32 [B, D], the values of the basic interests. codebooks are keyed by their size K, smallest
    first. score_readings are keyed by kind of report, and estimate its true scores.
    """

    release: str
    encoder: str
    basis_values: NDArray[np.float32]
    channels_limit: int
    codebooks: Mapping[int, ServedCodebook] = field(default_factory=dict)
    score_readings: Mapping[str, ScoreReading] = field(default_factory=dict)


class ServedReleases:
    """A small table in memory, so that answering a request reads neither database nor disk."""

    def __init__(self, published: ReleaseReader, *, answered: int, score_decoder: str = "posterior") -> None:
        """answered: how many of the last releases are answered. score_decoder: a name in `posterior.READINGS`."""
        self._published, self._answered, self._reading = published, answered, READINGS[score_decoder]
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
        """Check for a newer release and load it, with those before it.

        While the catalogue is still by an older encoder, that encoder's releases are answered; devices have no others
        yet.
        """
        with self._refreshing:
            newest = self._published.current_manifest()
            if newest is None or (self._current is not None and newest.release == self._current.release):
                return
            served: dict[str, ServedRelease] = {}
            manifest: ReleaseManifest | None = newest
            while manifest is not None and len(served) < self._answered:
                served[manifest.release] = self._served.get(manifest.release) or self._load(manifest)
                manifest = None if manifest.previous is None else self._published.manifest(manifest.previous)
            self._served, self._current = served, served[newest.release]

    def newest_of(self, encoder: str) -> ServedRelease | None:
        """The newest answered release whose vectors are by this encoder."""
        return next((one for one in self._served.values() if one.encoder == encoder), None)

    def answered(self, short: int) -> ServedRelease:
        """The release that a request names by its number modulo 16: the newest answered one with that number.

        Raises NothingPublished, ReleaseNotAnswered if no release has it, or its subclass ReleaseRetired if only an
        older one has.
        """
        if (found := self._newest_named(short)) is not None:
            return found
        self.refresh()  # it may have been published a moment ago
        if (found := self._newest_named(short)) is not None:
            return found
        current = self.current.release
        if short <= release_number(current) and (short or release_number(current) >= SHORT_RELEASES):
            raise ReleaseRetired(short, current)
        raise ReleaseNotAnswered(short, current)

    def _newest_named(self, short: int) -> ServedRelease | None:
        return next((one for one in self._served.values() if short_release(one.release) == short), None)

    def _load(self, manifest: ReleaseManifest) -> ServedRelease:
        weights, recall = self._published.weights(manifest, RECALL_MODEL), manifest.recall
        keys, values = weights[BASIS_KEYS], weights[BASIS_VALUES]
        # Keys are compared with contexts, that is, with what attention makes of topics, which are articles. Without
        # attention the two are the same.
        topics = values @ weights[CONTEXT_MAP].T if CONTEXT_MAP in weights else values
        bounds = {"basis_laplace": clipped(recall.score_clip), "basis_l1": within_l1(recall.score_clip)}
        return ServedRelease(
            manifest.release,
            manifest.encoder,
            values,
            recall.channels_limit,
            codebooks={
                entry.size: self._codebook(entry, manifest.dimensions)
                for entry in sorted(recall.codebooks, key=lambda entry: entry.size)
            },
            score_readings={
                kind: self._reading(keys, topics, bound, recall.score_noise) for kind, bound in bounds.items()
            },
        )

    def _codebook(self, entry: Codebook, dimensions: int) -> ServedCodebook:
        prototypes = self._tensor(entry.prototypes.sha256, "prototypes", (entry.size, dimensions))
        # Until shares are learned by secure sums, all prototypes are equally likely.
        shares = np.array(entry.shares) if entry.shares else np.full(entry.size, 1 / entry.size)
        return ServedCodebook(f"{entry.prototypes.sha256}-{entry.epsilon:g}", entry.epsilon, prototypes, shares)

    def _tensor(self, sha256: str, name: str, shape: tuple[int, int]) -> NDArray[np.float32]:
        blob = self._published.read_blob(sha256)
        return unpack(blob, {name: TensorSpec("float32", shape)}, limit_bytes=BLOB_LIMIT_BYTES)[name]
