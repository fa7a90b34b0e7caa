"""Pooled states without torch, and their public shards. Oracle: torch's pooling in float64."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from backend.embedding.embedder import HEAD_FILE, HEAD_GRADIENT_FILE
from backend.embedding.pooled_states import PooledStates
from backend.embedding.state_store import STATES_FOLDER
from backend.embedding.weights import BertWeights
from backend.federation.split.news_model_files import StoredEncoder
from backend.federation.strategies.news_head import SHARD_ROWS, shards
from backend.news.pool_reading import PoolRow
from backend.settings import BackendSettings
from protocol.pooled_states import joined_states, pack_states, unpack_head
from protocol.tensors import TensorError, pack
from tests.doubles.small_world import DIMENSIONS, WordEmbedder
from tests.doubles.words_encoder import keep_words_encoder, token_states

HEADLINES = ["Oar and scull", "Regatta near the lake", "Ballot recount ordered", "Verdict on appeal", "Kelp"]
NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An encoder whose pooling is trained, so that it weights word pieces differently."""
    settings = BackendSettings(data_dir=tmp_path / "backend")
    keep_words_encoder(settings, HEADLINES)
    head = load_file(settings.encoder_dir / HEAD_FILE)
    head["pooling.query.weight"] = np.random.default_rng(1).normal(size=head["pooling.query.weight"].shape)
    save_file({name: each.astype(np.float32) for name, each in head.items()}, settings.encoder_dir / HEAD_FILE)
    return settings.encoder_dir


def test_pooled_states_match_torch_and_are_cached(folder: Path) -> None:
    pooling = StoredEncoder.find(folder, WordEmbedder.digest).load(BertWeights(folder, ""), 0).double().pooling
    made = PooledStates(folder, WordEmbedder.digest)
    found = made.of(HEADLINES)
    means = []
    for row, title in enumerate(HEADLINES):
        states = torch.from_numpy(token_states(title).astype(np.float64))[None]
        with torch.no_grad():
            wanted = pooling(states, torch.ones(states.shape[:2], dtype=torch.float64))[0].numpy()
        assert found[row] == pytest.approx(wanted, abs=2e-3, rel=1e-3)
        means.append(np.abs(wanted - states[0].numpy().mean(axis=0)).max())
    assert max(means) > 0.1, "it is no mean"
    assert (found.dtype, made.width) == (np.dtype(np.float16), DIMENSIONS)
    shutil.rmtree(folder / STATES_FOLDER / "below-0")
    again = PooledStates(folder, WordEmbedder.digest).of([*HEADLINES[::-1], HEADLINES[0]])
    assert (again == found[[4, 3, 2, 1, 0, 0]]).all(), "token states are read once"


def test_missing_head_gradient_graph_is_reported(folder: Path) -> None:
    (folder / HEAD_GRADIENT_FILE).unlink()
    with pytest.raises(FileNotFoundError):
        PooledStates(folder, WordEmbedder.digest)
    with pytest.raises(FileNotFoundError, match="no news encoder feedbeef"):
        PooledStates(folder, "feedbeef")


def pool_row(number: int, published_at: datetime) -> PoolRow:
    return PoolRow(
        number=number,
        id=f"n{number}",
        title=f"title {number}",
        abstract="",
        url="",
        publisher="",
        section="",
        topic="",
        story=None,
        published_at=published_at,
        weight=0.5,
        duplicate_of=None,
    )


def test_new_articles_change_only_the_last_shard_of_a_day() -> None:
    rows = [pool_row(number, NOW - timedelta(hours=number % 40)) for number in range(SHARD_ROWS * 3)]
    states = np.random.default_rng(0).normal(size=(len(rows), 4)).astype(np.float16)
    cut = dict(shards(rows, states, pack_states))
    assert list(cut) == ["2026-11-18.0", "2026-11-19.0", "2026-11-19.1", "2026-11-20.0"]
    place, joined = joined_states(list(cut.values()), 4)
    assert len(place) == len(rows)
    assert all((joined[place[row.id]] == states[number]).all() for number, row in enumerate(rows))
    more = dict(shards([*rows, pool_row(len(rows), NOW)], np.concatenate([states, states[:1]]), pack_states))
    assert {name for name in more if more[name] != cut[name]} == {"2026-11-20.0"}


def test_shard_that_does_not_match_its_description_is_refused() -> None:
    states = np.zeros((2, 4), np.float16)
    assert joined_states([pack_states(["a", "b"], states)], 4)[0] == {"a": 0, "b": 1}
    broken = {
        "2 rows": pack_states(["a"], states),
        "shape": pack_states(["a", "b"], np.zeros((2, 5), np.float16)),
        "finite": pack_states(["a", "b"], np.full((2, 4), np.inf, np.float16)),
        "JSON list": pack({"ids": np.zeros(3, np.uint8), "states": states}),
    }
    for said, blob in broken.items():
        with pytest.raises(TensorError, match=said):
            joined_states([blob], 4)
    with pytest.raises(TensorError, match=r"head\.bias"):
        unpack_head(pack({"head.weight": np.zeros((3, 4), np.float32), "head.bias": np.zeros(2, np.float32)}), 3)
    rows, found = joined_states([], 4)
    assert (rows, found.shape) == ({}, (0, 4))
