"""Word vectors, and the news model over them in an encoder's folder. Oracles: torch, least squares, a file by hand."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from backend.embedding.embedder import (
    OnnxEmbedder,
    TitleAlone,
    encoder_folder,
    reads_words,
)
from backend.embedding.encoder_files import EncoderDamaged
from backend.embedding.state_store import DESCRIPTION_FILE
from backend.embedding.weights import find_weights
from backend.embedding.word_model import (
    MADE_FILE,
    NAML,
    WordModel,
    WordModelMissing,
    WordVectors,
    WordVectorsRefused,
    keep_word_model,
    read_glove,
    word_model_shapes,
    word_pieces,
    word_source,
)
from exporters.news_encoder import with_table
from exporters.package import export_word_model
from models.builders.news import fednewsrec_words, naml_words
from protocol.releases import CategoryVocabulary
from protocol.tensors import TensorError, pack
from protocol.words_of_titles import WORDS_LIMIT, joined_table, joined_texts, pack_texts, packed_table
from tests.doubles.graphs import shared_graphs
from tests.doubles.synced_paths import SyncedPaths

WORD_DIM, DIM = 20, 256
TITLES = ["Rowing on the lake", "The lake", "Rowing regatta", "Unheard of words", "the lake, rowing"]


@pytest.fixture(scope="module")
def glove(tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("words") / "glove.txt"
    words = ("the", "lake", "rowing", "on", "regatta", ",")
    rows = [f"{word} {' '.join(f'{number:.4f}' for number in draw.normal(size=WORD_DIM))}" for word in words]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(glove: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder's folder with a word model."""
    cache = shared_graphs()
    made, words = export_word_model(WORD_DIM, DIM, cache), read_glove(glove)
    target = tmp_path_factory.mktemp("encoder")
    keep_word_model(
        target,
        "a file",
        words,
        {name: each.shape for name, each in made.weights.items()},
        gradient=made.graphs["gradient"],
        encoder=with_table(made.graphs["news"], words.table),
    )
    return target


def test_glove_file_gives_lowercase_words_and_the_mean_for_others(glove: Path) -> None:
    words = read_glove(glove)
    assert words.table.shape == (2 + 6, WORD_DIM)
    assert not words.table[0].any()
    assert words.table[1] == pytest.approx(words.table[2:].astype(float).mean(axis=0), abs=1e-3)
    assert words.tokenizer.encode("The Lake, quickly").ids == [2, 3, 7, 1]
    assert words.key == read_glove(glove).key


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no words"),
        ("a 1 2\nb 1\n", "Line 2"),
        ("a 1 x\n", "Line 1"),
        ("a nan\n", "Line 1"),
        (None, "can't be read"),
    ],
    ids=["empty", "another length", "no number", "not finite", "no file"],
)
def test_invalid_word_vector_file_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "glove.txt"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(WordVectorsRefused, match=said):
        read_glove(path)


def test_berts_word_pieces_use_its_vectors_without_special_tokens() -> None:
    words = word_pieces(find_weights("packaged"))
    assert words.table.shape == (30_522, 384)
    pieces = words.tokenizer.encode("Rowing regattas")
    assert (pieces.tokens[0], "[CLS]" in pieces.tokens, "[SEP]" in pieces.tokens) == ("rowing", False, False)
    assert np.linalg.norm(words.table[pieces.ids[0]].astype(float)) > 0.1


