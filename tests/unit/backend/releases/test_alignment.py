"""Directions of a release under another news encoder. Oracle: an encoder that is the first one rotated by a known Q."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sqlalchemy import create_engine

from backend.recall.posterior import code_weights
from backend.releases.alignment import ProcrustesAlignment, aligned
from backend.releases.blobs import ReleaseDraft
from backend.releases.codebooks import put_centroids, read_centroids, topic_centroids
from backend.releases.signing import KeyFile
from backend.releases.store import ReleaseStore
from backend.storage.object_store import LocalFolder
from device_app.privacy.mechanisms.code import RandomisedCode, nearest
from device_app.privacy.reporter import ReportMeaning, user_vector
from device_app.privacy.settings import ModeName
from device_app.reports.policy import reporter_of
from device_app.reports.reporters import PublicVectors, ReportRelease
from device_app.settings import PrivacySettings
from models.builders.recall import basis_recall
from models.recall.basis import BasisRecall
from protocol.releases import Codebook, Groups, ModelEntry, RecallProtocol
from protocol.tensors import pack
from tests.doubles.recall_world import log_probabilities

D, K, BASIS, NEWS, TOPICS, READERS = 16, 8, 6, 1_200, 24, 120
SHARPNESS = 4.0


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), dtype=np.float32)


def some_alignment(angle: float, seed: int = 1) -> np.ndarray:
    """Return a rotation [D, D] that turns every plane by about this angle."""
    half = np.random.default_rng(seed).normal(size=(D, D))
    skew = angle * (half - half.T) / np.sqrt(2 * D)
    return np.asarray(torch.matrix_exp(torch.from_numpy(skew)))


@dataclass(frozen=True)
class TopicPool:
    """Articles of topics, and readers of two topics each: rows of clicks, and of their next clicks."""

    vectors: np.ndarray
    clicks: tuple[np.ndarray, ...]
    later: tuple[np.ndarray, ...]


@pytest.fixture(scope="module")
def pool() -> TopicPool:
    rng = np.random.default_rng(0)
    centres = unit(rng.normal(size=(TOPICS, D)))
    topic = rng.integers(TOPICS, size=NEWS)
    vectors = unit(centres[topic] + 0.35 * rng.normal(size=(NEWS, D)) / np.sqrt(D) * 2)
    clicks, later = [], []
    for _ in range(READERS):
        mine = np.flatnonzero(np.isin(topic, rng.choice(TOPICS, size=2, replace=False)))
        drawn = rng.permutation(mine)
        clicks.append(drawn[:12])
        later.append(drawn[12:])
    return TopicPool(vectors, tuple(clicks), tuple(later))


@pytest.fixture
def store(tmp_path: Path) -> ReleaseStore:
    return ReleaseStore(create_engine("sqlite://"), LocalFolder(tmp_path / "blobs"), KeyFile(tmp_path / "key"))


def recall_model(vectors: np.ndarray) -> BasisRecall:
    torch.manual_seed(3)
    model = basis_recall(heads=4, head_dim=4, attention_dim=4, basis_size=BASIS, score_clip=0.2)
    model.cosine_start(torch.from_numpy(topic_centroids(vectors, basis_size=BASIS, seed=7)[0]))
    with torch.no_grad():  # as after some rounds
        for each in model.parameters():
            each.add_(0.1 * torch.randn_like(each))
    return model


def draft(store: ReleaseStore, vectors: np.ndarray) -> ReleaseDraft:
    prototypes = unit(topic_centroids(vectors, basis_size=K, seed=7)[0])
    state = {name: each.detach().numpy().copy() for name, each in recall_model(vectors).named_parameters()}
    weights = store.add_blob(pack({"beta": np.zeros(1, np.float32)}))
    centroids = put_centroids(store, prototypes[:3])
    groups = Groups(size=3, weights=weights, centroids=centroids, vectors=weights, next_centroids=centroids,
                    next_vectors=weights)  # fmt: skip
    return ReleaseDraft(
        encoder="first",
        dimensions=D,
        opset=18,
        recall=RecallProtocol(
            basis_size=BASIS,
            channels_limit=5,
            cluster_distance=1.0,
            score_clip=0.2,
            score_noise=1.2,
            codebooks=(Codebook(size=K, epsilon=4.0, prototypes=store.add_blob(pack({"prototypes": prototypes}))),),
        ),
        models={
            "recall": ModelEntry(
                architecture="uni_fedrec", role="recall", graphs={}, weights=store.add_blob(pack(state))
            ),
            "ranker.grouped": ModelEntry(architecture="any", role="ranker", graphs={}, weights=weights, groups=groups),
        },
        default_ranker="ranker.grouped",
    )


def prototypes_of(store: ReleaseStore, release: ReleaseDraft) -> np.ndarray:
    book = release.recall.codebooks[0]
    return store.read_weights(book.prototypes)["prototypes"]


def codes(pool: TopicPool, vectors: np.ndarray, prototypes: np.ndarray) -> list[int]:
    return [nearest(prototypes, user_vector(vectors[rows])) for rows in pool.clicks]


def recall_by_code(pool: TopicPool, vectors: np.ndarray, prototypes: np.ndarray, depth: int = 100) -> np.ndarray:
    """Return by reader the share of next clicks in the list that `code` fetches, in expectation over its noise."""
    protection = RandomisedCode(K, 4.0)
    likely = np.exp(log_probabilities(prototypes, vectors, np.zeros(len(vectors), np.float32), SHARPNESS))
    even = np.full(K, 1 / K)
    lists = [np.argsort(-(code_weights(even, 4.0, code) @ likely), kind="stable")[:depth] for code in range(K)]
    found = []
    for code, later in zip(codes(pool, vectors, prototypes), pool.later, strict=True):
        sent = np.full(K, (1 - protection.truth) / (K - 1))
        sent[code] = protection.truth
        found.append(sent @ [np.isin(later, rows).mean() for rows in lists])
    return np.array(found)


def test_rotation_of_a_pool_is_recovered_exactly(pool: TopicPool) -> None:
    wanted = some_alignment(1.0)
    alignment = ProcrustesAlignment.between(pool.vectors, (pool.vectors @ wanted).astype(np.float32))
    assert alignment.matrix == pytest.approx(wanted, abs=1e-3), "but for the pull"
    assert alignment.matrix @ alignment.matrix.T == pytest.approx(np.eye(D), abs=1e-12)
    assert alignment.left < 1e-4
    assert ProcrustesAlignment.between(pool.vectors, pool.vectors).matrix == pytest.approx(np.eye(D), abs=1e-9)


def test_directions_outside_the_pool_stay_unchanged() -> None:
    old = np.zeros((50, D), np.float32)
    old[:, :4] = unit(np.random.default_rng(2).normal(size=(50, 4)))
    new = old.copy()
    new[:, [0, 1]] = old[:, [1, 0]] * [1, -1]
    matrix = ProcrustesAlignment.between(old, new).matrix
    assert matrix[4:, 4:] == pytest.approx(np.eye(D - 4), abs=1e-9)
    assert matrix[:2, :2] == pytest.approx(np.array([[0, -1], [1, 0]]), abs=1e-3)


@pytest.mark.parametrize("broken", [np.zeros((3, D)), np.full((NEWS, D), np.nan), np.zeros((0, D))])
def test_mismatched_vectors_are_refused(pool: TopicPool, broken: np.ndarray) -> None:
    with pytest.raises(ValueError, match="old, new"):
        ProcrustesAlignment.between(pool.vectors if len(broken) else broken, broken)


def test_encoder_rotation_leaves_reports_lists_and_groups_unchanged(pool: TopicPool, store: ReleaseStore) -> None:
    first = draft(store, pool.vectors)
    vectors = (pool.vectors @ some_alignment(0.8)).astype(np.float32)
    alignment = ProcrustesAlignment.between(pool.vectors, vectors)
    after = aligned(replace(first, encoder="second"), alignment, store)

    before_codes = codes(pool, pool.vectors, prototypes_of(store, first))
    assert codes(pool, vectors, prototypes_of(store, after)) == before_codes
    assert codes(pool, vectors, prototypes_of(store, first)) != before_codes, "left behind, they would lie elsewhere"
    here = recall_by_code(pool, vectors, prototypes_of(store, after))
    assert here == pytest.approx(recall_by_code(pool, pool.vectors, prototypes_of(store, first)), abs=0.02)

    centroids = [
        read_centroids(store, groups.next_centroids, 3)
        for release in (first, after)
        if (groups := release.models["ranker.grouped"].groups) is not None
    ]
    assert vectors @ centroids[1].T == pytest.approx(pool.vectors @ centroids[0].T, abs=3e-3)


def test_aligned_recall_model_scores_as_before(pool: TopicPool, store: ReleaseStore) -> None:
    first = draft(store, pool.vectors)
    vectors = (pool.vectors @ some_alignment(0.8)).astype(np.float32)
    after = aligned(first, ProcrustesAlignment.between(pool.vectors, vectors), store)
    found = []
    for release, table in ((first, pool.vectors), (after, vectors)):
        model, ref = recall_model(pool.vectors), release.models["recall"].weights
        assert ref is not None
        model.load_state_dict({name: torch.from_numpy(each) for name, each in store.read_weights(ref).items()})
        clicks = torch.from_numpy(np.stack([table[rows] for rows in pool.clicks]))
        mask = torch.ones(clicks.shape[:2])
        with torch.no_grad():
            contexts = model.contexts(clicks, mask)
            scores = model.decompose(contexts, mask[:, None])
            wanted = model.aggregate(model.clip(scores))[:, 0] @ torch.from_numpy(table).T
        found.append((contexts.numpy(), scores.numpy(), wanted.numpy()))
    for before, now in zip(*found, strict=True):
        assert now == pytest.approx(before, abs=5e-3 * float(np.abs(before).max()))


def test_code_recall_does_not_decline_when_the_encoder_rotates_and_learns(pool: TopicPool, store: ReleaseStore) -> None:
    first = draft(store, pool.vectors)
    learned = 0.1 * np.random.default_rng(8).normal(size=pool.vectors.shape) / np.sqrt(D)
    vectors = unit(pool.vectors @ some_alignment(1.2) + learned)
    before = recall_by_code(pool, pool.vectors, prototypes_of(store, first))
    after = aligned(first, ProcrustesAlignment.between(pool.vectors, vectors), store)
    change = recall_by_code(pool, vectors, prototypes_of(store, after)) - before
    left = recall_by_code(pool, vectors, prototypes_of(store, first)) - before
    assert change.mean() > -2 * change.std() / np.sqrt(READERS) - 0.003
    assert left.mean() < -2 * left.std() / np.sqrt(READERS), "an encoder that turned less would show nothing"


def test_codebook_keeps_its_origin_when_rotated_to_a_new_encoder(pool: TopicPool, store: ReleaseStore) -> None:
    first = draft(store, pool.vectors)
    alignment = ProcrustesAlignment.between(pool.vectors, (pool.vectors @ some_alignment(0.1)).astype(np.float32))
    second = aligned(first, alignment, store)
    third = aligned(second, alignment, store)
    books = [each.recall.codebooks[0] for each in (first, second, third)]
    assert len({book.prototypes.sha256 for book in books}) == 3
    assert len({book.origin for book in books}) == 1
    under = [ReportRelease(f"r{at}", f"enc-{at}", f"enc-{at}/0") for at in range(3)]
    for mode in ("code", "subset", "topics"):
        kept, once, twice = (
            meaning_of(mode, each, store, where) for each, where in zip((first, second, third), under, strict=True)
        )
        assert kept.carried_to(once), mode
        assert kept.carried_to(twice), mode
        assert len({kept.name, once.name, twice.name}) == 3, "a number drawn again is charged in each of them"
        assert not kept.carried_to(meaning_of(mode, second, store, under[0])), "a turn without another encoder"
    assert not meaning_of("basis_l1", first, store, under[0]).carried_to(meaning_of("basis_l1", third, store, under[2]))


def meaning_of(mode: ModeName, draft: ReleaseDraft, store: ReleaseStore, under: ReportRelease) -> ReportMeaning:
    recall = draft.recall
    spaces = PublicVectors({K: prototypes_of(store, draft)})
    reporter = reporter_of(PrivacySettings(mode=mode), recall, spaces, under)
    assert reporter is not None
    return reporter.meaning
