"""The first release, with a stand-in for exporting: the exporters' own tests cover graphs and parity."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import backend.releases.models
import exporters.package
from backend.releases.codebooks import read_centroids
from backend.releases.errors import ReleaseNotPublished
from backend.releases.publish import RecallTerms, publish_changes, publish_first, publish_rankers, publish_recall
from backend.releases.store import ReleaseStore
from exporters.exported import ExportedModel
from exporters.graph_cache import GraphCache
from exporters.graphs import ranker_graphs
from exporters.parity import ParityError
from exporters.shipped import recall_entry, shipped
from models.recall.basis import BasisRecall
from models.shapes import private_names
from models.user.candidate_attention import FeatureRanker
from protocol.releases import ModelRole
from tests.doubles.news import synthetic_pool
from tests.doubles.small_release import migrated_engine, small_store

VECTORS = synthetic_pool(600).vectors


@pytest.fixture
def store(tmp_path: Path) -> ReleaseStore:
    torch.set_num_threads(1)
    return small_store(migrated_engine(tmp_path), tmp_path, publish=False)


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> list[torch.nn.Module]:
    """Record the exported models, in order."""
    seen: list[torch.nn.Module] = []

    def stand_in(model: torch.nn.Module, cache: GraphCache | None) -> ExportedModel:
        seen.append(model)
        role: ModelRole = "recall" if isinstance(model, BasisRecall) else "ranker"
        graphs = {each: each.encode() for each in (("decompose", "gradient") if role == "recall" else ("score",))}
        if isinstance(model, BasisRecall):  # the distance is calibrated with it
            entry = shipped(recall_entry(model.basis_keys.shape[1], 30, 0.2))
            assert entry is not None
            graphs["context"] = entry.graphs["context"]
        weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
        features = model.features if isinstance(model, FeatureRanker) else ()
        return ExportedModel(type(model).__name__, role, graphs, weights, private_names(model), features)

    monkeypatch.setattr(backend.releases.models, "shipped_model", lambda _: None)
    monkeypatch.setattr(exporters.package, "export_recall", stand_in)
    monkeypatch.setattr(exporters.package, "export_ranker", stand_in)
    return seen


def test_first_release_holds_initial_models_and_a_calibrated_distance(
    store: ReleaseStore, exported: list[torch.nn.Module]
) -> None:
    steps: list[tuple[int, int | None]] = []
    manifest = publish_first(
        store, encoder="digest", vectors=VECTORS, progress=lambda done, total: steps.append((done, total))
    )

    assert (manifest.release, manifest.previous, manifest.encoder, manifest.dimensions) == ("r1", None, "digest", 256)
    assert list(manifest.models) == ["recall", "ranker.features", "ranker.cosine"]
    assert manifest.default_ranker == "ranker.features"
    assert {name: entry.features for name, entry in manifest.models.items() if entry.features} == {
        "ranker.features": ("section_affinity", "topic_affinity", "popularity", "recency")
    }
    assert (manifest.recall.score_clip, manifest.recall.score_noise) == (0.2, 1.2), "the paper's delta and lambda_I"
    assert steps == [(done, 5) for done in range(1, 6)]
    assert store.require_current() == manifest
    calibration = store.history()[0].facts["calibration"]
    assert calibration["cluster_distance"] == manifest.recall.cluster_distance
    assert 3.0 <= calibration["mean_channels"] <= 4.0
    for model, name in zip(exported, manifest.models, strict=True):
        kept = store.weights(manifest, name)
        assert {each: value.shape for each, value in kept.items()} == {
            each: tuple(value.shape) for each, value in model.named_parameters()
        }, "scalars stay scalars"


def test_same_pool_and_seed_give_the_same_weights(store: ReleaseStore, exported: list[torch.nn.Module]) -> None:
    first = publish_first(store, encoder="digest", vectors=VECTORS)
    second = publish_first(store, encoder="digest", vectors=VECTORS)

    assert second.release == "r2"
    assert {name: entry.weights for name, entry in first.models.items()} == {
        name: entry.weights for name, entry in second.models.items()
    }


def test_graph_failing_its_comparison_prevents_the_release(
    store: ReleaseStore, exported: list[torch.nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unequal(*_: object) -> ExportedModel:
        raise ParityError("score", "scores", ["one click"], 0.5, 1e-5)

    monkeypatch.setattr(exporters.package, "export_ranker", unequal)
    with pytest.raises(ReleaseNotPublished, match=r"differs from torch by 0\.5"):
        publish_first(store, encoder="digest", vectors=VECTORS)
    assert store.current() is None
    assert store.sweep(older_than_sec=0) > 0, "the recall model's blobs were on disk already"


@pytest.mark.parametrize(
    "vectors", [VECTORS[:29], np.full((40, 256), np.nan, np.float32), VECTORS[0]], ids=["too few", "NaN", "no matrix"]
)
def test_pool_without_a_basis_prevents_the_release(store: ReleaseStore, vectors: np.ndarray) -> None:
    with pytest.raises(ReleaseNotPublished):
        publish_first(store, encoder="digest", vectors=vectors)
    assert store.current() is None


def test_configured_rankers_are_in_the_first_release(store: ReleaseStore, exported: list[torch.nn.Module]) -> None:
    manifest = publish_first(store, encoder="digest", vectors=VECTORS, rankers=("naml", "lstur"))

    assert list(manifest.models)[3:] == ["ranker.naml", "ranker.lstur"]
    assert manifest.default_ranker == "ranker.features"
    assert manifest.models["ranker.lstur"].private == ("user_embedding",)
    assert "user_embedding" not in store.weights(manifest, "ranker.lstur")


def test_later_rankers_are_added_without_changing_trained_ones(
    store: ReleaseStore, exported: list[torch.nn.Module]
) -> None:
    first = publish_first(store, encoder="digest", vectors=VECTORS, rankers=("naml",))
    trained = {name: value + 1 for name, value in store.weights(first, "ranker.naml").items()}
    before = publish_changes(store, first, {"ranker.naml": trained}, "a round")
    exported.clear()
    steps: list[tuple[int, int | None]] = []
    after = publish_rankers(store, ("naml", "fednewsrec"), progress=lambda done, total: steps.append((done, total)))

    assert after.release == "r3"
    assert list(after.models) == [*before.models, "ranker.fednewsrec"]
    assert {name: after.models[name] for name in before.models} == before.models
    assert [type(model).__name__ for model in exported] == ["FedNewsRecUser"]
    assert steps == [(1, 1)]
    assert publish_rankers(store, ("naml", "fednewsrec")).release == "r3", "nothing is missing, so nothing is published"


def test_models_of_a_release_have_the_width_of_the_pools_vectors(
    store: ReleaseStore, exported: list[torch.nn.Module]
) -> None:
    wide = np.concatenate([VECTORS, np.zeros((len(VECTORS), 400 - VECTORS.shape[1]), np.float32)], axis=1)
    manifest = publish_first(store, encoder="digest", vectors=wide, rankers=("nrms", "fl_mv_dssm"))
    later = publish_rankers(store, ("naml", "lstur", "fednewsrec", "multi_view", "finding_nrms"))

    assert (manifest.dimensions, later.dimensions) == (400, 400)
    assert len(exported) == len(later.models)
    numbers = {name: store.weights(later, name) for name in later.models}
    assert sum(each.size for each in numbers["ranker.nrms"].values()) == 561_601, "Efficient-FedRec's user model"
    assert sum(each.size for each in numbers["ranker.fednewsrec"].values()) == 1_602_002, "FedNewsRec's user model"
    assert numbers["recall"]["basis_keys"].shape == (30, 400)
    for model, name in zip(exported, later.models, strict=True):
        if name != "recall":
            assert {spec.inputs[0].axes[-1] for spec in ranker_graphs(model) if spec.purpose == "score"} == {400}, name
    assert {store.read_weights(book.prototypes)["prototypes"].shape[1] for book in later.recall.codebooks} == {400}


@pytest.mark.parametrize("at_once", [True, False])
def test_groups_ranker_starts_every_group_at_its_own_weights(
    store: ReleaseStore, exported: list[torch.nn.Module], at_once: bool
) -> None:
    manifest = publish_first(store, encoder="digest", vectors=VECTORS, rankers=("finding",) if at_once else ())
    entry = (manifest if at_once else publish_rankers(store, ("finding",))).models["ranker.finding"]
    groups = entry.groups
    assert groups is not None
    assert groups.size == 4
    assert entry.weights is not None
    assert groups.vectors == groups.next_vectors == entry.weights
    blocks = store.read_weights(groups.weights)
    for name, value in store.read_weights(entry.weights).items():
        np.testing.assert_array_equal(blocks[name], np.stack([value] * 4))
    centroids = read_centroids(store, groups.centroids, 4)
    np.testing.assert_allclose(np.linalg.norm(centroids, axis=1), 1, atol=1e-6)
    assert len(np.unique(np.round(centroids, 4), axis=0)) == 4
    assert manifest.models["ranker.features"].groups is None


def test_views_ranker_starts_every_user_tower_at_its_item_tower(
    store: ReleaseStore, exported: list[torch.nn.Module]
) -> None:
    publish_first(store, encoder="digest", vectors=VECTORS)
    entry = publish_rankers(store, ("fl_mv_dssm",)).models["ranker.fl_mv_dssm"]
    assert (entry.architecture, entry.private) == ("SharedViewsRanker", ()), "the stand-in names classes"
    assert entry.weights is not None
    weights = store.read_weights(entry.weights)
    layers = {name.removeprefix("item_tower.") for name in weights if name.startswith("item_tower.")}
    assert len(weights) == 3 * len(layers) > 0
    for view in ("reading", "searches"):
        for layer in layers:
            np.testing.assert_array_equal(weights[f"user_towers.{view}.{layer}"], weights[f"item_tower.{layer}"])


def test_first_release_uses_the_configured_terms(store: ReleaseStore, exported: list[torch.nn.Module]) -> None:
    terms = RecallTerms(basis_size=12, cluster_distance=1.0, score_clip=0.5, score_noise=2.0)
    recall = publish_first(store, encoder="digest", vectors=VECTORS, terms=terms).recall
    assert (recall.basis_size, recall.cluster_distance, recall.score_clip, recall.score_noise) == (12, 1.0, 0.5, 2.0)
    assert exported[0].basis_keys.shape == (12, 256)
    assert terms.wanting(recall) == {}


def test_changed_distance_or_noise_keeps_the_recall_model(store: ReleaseStore, exported: list[torch.nn.Module]) -> None:
    first = publish_first(store, encoder="digest", vectors=VECTORS)
    exported.clear()
    after = publish_recall(store, VECTORS, RecallTerms(cluster_distance=1.0, score_noise=2.0))
    assert exported == []
    assert after.models == first.models
    assert after.recall == first.recall.model_copy(update={"cluster_distance": 1.0, "score_noise": 2.0})
    assert store.history()[0].note == "recall as the settings ask for it: cluster_distance 1, score_noise 2"
    assert publish_recall(store, VECTORS, RecallTerms(cluster_distance=1.0)) == after, "nothing differs"


def test_changed_basis_replaces_only_the_recall_model(store: ReleaseStore, exported: list[torch.nn.Module]) -> None:
    first = publish_first(store, encoder="digest", vectors=VECTORS)
    exported.clear()
    after = publish_recall(store, VECTORS, RecallTerms(basis_size=12, cluster_distance=1.0))
    (recall,) = exported
    assert isinstance(recall, BasisRecall)
    assert (after.recall.basis_size, after.recall.cluster_distance, len(recall.basis_keys)) == (12, 1.0, 12)
    assert after.recall.score_clip == first.recall.score_clip
    assert store.weights(after, "recall")["basis_values"].shape == (12, 256)
    assert {name: entry for name, entry in after.models.items() if name != "recall"} == {
        name: entry for name, entry in first.models.items() if name != "recall"
    }
