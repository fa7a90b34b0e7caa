"""Learning of a codebook continues after the news model has rotated the vector space."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from backend.federation.grouping import Drift
from backend.federation.optimizers import Memory
from backend.federation.strategies.learned_codebook import LearnedCodebook, turned_memory
from backend.releases.alignment import ProcrustesAlignment
from protocol.releases import BlobRef, Codebook, ReleaseManifest

K, D = 4, 6
BOOK = Codebook(size=K, epsilon=4.0, prototypes=BlobRef(sha256="a" * 64, size_bytes=1))
OTHER = Codebook(size=K, epsilon=4.0, prototypes=BlobRef(sha256="b" * 64, size_bytes=1))


def release(encoder: str, book: Codebook) -> ReleaseManifest:
    return ReleaseManifest.model_validate(
        {
            "release": "r1",
            "previous": None,
            "created_at": datetime(2026, 11, 20, tzinfo=UTC),
            "encoder": encoder,
            "dimensions": D,
            "opset": 18,
            "recall": {
                "basis_size": 1,
                "channels_limit": 1,
                "cluster_distance": 1.0,
                "score_clip": 0.2,
                "score_noise": 1.2,
                "codebooks": (book,),
            },
            "models": {},
            "default_ranker": "none",
        }
    )


@pytest.fixture
def draft() -> Drift:
    rows = np.random.default_rng(0).normal(size=(K, D))
    return Drift.begin((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))


def test_draft_is_rotated_with_its_codebook_and_keeps_its_counts(draft: Drift) -> None:
    learns = LearnedCodebook(size=K)
    before = learns._memory(draft, 3, "first", BOOK)
    quarter = np.eye(D)[[1, 0, 2, 3, 4, 5]] * [1, -1, 1, 1, 1, 1]
    after = turned_memory(before, ProcrustesAlignment(quarter, 0.1, 0.0), release("first", BOOK), "second")
    assert after is not None
    assert after.steps == 3
    assert after.tensors["means"] == pytest.approx(draft.means @ quarter)
    assert after.tensors["variances"] == pytest.approx(draft.variances), "alike in all directions"
    again = turned_memory(after, ProcrustesAlignment(quarter.T, 0.1, 0.0), release("second", BOOK), "first")
    assert again is not None
    for name, each in before.tensors.items():
        assert again.tensors[name] == pytest.approx(each, abs=1e-12), name


def test_unrelated_drafts_are_not_rotated(draft: Drift) -> None:
    alignment = ProcrustesAlignment(np.eye(D), 0.0, 0.0)
    kept = LearnedCodebook(size=K)._memory(draft, 3, "first", BOOK)
    assert turned_memory(kept, alignment, release("first", OTHER), "second") is None
    assert turned_memory(kept, alignment, release("second", BOOK), "third") is None
    assert turned_memory(Memory(2, {"m.weight": np.ones(3)}), alignment, release("first", BOOK), "second") is None
