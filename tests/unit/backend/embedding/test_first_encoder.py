"""The real news encoder, made once from some 50 titles. Oracle: BERT through transformers, pooled by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from transformers import AutoModel, AutoTokenizer

import backend.embedding.initial_encoder as first
import backend.embedding.torch_encoder as torch_encoder
from backend.composition import build_services
from backend.embedding.embedder import (
    HEAD_GRADIENT_FILE,
    PIECES_LIMIT,
    EncoderMissing,
    OnnxEmbedder,
    ProgressCallback,
    check_dimensions,
    length_buckets,
    load_embedder,
    state_store,
    trained_folder,
)
from backend.embedding.encoder_files import EncoderDamaged
from backend.embedding.initial_encoder import EncoderDiffers, load_tokenizer, make_initial_encoder
from backend.embedding.pooled_states import LayersTrained, PooledStates
from backend.embedding.weights import PACKAGED, BertWeights, find_weights
from backend.errors import BackendSettingsRefused, TrainingNotInstalled
from backend.federation.optimizers import Memory
from backend.federation.split.news_model_files import LAYERS_FILE, LayersRefused, StoredEncoder, keep, named_weights
from backend.federation.split.process import VectorGradients, run_step
from backend.server.progress import Advance, SilentSteps
from backend.settings import BackendSettings, load_settings
from backend.setup.first_start import make_servable
from tests.doubles.long_form import by_length
from tests.doubles.small_world import hand_made_news

TITLES = [
    *(item.title for item in hand_made_news(datetime(2026, 11, 20, tzinfo=UTC))[::12]),
    *(f"Council of {place} votes on {matter}" for place in ("Riga", "Cork", "Porto") for matter in ("a tram", "bins")),
    *(f"{team} win {score} after a late goal" for team in ("Ajax", "Celtic", "Lyon") for score in ("1-0", "3-2")),
    "👷 ⚽ 🎻",
    "مدينة جديدة على الساحل",
    "עיר חדשה על החוף",
    "北京 opens a bridge",
    "x",
    "word " * 2_000,
]
ODD = TITLES[-6:]
FILES = ("encoder.json", "encoder.onnx", "head.safetensors", "tokenizer.json")
DAMAGES = ("truncated", "empty", "bit flipped", "another file")
"""The short form has each file and each damage: a file is known by its hash, whatever was done to it."""


class RecordedSteps(SilentSteps):
    """Records the titles of the steps that ran."""

    def __init__(self) -> None:
        self.reported: list[str] = []

    @contextmanager
    def step(self, title: str) -> Iterator[Advance]:
        self.reported.append(title)
        with super().step(title) as advance:
            yield advance


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> BackendSettings:
    made = BackendSettings(data_dir=tmp_path_factory.mktemp("encoder"), embed_threads=1)
    make_initial_encoder(made, lambda: TITLES)
    return made


@pytest.fixture(scope="module")
def embedder(settings: BackendSettings) -> OnnxEmbedder:
    return load_embedder(settings)


@pytest.fixture(scope="module")
def pooled() -> NDArray[np.float32]:
    """Return means of BERT's token states over the real word pieces [n, 384], by transformers' tokenizer and model."""
    folder = find_weights(PACKAGED).folder
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    bert = AutoModel.from_pretrained(folder, local_files_only=True).eval()
    rows = []
    with torch.inference_mode():
        for title in TITLES:
            fed = tokenizer(title, truncation=True, max_length=PIECES_LIMIT, return_tensors="pt")
            rows.append(bert(**fed).last_hidden_state[0].mean(dim=0).numpy())
    return np.stack(rows)


def test_graph_matches_torchs_mean_pooled_vectors(
    settings: BackendSettings, embedder: OnnxEmbedder, pooled: NDArray[np.float32]
) -> None:
    head = load_file(settings.encoder_dir / "head.safetensors")
    wanted = pooled @ head["head.weight"].T + head["head.bias"]
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    found = embedder.encode(TITLES)
    assert found.shape == (len(TITLES), 256)
    assert found.dtype == np.float32
    cosines = (found * wanted).sum(axis=1)
    assert cosines.min() > 0.99999, TITLES[int(cosines.argmin())][:60]


def test_head_keeps_the_cosines_of_the_full_states(embedder: OnnxEmbedder, pooled: NDArray[np.float32]) -> None:
    full = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    found = embedder.encode(TITLES)
    difference = np.abs(full @ full.T - found @ found.T)
    assert difference.mean() < 0.01
    assert np.corrcoef((full @ full.T).ravel(), (found @ found.T).ravel())[0, 1] > 0.999


def test_encoder_whose_vector_size_differs_from_the_settings_is_refused(
    settings: BackendSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWNFEED_BACKEND_NEWS_DIMENSIONS", "400")
    wide = load_settings(data_dir=settings.data_dir)
    for start in (build_services, lambda it: make_servable(it, SilentSteps())):
        with pytest.raises(
            BackendSettingsRefused, match=r"news_dimensions: 400, but vectors in .* have 256"
        ) as refused:
            start(wide)
        assert (refused.value.field, refused.value.limit) == ("news_dimensions", "256")
    check_dimensions(load_settings(data_dir=settings.data_dir / "empty"))  # nothing is made there yet
    with pytest.raises(BackendSettingsRefused, match=r"news_dimensions: .*256 or 400"):
        load_settings(data_dir=settings.data_dir, news_dimensions=384)


def test_titles_on_one_subject_are_closer_before_any_training(embedder: OnnxEmbedder) -> None:
    vectors = embedder.encode(
        [
            "Striker scores twice as United beat City",
            "Late goal gives Rovers a cup win",
            "Central bank raises interest rates again",
            "Inflation slows, easing pressure on lenders",
        ]
    )
    cosine = vectors @ vectors.T
    assert min(cosine[0, 1], cosine[2, 3]) > max(cosine[0, 2], cosine[0, 3], cosine[1, 2], cosine[1, 3]) + 0.1


def test_vectors_have_length_one_for_any_title(embedder: OnnxEmbedder) -> None:
    vectors = embedder.encode(ODD)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert embedder.encode([]).shape == (0, 256)
    assert np.isfinite(embedder.encode([""])).all()


def test_vector_does_not_depend_on_its_batch(embedder: OnnxEmbedder) -> None:
    together = embedder.encode(TITLES)
    for row in (0, 20, 40, len(TITLES) - 1):
        assert float(embedder.encode([TITLES[row]])[0] @ together[row]) > 0.99999


def test_progress_of_encoding_ends_at_the_number_of_titles(embedder: OnnxEmbedder) -> None:
    reported: list[tuple[int, int]] = []
    embedder.encode((TITLES * 2)[:100], progress=lambda done, total: reported.append((done, total)))
    assert reported[-1] == (100, 100)
    assert reported == sorted(reported)
    assert len(reported) == 7, "batches of 16"


def test_batches_hold_every_title_once_with_little_padding() -> None:
    tokenizer = load_tokenizer(find_weights(PACKAGED))
    batches = list(length_buckets(tokenizer, TITLES, 16))
    assert sorted(int(row) for batch in batches for row in batch.rows) == list(range(len(TITLES)))
    lengths = [int(line.sum()) for batch in batches for line in batch.mask]
    assert lengths == sorted(lengths)
    assert lengths[-1] == PIECES_LIMIT
    for batch in batches:
        assert batch.pieces.shape == batch.mask.shape
        assert batch.mask.shape[1] == batch.mask.sum(axis=1).max()
        assert (batch.pieces[batch.mask == 0] == 0).all()


def test_description_names_weights_and_digest(settings: BackendSettings, embedder: OnnxEmbedder) -> None:
    about = json.loads((settings.encoder_dir / "encoder.json").read_text(encoding="utf-8"))
    assert about["bert_sha256"] == find_weights(PACKAGED).sha256
    assert about["digest"] == embedder.digest
    assert (len(embedder.digest), embedder.dimensions) == (16, 256)
    assert {path.name for path in settings.data_dir.iterdir()} == {"encoder"}, "no scratch is left"


def test_head_that_does_not_match_its_description_is_refused(settings: BackendSettings, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    folder.mkdir()
    for file in settings.encoder_dir.iterdir():
        (folder / file.name).symlink_to(file)
    head = load_file(folder / "head.safetensors")
    (folder / "head.safetensors").unlink()
    head["head.weight"][0, 0] = np.nan
    save_file(head, folder / "head.safetensors")
    with pytest.raises(EncoderDamaged, match=r"head\.safetensors is damaged: .*head\.weight"):
        OnnxEmbedder(folder, threads=1)


@pytest.mark.long_form
@pytest.mark.parametrize(
    ("name", "damage"),
    by_length(
        [*zip(FILES, DAMAGES, strict=True), ("encoder.json", "bit flipped"), ("encoder.onnx", "bit flipped")],
        long=[*product(FILES, DAMAGES)],
    ),
)
def test_damaged_encoder_file_is_named_in_the_error_and_gives_no_vector(
    settings: BackendSettings, tmp_path: Path, name: str, damage: str
) -> None:
    folder = tmp_path / "encoder"
    folder.mkdir()
    for file in settings.encoder_dir.iterdir():
        (folder / file.name).symlink_to(file)
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    place = len(content) - len(content) // 3
    flipped = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
    wrong = {"truncated": content[:place], "bit flipped": flipped, "empty": b"", "another file": b"\x89PNG\r\n\x1a\n"}
    (folder / name).write_bytes(wrong[damage])
    if name == "encoder.json" and damage == "bit flipped":
        (folder / name).write_bytes(content.replace(b'"digest"', b'"dagest"'))
    with pytest.raises(EncoderDamaged, match=rf"{name} is damaged"):
        OnnxEmbedder(folder, threads=1)


@pytest.mark.parametrize("damaged", [None, "encoder.onnx", "tokenizer.json"])
def test_round_refuses_to_build_on_a_damaged_shared_file(
    settings: BackendSettings, tmp_path: Path, damaged: str | None
) -> None:
    """Regression: the description of the trained encoder had the damaged file's hash."""
    folder, bert = tmp_path / "encoder", find_weights(PACKAGED)
    folder.mkdir()
    for file in settings.encoder_dir.iterdir():
        (folder / file.name).symlink_to(file)
    upper = StoredEncoder.find(folder, load_embedder(settings).digest).load(bert, 0)
    weights = named_weights(upper)
    weights["head.bias"] += 1
    if damaged is None:
        digest = keep(folder, upper, weights, bert)
        about = [json.loads((each / "encoder.json").read_bytes()) for each in (folder, trained_folder(folder, digest))]
        assert about[1]["sha256"] == about[0]["sha256"]
        assert set(about[0]["sha256"]) == {"graph", "tokenizer"}
        return
    content = bytearray((folder / damaged).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / damaged).unlink()
    (folder / damaged).write_bytes(content)
    with pytest.raises(EncoderDamaged, match=f"{damaged} is damaged"):
        keep(folder, upper, weights, bert)
    assert list(folder.glob("trained/*")) == [], "nothing half-written"


