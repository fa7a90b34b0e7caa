"""Publish releases: the first from the pool, later ones from new weights, and rollbacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from backend.releases.blobs import ReleaseDraft
from backend.releases.codebooks import Calibration, calibrate, first_codebooks, pseudo_readers, topic_centroids
from backend.releases.errors import ReleaseNotPublished
from backend.releases.store import ReleaseStore
from backend.server.progress import Advance
from backend.settings import RecallSettings
from protocol.graph_check import OPSET
from protocol.ids import ReleaseId
from protocol.releases import CategoryVocabulary, ModelEntry, RecallProtocol, ReleaseManifest
from protocol.similarity import similarity_floor
from protocol.tensors import TensorError, TensorSpec, pack
from protocol.vocabulary import WordVocabulary

if TYPE_CHECKING:
    from exporters.graph_cache import GraphCache

SEED = 7
SCORE_CLIP, SCORE_NOISE = 0.2, 1.2
RECALL = "recall"
STEPS_BEFORE_RANKERS = 3


@dataclass(frozen=True)
class RecallTerms:
    """The operator's settings for a release's recall model: B, d, delta and lambda_I.

    None: the default.
    """

    basis_size: int | None = None
    cluster_distance: float | None = None
    score_clip: float | None = None
    score_noise: float | None = None

    @classmethod
    def of(cls, settings: RecallSettings) -> Self:
        """Return the terms that the settings contain."""
        return cls(settings.basis_size, settings.cluster_distance, settings.score_clip, settings.score_noise)

    def wanting(self, protocol: RecallProtocol) -> dict[str, int | float]:
        """Return the requested values that differ from those of a release, by name."""
        requested = {name: value for name, value in asdict(self).items() if value is not None}
        return {name: value for name, value in requested.items() if getattr(protocol, name) != value}


USUAL = RecallTerms()


@dataclass(frozen=True)
class _MadeRecall:
    """An initial recall model, its graphs and weights as blobs, and its cluster distance."""

    entry: ModelEntry
    graphs: dict[str, float]
    calibration: Calibration
    basis_size: int
    score_clip: float


def _make_recall(
    store: ReleaseStore,
    vectors: NDArray[np.float32],
    terms: RecallTerms,
    seed: int,
    step_done: Callable[[], None] = lambda: None,
    cache: GraphCache | None = None,
) -> _MadeRecall:
    """Create the recall model for a pool's vectors [n, D].

    Raises TrainingNotInstalled, ReleaseNotPublished.
    """
    from backend.releases.models import entry_of, initial_recall  # the server starts without the models' package
    from models.shapes import BASIS_SIZE, CHANNELS_LIMIT
    from models.starts import basis_recall_start

    basis_size, score_clip = terms.basis_size or BASIS_SIZE, terms.score_clip or SCORE_CLIP
    centroids, topics = topic_centroids(vectors, basis_size=basis_size, seed=seed)
    weights = dict(basis_recall_start(centroids, score_clip, seed))
    step_done()
    exported = initial_recall(vectors.shape[1], basis_size, score_clip, cache)
    readers = pseudo_readers(vectors, topics, np.random.default_rng(seed))
    calibration = calibrate(
        readers,
        _contexts(exported.graphs["context"], weights),
        channels_limit=CHANNELS_LIMIT,
        seed=seed,
        distance=terms.cluster_distance,
    )
    step_done()
    entry, graphs = entry_of(store, replace(exported, weights=weights))
    step_done()
    return _MadeRecall(entry, graphs, calibration, basis_size, score_clip)


def _contexts(
    graph: bytes, weights: Mapping[str, NDArray[np.float32]]
) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """Return the function from a reader's clicks [H, D] to their contexts [H, D]."""
    import onnxruntime  # slow import, not needed by every server

    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    read = {each.name for each in session.get_inputs()}
    given = {f"p.{name}": value for name, value in weights.items() if f"p.{name}" in read}

    def contexts(clicks: NDArray[np.float32]) -> NDArray[np.float32]:
        mask = np.ones((1, len(clicks)), dtype=np.float32)
        (found,) = session.run(["contexts"], {"clicks": clicks[None], "click_mask": mask, **given})
        return np.asarray(found[0], dtype=np.float32)

    return contexts