def test_word_embedder_matches_torch_and_starts_at_the_best_linear_fit(folder: Path) -> None:
    model = WordModel(folder)
    words = model.words(TITLES * 40)
    draw = np.random.default_rng(1)
    made = words[:, :4].astype(np.float32) @ draw.normal(size=(4, DIM)).astype(np.float32)
    target = made / np.linalg.norm(made, axis=1, keepdims=True)
    start = model.start(words, target)
    kept = model.keep(start)
    vectors = OnnxEmbedder(kept, threads=1).encode(TITLES)

    torchs = fednewsrec_words(WORD_DIM)
    torchs.load_state_dict({name: torch.from_numpy(each) for name, each in start.items()})
    read = torch.from_numpy(model.table[words[: len(TITLES)]].astype(np.float32))
    with torch.no_grad():
        wanted = torchs(read, torch.from_numpy((words[: len(TITLES)] != 0).astype(np.float32))).numpy()
    assert vectors == pytest.approx(wanted, abs=1e-6)

    means = np.stack([model.table[row[row != 0]].astype(float).mean(axis=0) for row in words])
    guess = means @ np.linalg.lstsq(means, target, rcond=None)[0]
    guess /= np.linalg.norm(guess, axis=1, keepdims=True)
    assert (vectors * guess[: len(TITLES)]).sum(axis=1) == pytest.approx(np.ones(len(TITLES)), abs=1e-2)


def test_naml_encoder_matches_torch_and_starts_near_the_served_vectors(glove: Path, tmp_path: Path) -> None:
    cache = shared_graphs()
    made, words = export_word_model(WORD_DIM, DIM, cache, architecture=NAML), read_glove(glove)
    known = CategoryVocabulary(("sports",), (("sports", "rowing"),))
    keep_word_model(
        tmp_path,
        "a file",
        words,
        {name: each.shape for name, each in made.weights.items()},
        gradient=made.graphs["gradient"],
        encoder=with_table(made.graphs["news"], words.table),
        architecture=NAML,
        categories=known.pack(),
    )
    model = WordModel(tmp_path, NAML)
    news = [
        TitleAlone(title, abstract, *topic)
        for title, abstract, topic in zip(
            TITLES * 40,
            ["The regatta on the lake, rowing", "", "lake " * 60] * 67,
            [("sports", "rowing"), ("sports", "golf"), ("food", "fish"), ("", "")] * 50,
            strict=False,
        )
    ]
    titles, abstracts = model.words([each.title for each in news]), model.besides.abstracts(news)
    ids = model.besides.category_ids(news)
    assert abstracts is not None
    assert ids is not None
    assert ids[:4].tolist() == [[1, 1], [1, 0], [0, 0], [0, 0]], "0 for what the release doesn't know"
    draw = np.random.default_rng(1)
    target = titles[:, :4].astype(np.float32) @ draw.normal(size=(4, DIM)).astype(np.float32)
    target /= np.linalg.norm(target, axis=1, keepdims=True)
    start = model.start(titles, target, abstracts)
    kept = model.keep(start)
    vectors = OnnxEmbedder(kept, threads=1).encode_news(news[:50])

    torchs = naml_words(WORD_DIM)
    torchs.load_state_dict({name: torch.from_numpy(each) for name, each in start.items()})
    read = [
        torch.from_numpy(each.astype(np.float32))
        for text in (titles[:50], abstracts[:50])
        for each in (model.table[text], text != 0)
    ]
    with torch.no_grad():
        wanted = torchs(*read, *(torch.from_numpy(column).long() for column in ids[:50].T.copy())).numpy()
    assert vectors == pytest.approx(wanted, abs=1e-6)

    means = np.stack([model.table[row[row != 0]].astype(float).mean(axis=0) for row in titles])
    there = (abstracts != 0).any(axis=1)
    means[there] += np.stack([model.table[row[row != 0]].astype(float).mean(axis=0) for row in abstracts[there]])
    means[there] /= 2
    guess = means @ np.linalg.lstsq(means, target, rcond=None)[0]
    guess /= np.linalg.norm(guess, axis=1, keepdims=True)
    assert (vectors * guess[:50]).sum(axis=1).min() > 0.97, "but for topics, which are small at the start"
    assert model.trained(kept.name) is not None
    with pytest.raises(WordModelMissing):
        WordModel(tmp_path)  # FedNewsRec's is another


