"""The server's step of the news model. Oracles: the served vectors, and Adam's first step."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from backend.embedding.embedder import HEAD_FILE, trained_folder
from backend.embedding.weights import ALL_MINILM_L6_V2, PACKAGED
from backend.federation.optimizers import Memory
from backend.federation.split.adam_step import run
from backend.federation.split.process import (
    JOB,
    MEMORY,
    TITLES,
    VECTOR_GRADIENTS,
    VECTORS,
    NewsModelFailed,
    SplitStepJob,
    VectorGradients,
    run_step,
)
from backend.settings import BackendSettings
from tests.doubles.small_world import WordEmbedder
from tests.doubles.words_encoder import keep_words_encoder

HEADLINES = ["Oar and scull", "Regatta near the lake", "Ballot recount ordered", "Verdict on appeal", "Kelp and sonar"]
RATE = 5e-4


@pytest.fixture
def settings(tmp_path: Path) -> BackendSettings:
    made = BackendSettings(data_dir=tmp_path / "backend")
    keep_words_encoder(made, HEADLINES)
    return made


def step(
    settings: BackendSettings, folder: Path, slopes: np.ndarray, memory: Memory | None = None
) -> tuple[str, np.ndarray]:
    folder.mkdir()
    rows = tuple(range(len(slopes)))
    job = SplitStepJob(
        encoder_dir=settings.encoder_dir,
        encoder=WordEmbedder.digest,
        bert=PACKAGED,
        bert_sha256=ALL_MINILM_L6_V2,
        learning_rate=RATE,
        rows=rows,
    )
    (folder / JOB).write_text(job.model_dump_json(), encoding="utf-8")
    (folder / TITLES).write_text(json.dumps(HEADLINES), encoding="utf-8")
    if memory is not None:
        (folder / MEMORY).write_bytes(memory.to_bytes())
    np.save(folder / VECTOR_GRADIENTS, slopes)
    return run(folder).encoder, np.load(folder / VECTORS)


def test_vectors_before_the_first_gradient_match_the_current_ones(settings: BackendSettings, tmp_path: Path) -> None:
    _, vectors = step(settings, tmp_path / "job", np.zeros((2, 256)))
    cosines = (vectors * WordEmbedder().encode(HEADLINES)).sum(axis=1)
    assert cosines.min() > 1 - 1e-6, "token states are kept in float16"


def test_first_step_moves_weights_by_the_rate_and_lowers_the_loss(settings: BackendSettings, tmp_path: Path) -> None:
    before = WordEmbedder().encode(HEADLINES)
    slopes = np.stack([before[2], before[3]]).astype(np.float64)  # L = <e_0, before_2> + <e_1, before_3>
    digest, vectors = step(settings, tmp_path / "job", slopes)
    old = load_file(settings.encoder_dir / HEAD_FILE)
    new = load_file(trained_folder(settings.encoder_dir, digest) / HEAD_FILE)
    moved = np.abs(new["head.weight"] - old["head.weight"])
    assert moved.max() == pytest.approx(RATE, rel=1e-3), "Adam's first step is the rate, whatever the gradient's size"
    assert (new["pooling.hidden.weight"] == old["pooling.hidden.weight"]).all(), "q is 0 at first: W has no slope"
    assert new["pooling.query.weight"].any()
    assert (vectors[:2] * slopes).sum() < (before[:2] * slopes).sum() - 0.05


def test_second_step_continues_from_the_stored_optimizer_memory(settings: BackendSettings, tmp_path: Path) -> None:
    slopes = np.full((1, 256), 0.01)
    once, _ = step(settings, tmp_path / "first", slopes)
    memory = Memory.from_bytes((tmp_path / "first" / "new_memory.safetensors").read_bytes())
    assert memory.steps == 1
    again, _ = step(settings, tmp_path / "again", slopes)
    assert again == once, "the same job gives the same encoder"
    later, _ = step(settings, tmp_path / "second", -slopes, memory)
    assert later != once
    fresh, _ = step(settings, tmp_path / "third", -slopes)
    assert fresh != later


def test_failed_process_reports_why(settings: BackendSettings, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    with pytest.raises(NewsModelFailed, match="no news encoder feedbeef"):
        run_step(
            tmp_path / "job",
            encoder_dir=settings.encoder_dir,
            encoder="feedbeef",
            titles=HEADLINES,
            gradient=VectorGradients([0], np.zeros((1, 256))),
            memory=Memory(),
            learning_rate=RATE,
        )