def publish_first(
    store: ReleaseStore,
    *,
    encoder: str,
    vectors: NDArray[np.float32],
    vocabulary: WordVocabulary | None = None,
    categories: CategoryVocabulary | None = None,
    rankers: Sequence[str] = (),
    terms: RecallTerms = USUAL,
    cache: GraphCache | None = None,
    progress: Advance | None = None,
    seed: int = SEED,
) -> ReleaseManifest:
    """Publish the first release of a pool, or a new start for a new encoder.

    vectors [n, D] are the pool's, by the encoder of that digest. The recall model starts at the cosine with k-means
    centroids of the pool. Unless `terms` say otherwise, its clip and noise are the paper's delta = 0.2 and lambda_I =
    1.2, and the cluster distance is calibrated to 3 to 4 channels. The similarity floor is that of random pairs of the
    pool. The codebooks are topic centroids of the pool. The rankers start at the cosine too, the default one, with
    features, at its known weights. Every graph is compared with torch.
    `vocabulary` and `categories` hold the words, sections and topics of the pool, for news encoders that read their
    ids; `rankers` names the papers' models to offer besides the small ones. `cache` holds graphs that were compared
    with torch before. `progress` is called with (done, total) after each step.

    Raises ReleaseNotPublished if the pool is smaller than the basis or has values that are not finite, or if a graph
    fails its comparison, and TrainingNotInstalled for a model that no version ships; then nothing is published.
    """
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise ReleaseNotPublished("The pool's vectors are not a finite matrix.", field="vectors", limit="finite [n, D]")
    from backend.releases.models import entry_of, grouped, initial_ranker  # as above
    from models.rankers import DEFAULT
    from models.rankers import offered as offered_rankers
    from models.shapes import CHANNELS_LIMIT

    done = 0

    def step_done() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, STEPS_BEFORE_RANKERS + len(offered))

    offered = offered_rankers(tuple(rankers))
    made = _make_recall(store, vectors, terms, seed, step_done, cache)
    models: dict[str, ModelEntry] = {RECALL: made.entry}
    graphs: dict[str, dict[str, float]] = {RECALL: made.graphs}
    for name in offered:
        entry, graphs[name] = entry_of(store, initial_ranker(name, vectors.shape[1], seed, cache))
        models[name] = grouped(store, name, entry, models[RECALL], seed)
        step_done()

    draft = ReleaseDraft(
        encoder=encoder,
        dimensions=vectors.shape[1],
        opset=OPSET,
        recall=RecallProtocol(
            basis_size=made.basis_size,
            channels_limit=CHANNELS_LIMIT,
            cluster_distance=made.calibration.cluster_distance,
            score_clip=made.score_clip,
            score_noise=terms.score_noise or SCORE_NOISE,
            codebooks=first_codebooks(store, vectors, seed=seed),
            pool_codes=True,
        ),
        models=models,
        default_ranker=DEFAULT,
        vocabulary=None if vocabulary is None else store.add_blob(vocabulary.pack()),
        categories=None if categories is None else store.add_blob(categories.pack()),
        kinship_floor=similarity_floor(vectors),
    )
    facts = {"calibration": made.calibration.facts(), "graphs": graphs}
    return store.commit(draft, note="first release: everything starts at the cosine", facts=facts)