def test_encoder_is_stored_once_and_found_by_its_digest(folder: Path) -> None:
    model = WordModel(folder)
    start = {name: np.full(shape, 0.5, np.float32) for name, shape in model.shapes.items()}
    kept = model.keep(start)
    assert model.keep(start) == kept == encoder_folder(folder, kept.name)
    assert reads_words(folder, kept.name)
    found = model.trained(kept.name)
    assert found is not None
    assert all((found[name] == each).all() for name, each in start.items())
    assert model.trained("feedbeef") is None
    about = json.loads((kept / DESCRIPTION_FILE).read_text(encoding="utf-8"))
    (kept / DESCRIPTION_FILE).write_text(json.dumps(about | {"words": "others"}), encoding="utf-8")
    assert model.trained(kept.name) is None, "rows of another table mean other words"


@pytest.mark.parametrize("damaged", ["encoder.onnx", "tokenizer.json"])
def test_storing_a_word_encoder_does_not_overwrite_damaged_shared_files(
    folder: Path, tmp_path: Path, damaged: str
) -> None:
    """Regression: its description had the damaged file's hash."""
    copy = tmp_path / "encoder"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("trained"))
    model = WordModel(copy)
    start = {name: np.full(shape, 0.5, np.float32) for name, shape in model.shapes.items()}
    (words,) = (each for each in copy.iterdir() if each.is_dir())
    whole = {name: (words / name).read_bytes() for name in ("encoder.onnx", "tokenizer.json")}
    content = bytearray(whole[damaged])
    content[len(content) // 2] ^= 1
    (words / damaged).write_bytes(content)
    with pytest.raises(EncoderDamaged, match=f"{damaged} is damaged"):
        model.keep(start)
    assert list(copy.glob("trained/*")) == []
    (words / damaged).write_bytes(whole[damaged])
    said = json.loads((model.keep(start) / DESCRIPTION_FILE).read_bytes())["sha256"]
    assert list(said.values()) == [hashlib.sha256(each).hexdigest() for each in whole.values()]
    (words / MADE_FILE).write_bytes(b"[]")
    with pytest.raises(EncoderDamaged, match="can't be read"):
        model.keep({name: each + 1 for name, each in start.items()})


def test_folder_describes_its_words(folder: Path, tmp_path: Path) -> None:
    assert (word_source(folder), word_model_shapes(folder)) == ("a file", WordModel(folder).shapes)
    assert (word_source(tmp_path), word_model_shapes(tmp_path)) == (None, None)
    with pytest.raises(WordModelMissing):
        WordModel(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"folder": "words-0"}'])
def test_damaged_words_description_is_logged_and_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: bytes
) -> None:
    (tmp_path / "words.json").write_bytes(damage)
    assert word_source(tmp_path) is None, "so that they are prepared again"
    assert word_model_shapes(tmp_path) is None
    assert "words.json can't be read" in caplog.text


def test_titles_are_cut_at_thirty_words_and_sent_as_rows(folder: Path) -> None:
    model = WordModel(folder)
    words = model.words(["lake " * 50, "the lake"])
    assert words.shape == (2, WORDS_LIMIT)
    assert ((words != 0).sum(axis=1) == [WORDS_LIMIT, 2]).all()
    row_of, joined = joined_texts([pack_texts(["a", "b"], words)], len(model.table))
    assert (row_of, (joined == words).all()) == ({"a": 0, "b": 1}, True)
    assert (joined_table([blob for _, blob in packed_table(model.table)], WORD_DIM) == model.table).all()
    with pytest.raises(TensorError, match="outside a table of 3"):
        joined_texts([pack_texts(["a", "b"], words)], 3)
    with pytest.raises(TensorError, match="no word vectors"):
        joined_table([pack({"vectors": np.zeros((0, WORD_DIM), np.float16)})], WORD_DIM)


def test_key_of_a_word_set_depends_on_its_vectors(glove: Path) -> None:
    words = read_glove(glove)
    assert WordVectors(words.tokenizer, words.table * np.float16(2)).key != words.key


def test_encoder_folder_is_synced_to_disk_before_it_is_renamed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = WordModel(folder)
    words = model.words(TITLES)
    start = model.start(words, np.random.default_rng(5).normal(size=(len(TITLES), DIM)).astype(np.float32))
    watched = SyncedPaths(monkeypatch)
    model.keep(start)
    assert watched.renames == [set()]