def test_second_data_folder_has_the_same_graphs_and_fits_its_own_head(
    settings: BackendSettings, tmp_path: Path
) -> None:
    other = BackendSettings(data_dir=tmp_path, embed_threads=1)
    called: list[str] = []
    make_initial_encoder(other, lambda: called.append("titles") or TITLES[:40])  # type: ignore[func-returns-value]
    assert called == ["titles"]
    assert load_embedder(other).digest != load_embedder(settings).digest
    for file in ("encoder.onnx", HEAD_GRADIENT_FILE):
        assert (other.encoder_dir / file).read_bytes() == (settings.encoder_dir / file).read_bytes()


@pytest.fixture
def not_shipped(settings: BackendSettings, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make the packaged BERT one whose graph no version ships; records exports, which take long and give the same."""
    exports: list[str] = []

    def exported(weights: BertWeights, dimensions: int) -> tuple[bytes, bytes]:
        exports.append(weights.sha256)
        graph, head_gradient = (settings.encoder_dir / name for name in ("encoder.onnx", HEAD_GRADIENT_FILE))
        return graph.read_bytes(), head_gradient.read_bytes()

    monkeypatch.setattr(first, "shipped", lambda _: None)
    monkeypatch.setattr(torch_encoder, "export_encoder", exported)
    return exports


def test_graph_of_another_bert_is_exported_once_and_compared_with_torch(
    settings: BackendSettings, tmp_path: Path, not_shipped: list[str]
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        made = BackendSettings(data_dir=tmp_path / name, graphs_dir=tmp_path / "graphs", embed_threads=1)
        make_initial_encoder(made, lambda: TITLES)
        assert load_embedder(made).digest == load_embedder(settings).digest, "the same titles give the same head"
    assert not_shipped == [find_weights(PACKAGED).sha256]


def test_graph_that_differs_from_torch_is_not_kept(
    tmp_path: Path, not_shipped: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class NegatingEmbedder(OnnxEmbedder):
        def encode(self, titles: Sequence[str], *, progress: ProgressCallback | None = None) -> np.ndarray:
            return -super().encode(titles, progress=progress)

    monkeypatch.setattr(first, "OnnxEmbedder", NegatingEmbedder)
    elsewhere = BackendSettings(data_dir=tmp_path, embed_threads=1)
    with pytest.raises(EncoderDiffers, match="has cosine -1"):
        make_initial_encoder(elsewhere, lambda: TITLES[:40])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    with pytest.raises(EncoderMissing):
        load_embedder(elsewhere)


def test_another_bert_without_torch_is_refused_in_one_line(
    tmp_path: Path, not_shipped: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.errors.training_is_installed", lambda: False)
    with pytest.raises(TrainingNotInstalled, match=r"another BERT .* pip install 'ownfeed\[train\]'") as refused:
        make_initial_encoder(BackendSettings(data_dir=tmp_path), lambda: TITLES)
    assert "\n" not in refused.value.detail
    assert not_shipped == []


def test_pooled_states_match_berts_and_new_titles_are_encoded(
    settings: BackendSettings, embedder: OnnxEmbedder, pooled: NDArray[np.float32]
) -> None:
    found = PooledStates(settings.encoder_dir, embedder.digest).of(TITLES)
    assert found == pytest.approx(pooled, abs=4e-3), "twice rounded to float16"
    assert state_store(settings.encoder_dir).missing(TITLES) == []


@pytest.mark.long_form
@pytest.mark.parametrize("layers", by_length([], long=[1]))
def test_encoder_with_trained_layers_has_its_own_matching_graph(
    settings: BackendSettings, embedder: OnnxEmbedder, tmp_path: Path, layers: int
) -> None:
    """In the long form alone: it exports BERT again. test_news_layers trains layers of a tiny BERT."""
    titles = TITLES[:24]
    made = run_step(
        tmp_path,
        encoder_dir=settings.encoder_dir,
        encoder=embedder.digest,
        titles=titles,
        gradient=VectorGradients([0, 5], np.stack([embedder.encode(titles)[3]] * 2)),
        memory=Memory(),
        learning_rate=1e-3,
        layers=layers,
        niceness=0,
    )
    trained = load_embedder(settings, made.done.encoder)
    assert trained.digest == made.done.encoder != embedder.digest
    assert (trained.encode(titles) * made.vectors).sum(axis=1).min() > 0.9999, "states are kept in float16"
    assert (embedder.encode(titles) * made.vectors).sum(axis=1).min() < 0.99, "the step was felt"
    assert any(name.startswith("m.layers.0.") for name in made.memory.tensors)
    with pytest.raises(LayersRefused, match="at least 1"):
        StoredEncoder.find(settings.encoder_dir, made.done.encoder).load(find_weights(PACKAGED), 0)
    further = StoredEncoder.find(settings.encoder_dir, made.done.encoder).load(find_weights(PACKAGED), 2)
    kept = load_file(trained_folder(settings.encoder_dir, made.done.encoder) / LAYERS_FILE)
    with pytest.raises(LayersTrained, match="1 trained layers"):
        PooledStates(settings.encoder_dir, made.done.encoder)
    for name, value in kept.items():
        found = further.state_dict()[name.replace("layers.0.", "layers.1.")].numpy()
        assert (found == value).all(), "layers that join stand below those trained before"


def test_embedder_with_a_store_keeps_the_states_it_computes(settings: BackendSettings) -> None:
    load_embedder(settings).encode(TITLES[:5])
    store = state_store(settings.encoder_dir)
    assert store.missing(TITLES[:5]) == []
    batch = next(iter(store.batches(TITLES[:5], 5)))
    head = load_file(settings.encoder_dir / "head.safetensors")
    pooled = (batch.states * batch.mask[..., None]).sum(axis=1) / batch.mask.sum(axis=1)[:, None]
    wanted = pooled @ head["head.weight"].T
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    found = load_embedder(settings).encode([TITLES[row] for row in batch.rows])
    assert (found * wanted).sum(axis=1).min() > 0.9999