def publish_recall(
    store: ReleaseStore, vectors: NDArray[np.float32], terms: RecallTerms, *, seed: int = SEED
) -> ReleaseManifest:
    """Publish the current release with these terms if its recall model was made with others.

    A different distance or noise is only a number of the release, and the recall model keeps its training. A different
    basis or clip requires another model, which starts from vectors [n, D], the pool's by the release's encoder.
    Publishes nothing if nothing differs. Raises what `publish_first` raises.
    """
    previous = store.require_current()
    changes: dict[str, int | float] = terms.wanting(previous.recall)
    if not changes:
        return previous
    models, facts = previous.models, {}
    if changes.keys() & {"basis_size", "score_clip"}:
        kept = previous.recall
        made = _make_recall(
            store,
            vectors,
            replace(
                terms, basis_size=terms.basis_size or kept.basis_size, score_clip=terms.score_clip or kept.score_clip
            ),
            seed,
        )
        models = models | {RECALL: made.entry}
        facts = {"calibration": made.calibration.facts(), "graphs": {RECALL: made.graphs}}
        changes |= {"basis_size": made.basis_size, "score_clip": made.score_clip}
        changes["cluster_distance"] = made.calibration.cluster_distance
    settings_changed = ", ".join(f"{name} {value:g}" for name, value in changes.items())
    draft = replace(ReleaseDraft.like(previous, models=models), recall=previous.recall.model_copy(update=changes))
    return store.commit(draft, note=f"recall as the settings ask for it: {settings_changed}", facts=facts)


def export_first_graphs(cache: GraphCache, dimensions: int, *, progress: Advance | None = None) -> None:
    """Export those graphs of the first release that need no articles and that no version ships into the cache.

    D = `dimensions`. Raises TrainingNotInstalled, or ReleaseNotPublished if a graph differs from torch.
    """
    from backend.releases.models import initial_ranker, initial_recall  # as above
    from models.rankers import offered as offered_rankers
    from models.shapes import BASIS_SIZE

    rankers = offered_rankers(())
    initial_recall(dimensions, BASIS_SIZE, SCORE_CLIP, cache)
    for done, name in enumerate(rankers, start=1):
        if progress is not None:
            progress(done, 1 + len(rankers))
        initial_ranker(name, dimensions, SEED, cache)
    if progress is not None:
        progress(1 + len(rankers), 1 + len(rankers))


@dataclass(frozen=True)
class ExportedRankers:
    """Rankers whose graphs and initial weights are stored as blobs.

    It holds entries by name, and by name and purpose the largest difference of a graph from torch.
    """

    models: Mapping[str, ModelEntry]
    graphs: Mapping[str, Mapping[str, float]]


def export_rankers(
    store: ReleaseStore,
    names: Sequence[str],
    *,
    cache: GraphCache | None = None,
    progress: Advance | None = None,
    seed: int = SEED,
) -> ExportedRankers:
    """Export initial models of these names as blobs for a release; nothing is published.

    cache: as in `publish_first`. Raises NothingPublished, TrainingNotInstalled for a model that no version ships, or
    ReleaseNotPublished if a graph fails its comparison with torch.
    """
    from backend.releases.models import entry_of, grouped, initial_ranker  # as above

    release = store.require_current()
    recall = release.models[RECALL]
    models: dict[str, ModelEntry] = {}
    graphs: dict[str, dict[str, float]] = {}
    for done, name in enumerate(names, start=1):
        entry, graphs[name] = entry_of(store, initial_ranker(name, release.dimensions, seed, cache))
        models[name] = grouped(store, name, entry, recall, seed)
        if progress is not None:
            progress(done, len(names))
    return ExportedRankers(models, graphs)


def offer(
    store: ReleaseStore,
    exported: ExportedRankers,
    *,
    together_with: Callable[[Session, ReleaseManifest], None] | None = None,
) -> ReleaseManifest:
    """Publish the current release with these rankers added; existing models keep their training.

    together_with: as in `ReleaseStore.commit`. Raises NothingPublished, ReleaseNotPublished if another release was
    published meanwhile, and the errors of `together_with`.
    """
    previous = store.require_current()
    # If two exported the same model, the first stays: it may be trained by now.
    models = previous.models | {name: entry for name, entry in exported.models.items() if name not in previous.models}

    def together(session: Session, published: ReleaseManifest) -> None:
        if published.previous != previous.release:
            raise ReleaseNotPublished(f"{published.previous} was published meanwhile.")
        if together_with is not None:
            together_with(session, published)

    return store.commit(
        ReleaseDraft.like(previous, models=models),
        note=f"offers {', '.join(exported.models)} too",
        facts={"graphs": dict(exported.graphs)},
        together_with=together,
    )


