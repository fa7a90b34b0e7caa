"""The release in use: its manifest, graphs and weights, all checked when it was installed."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from device_app.errors import GraphMismatch, NoRelease, ReleaseRefused
from device_app.ranking.groups import GroupModels
from device_app.ranking.ranker import FEATURES
from device_app.ranking.session import GraphSession
from device_app.ranking.views_ranker import of_view
from device_app.reports.reporters import PublicVectors
from device_app.store.blobs import Blobs
from device_app.store.releases import InstalledReleases
from protocol.releases import BlobRef, ModelEntry, ReleaseManifest
from protocol.tensors import TensorError, TensorSpec, unpack

NEEDED_OF_RECALL = ("context", "decompose")
NEEDED_OF_RANKER = ("score",)
_NAME = re.compile(r"^[A-Za-z0-9_.]{1,120}$")

TRIED_KEPT = 256

Weights = Mapping[str, NDArray[np.float32]]
Shapes = tuple[tuple[str, tuple[int, ...]], ...]


class Release:
    """An installed release: its graphs as bytes and its weights, each read once.

    Weights are read-only float32 arrays by parameter name.
    """

    def __init__(self, manifest: ReleaseManifest, blobs: Blobs) -> None:
        self.manifest = manifest
        self._blobs = blobs
        self._weights: dict[str, Weights] = {}

    @property
    def id(self) -> str:
        """The release's name, as 'r7'."""
        return self.manifest.release

    def has_graph(self, model: str, purpose: str) -> bool:
        return model in self.manifest.models and purpose in self.manifest.models[model].graphs

    def graph(self, model: str, purpose: str) -> bytes:
        """Return an ONNX graph.

        Raises ReleaseRefused if the release has none or its file is damaged.
        """
        entry = self._entry(model)
        if purpose not in entry.graphs:
            raise ReleaseRefused(self.id, f"model {model} has no {purpose!r} graph")
        return self._read(entry.graphs[purpose])

    def weights(self, model: str) -> Weights:
        """Parameters by name, float32; empty for a model without any. Raises ReleaseRefused."""
        if model not in self._weights:
            ref = self._entry(model).weights
            self._weights[model] = {} if ref is None else self._load(model, self._read(ref))
        return self._weights[model]

    def groups(self, model: str) -> GroupModels:
        """Return the models of a ranker's groups, with the centroids by which a device finds its group.

        Raises ReleaseRefused.
        """
        entry = self._entry(model).groups
        if entry is None:
            raise ReleaseRefused(self.id, f"model {model} has no groups")
        shared = self.weights(model)
        weights = self._load(model, self._read(entry.weights))
        vectors, next_vectors = (self._load(model, self._read(ref)) for ref in (entry.vectors, entry.next_vectors))
        for found, shapes in (
            (weights, {name: (entry.size, *value.shape) for name, value in shared.items()}),
            (vectors, {name: value.shape for name, value in shared.items()}),
            (next_vectors, {name: value.shape for name, value in shared.items()}),
        ):
            if {name: value.shape for name, value in found.items()} != shapes:
                raise ReleaseRefused(
                    self.id, f"groups of {model}: the weights are not those of {entry.size} groups of this model"
                )
        dimensions = self.manifest.dimensions
        centroids, next_centroids = (
            self._vectors(ref, "centroids", entry.size, dimensions) for ref in (entry.centroids, entry.next_centroids)
        )
        return GroupModels(weights, centroids, vectors, next_centroids, next_vectors)

    def spaces(self) -> PublicVectors:
        """Return the prototypes of every codebook. Raises ReleaseRefused."""
        return PublicVectors(
            {
                book.size: self._vectors(book.prototypes, "prototypes", book.size, self.manifest.dimensions)
                for book in self.manifest.recall.codebooks
            }
        )

    def check(self) -> None:
        """Raise ReleaseRefused unless the release is complete, consistent and loads.

        The default ranker and the recall model have the graphs that serving needs, reports would carry noise, weights
        are finite float32, and ONNX Runtime loads every graph and finds every parameter it declares.
        """
        manifest = self.manifest
        if manifest.recall.score_noise <= 0:
            raise ReleaseRefused(self.id, "score_noise is 0: its reports would carry no noise")
        for model, role, purposes in (
            ("recall", "recall", NEEDED_OF_RECALL),
            (manifest.default_ranker, "ranker", NEEDED_OF_RANKER),
        ):
            if self._entry(model).role != role:
                raise ReleaseRefused(self.id, f"model {model} is not a {role} model")
            for purpose in purposes:
                self.graph(model, purpose)
        self.spaces()
        if unknown := sorted(set(manifest.models[manifest.default_ranker].features) - FEATURES.keys()):
            raise ReleaseRefused(self.id, f"its ranker needs the feature {unknown[0]!r}, unknown to this program")
        for model, entry in manifest.models.items():
            weights = self.weights(model)
            if entry.groups is not None:
                self.groups(model)
            shapes = tuple((name, tensor.shape) for name, tensor in sorted(of_view(weights, "reading").items()))
            for purpose, ref in entry.graphs.items():
                try:
                    _TRIED.load(ref.sha256, self._read(ref), shapes, entry.private)
                except GraphMismatch as broken:
                    raise ReleaseRefused(self.id, f"graph {purpose!r} of {model}: {broken}") from broken

    def _entry(self, model: str) -> ModelEntry:
        if model not in self.manifest.models:
            raise ReleaseRefused(self.id, f"it has no model {model!r}")
        return self.manifest.models[model]

    def _read(self, ref: BlobRef) -> bytes:
        content = self._blobs.read(ref.sha256)
        if content is None:
            raise ReleaseRefused(
                self.id, f"blob {ref.sha256[:12]} is missing or damaged; the next sync fetches it again"
            )
        return content

    def _vectors(self, ref: BlobRef, name: str, rows: int, dimensions: int) -> NDArray[np.float32]:
        specs = {name: TensorSpec("float32", (rows, dimensions))}
        try:
            found = unpack(self._read(ref), specs, limit_bytes=ref.size_bytes)
        except TensorError as broken:
            raise ReleaseRefused(self.id, f"{name} [{rows}, D]: {broken}") from broken
        vectors: NDArray[np.float32] = found[name]
        vectors.flags.writeable = False
        return vectors

    def _load(self, model: str, blob: bytes) -> Weights:
        try:
            tensors: dict[str, NDArray[Any]] = load(blob)
        except (SafetensorError, ValueError, KeyError) as broken:
            raise ReleaseRefused(self.id, f"weights of {model}: not a safetensors blob ({broken})") from broken
        for name, tensor in tensors.items():
            if not _NAME.match(name):
                raise ReleaseRefused(self.id, f"weights of {model}: {name!r} is not a parameter name")
            if tensor.dtype != np.float32 or not np.isfinite(tensor).all():
                raise ReleaseRefused(self.id, f"weights of {model}: {name} is not finite float32")
            tensor.flags.writeable = False
        return tensors


def current_release(store: InstalledReleases) -> Release:
    """Return the release in use; raises NoRelease on a device that was never synced."""
    kept = store.current()
    if kept is None:
        raise NoRelease
    return Release(kept.manifest, store.blobs)


class _Tried:
    """Graphs that loaded in this process, by digest and shapes of their parameters.

    Releases of one architecture differ in weights only, and a fleet checks each of them many times.
    """

    def __init__(self) -> None:
        self._passed: set[tuple[str, Shapes, tuple[str, ...]]] = set()

    def load(self, digest: str, graph: bytes, shapes: Shapes, private: tuple[str, ...]) -> None:
        """Load a graph with parameters of these shapes, and private ones of any.

        Raises GraphMismatch.
        """
        if (digest, shapes, private) in self._passed:
            return
        GraphSession(graph, {name: np.zeros(shape, np.float32) for name, shape in shapes}, private=private)
        if len(self._passed) >= TRIED_KEPT:
            self._passed.clear()
        self._passed.add((digest, shapes, private))


_TRIED = _Tried()
