"""Loads a release's models for serving, and shares them between devices in one process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock
from weakref import WeakValueDictionary

from device_app.errors import ReleaseRefused
from device_app.ranking.groups import GroupRanker
from device_app.ranking.ranker import Ranker
from device_app.ranking.session import GraphSession
from device_app.ranking.views_ranker import ViewsRanker
from device_app.reading.decomposition import RecallModel
from device_app.reports.reporters import PublicVectors
from device_app.sync.installed_release import Release
from protocol.releases import ReleaseManifest

LocalRanker = Ranker | ViewsRanker | GroupRanker


@dataclass(frozen=True)
class ServingModels:
    """One release's models.

    Replaced as a whole when a release is swapped in, so that no feed mixes two.
    """

    manifest: ReleaseManifest
    recall: RecallModel
    ranker: LocalRanker
    spaces: PublicVectors = field(default_factory=PublicVectors)

    @property
    def release(self) -> str:
        """The release's id."""
        return self.manifest.release

    @property
    def encoder(self) -> str:
        """Digest of the encoder whose vectors these models expect."""
        return self.manifest.encoder

    @property
    def dimensions(self) -> int:
        """D: the length of an article vector."""
        return self.manifest.dimensions


class ModelCache:
    """Loads models of releases.

    Devices that share a cache share the models while at least one uses them.
    """

    def __init__(self, *, ranker: str | None = None, threads: int = 1) -> None:
        self._ranker = ranker
        self._threads = threads
        self._loaded: WeakValueDictionary[str, ServingModels] = WeakValueDictionary()
        self._lock = Lock()

    def models(self, release: Release) -> ServingModels:
        """Return the release's recall model and ranker. Raises ReleaseRefused or GraphMismatch."""
        key = sha256(release.manifest.model_dump_json().encode()).hexdigest()
        with self._lock:
            found = self._loaded.get(key)
            if found is None:
                found = self._loaded[key] = self._load(release)
            return found

    def _load(self, release: Release) -> ServingModels:
        ranker = self._ranker or release.manifest.default_ranker
        rankers = [name for name, entry in release.manifest.models.items() if entry.role == "ranker"]
        if ranker not in rankers:
            others = ", ".join(rankers)
            raise ReleaseRefused(release.id, f"it has no ranker {ranker!r}, which this device chose; it has {others}")
        return ServingModels(
            manifest=release.manifest,
            recall=RecallModel(
                self._session(release, "recall", "context"),
                self._session(release, "recall", "decompose"),
                release.manifest.recall,
            ),
            ranker=RANKERS.get(release.manifest.models[ranker].architecture, _ranker)(release, ranker, self._threads),
            spaces=release.spaces(),
        )

    def _session(self, release: Release, model: str, purpose: str) -> GraphSession:
        return _session(release, model, purpose, self._threads)


def _ranker(release: Release, model: str, threads: int) -> LocalRanker:
    entry = release.manifest.models[model]
    if entry.groups is not None:
        groups, graph = release.groups(model), release.graph(model, "score")
        return GroupRanker(
            graph,
            groups,
            everybody=release.weights(model),
            name=model,
            features=entry.features,
            threads=threads,
        )
    return Ranker(_session(release, model, "score", threads), name=model, features=entry.features)


def _views_ranker(release: Release, model: str, threads: int) -> ViewsRanker:
    return ViewsRanker(release.graph(model, "score"), release.weights(model), name=model, threads=threads)


RANKERS: Mapping[str, Callable[[Release, str, int], LocalRanker]] = {
    "multi_view": _views_ranker,
    "fl_mv_dssm_news": _views_ranker,
}
"""Builders for architectures whose rankers need more than clicks and features."""


def _session(release: Release, model: str, purpose: str, threads: int) -> GraphSession:
    return GraphSession(
        release.graph(model, purpose),
        release.weights(model),
        threads=threads,
        private=release.manifest.models[model].private,
    )