def publish_rankers(
    store: ReleaseStore,
    rankers: Sequence[str],
    *,
    cache: GraphCache | None = None,
    progress: Advance | None = None,
    seed: int = SEED,
    publish: Callable[[ReleaseStore, ExportedRankers], ReleaseManifest] = offer,
) -> ReleaseManifest:
    """Publish the current release with those `rankers` that it lacks.

    Existing models keep their training.

    publish: as `offer`, for callers that have to wait. Publishes nothing if the release has all of them. Raises
    NothingPublished, and what `export_rankers` raises.
    """
    previous = store.require_current()
    missing = missing_rankers(previous, rankers)
    if not missing:
        return previous
    return publish(store, export_rankers(store, missing, cache=cache, progress=progress, seed=seed))


def publish_codebooks(store: ReleaseStore, vectors: NDArray[np.float32], *, seed: int = SEED) -> ReleaseManifest:
    """Publish the current release with codebooks if it has none.

    The pool may have been too small when the release was made. vectors [n, D] are the pool's, by the release's encoder.
    Publishes nothing if it has codebooks, or if the pool is still too small for any.
    """
    previous = store.require_current()
    found = () if previous.recall.codebooks else first_codebooks(store, vectors, seed=seed)
    if not found:
        return previous
    draft = replace(ReleaseDraft.like(previous), recall=previous.recall.model_copy(update={"codebooks": found}))
    return store.commit(draft, note="offers reports by code too")


def missing_rankers(release: ReleaseManifest, rankers: Sequence[str]) -> list[str]:
    """Return the models that the operator offers and this release lacks."""
    return [name for name in dict.fromkeys(f"ranker.{one}" for one in rankers) if name not in release.models]


def publish_changes(
    store: ReleaseStore,
    previous: ReleaseManifest,
    weights: Mapping[str, Mapping[str, NDArray[np.float32]]],
    note: str,
    *,
    change: Callable[[ReleaseDraft], ReleaseDraft] | None = None,
    facts: Mapping[str, Any] | None = None,
    together_with: Callable[[Session, ReleaseManifest], None] | None = None,
) -> ReleaseManifest:
    """Publish `previous` with new weights for these models and then with `change` applied.

    The graphs stay, so torch is not needed. Raises ReleaseNotPublished, naming the tensor, unless the weights have the
    previous names and shapes and are finite. `together_with` is as in `ReleaseStore.commit`.
    """
    models = dict(previous.models)
    for model, new in weights.items():
        _check_like(previous, store.weights(previous, model), new)
        models[model] = models[model].model_copy(update={"weights": store.add_blob(pack(new))})
    draft = ReleaseDraft.like(previous, models=models)
    if change is not None:
        draft = change(draft)
    return store.commit(draft, note=note, facts=facts, together_with=together_with)


def _check_like(
    previous: ReleaseManifest, old: Mapping[str, NDArray[np.float32]], new: Mapping[str, NDArray[np.float32]]
) -> None:
    if odd := sorted(old.keys() ^ new.keys()):
        raise ReleaseNotPublished(f"The new weights and those of {previous.release} differ in {odd[0]}.", field=odd[0])
    for name, value in old.items():
        try:
            TensorSpec("float32", value.shape).check(name, new[name])
        except TensorError as broken:
            raise ReleaseNotPublished(str(broken), field=name) from broken


def roll_back(store: ReleaseStore, to: ReleaseId) -> ReleaseManifest:
    """Publish an earlier release's content again as a new release; history is never rewritten.

    Release numbers only increase. Raises UnknownRelease, or ReleaseNotKept if its blobs were deleted.
    """
    return store.commit(ReleaseDraft.like(store.require_kept(to)), note=f"back to {to}")
