"""The news model over words (FedNewsRec, section 3.1) in the encoder's folder: its graphs, its words, its weights.

`words.json` says which folder of words is in use. An encoder that rounds have trained stands beside the others, as the
embedder reads them, and shares graph and tokenizer with all that have its words.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from backend.embedding.embedder import (
    DESCRIPTION_FILE,
    GRAPH_FILE,
    HEAD_FILE,
    TOKENIZER_FILE,
    encoder_digest,
    encoder_folder,
    trained_folder,
)
from backend.embedding.word_vectors import WordVectors
from device_app.wire.tensors import pack
from device_app.wire.words_of_titles import PADDING, WORDS_LIMIT

IN_USE_FILE, TABLE_FILE, GRADIENT_FILE = "words.json", "table.safetensors", "gradient.onnx"
CNN, ATTENTION, POOLING = "title.layers.0.window.", "title.layers.1.", "title.pooling."
RIDGE = 1e-3
SEED = 7


class WordModelMissing(FileNotFoundError):
    """No word model is prepared in this folder."""


class WordModel:
    """What is prepared of it. Raises WordModelMissing."""

    def __init__(self, encoder_dir: Path) -> None:
        about = _in_use(encoder_dir)
        if about is None:
            raise WordModelMissing(f"no word model in {encoder_dir}")
        self._encoder_dir, self._folder = encoder_dir, encoder_dir / about["folder"]
        self.key: str = about["key"]
        self.shapes: dict[str, tuple[int, ...]] = {name: tuple(shape) for name, shape in about["shapes"].items()}
        self.gradient_graph = (self._folder / GRADIENT_FILE).read_bytes()
        self.table: NDArray[np.float16] = load_file(self._folder / TABLE_FILE)["table"]
        self._tokenizer = Tokenizer.from_file(str(self._folder / TOKENIZER_FILE))
        self._tokenizer.enable_truncation(WORDS_LIMIT)

    def words(self, titles: Sequence[str]) -> NDArray[np.int32]:
        """Rows of the table [n, WORDS_LIMIT], PADDING after a title's end."""
        found = np.full((len(titles), WORDS_LIMIT), PADDING, dtype=np.int32)
        for row, encoded in enumerate(self._tokenizer.encode_batch(list(titles))):
            found[row, : len(encoded.ids)] = encoded.ids
        return found

    def trained(self, digest: str) -> dict[str, NDArray[np.float32]] | None:
        """The weights of an encoder of these words; None for one that is another model or has other words."""
        try:
            folder = encoder_folder(self._encoder_dir, digest)
        except FileNotFoundError:
            return None
        about = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
        return load_file(folder / HEAD_FILE) if about.get("words") == self.key else None

    def start(self, words: NDArray[np.int32], vectors: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """Weights at which a title's vector is the best linear guess of `vectors` [n, D] from its mean word vector, so
        that a system begins near what is served.

        By ridge regression: M minimises |mean M - e|^2 + r |M|^2. The filters come in pairs A and -A of the middle word
        alone, whose rectified values differ by A x; V = [U, -U] puts them together again, so that M = U A as far as
        half the filters reach. K = 0 and q = 0 make both attentions uniform; Q and W are random, as
        `SelfAttention.start_mean` and `AdditiveAttention.start_uniform` leave them.
        """
        means = self._means(words)
        gram = means.T @ means
        gram += RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
        fitted = np.linalg.solve(gram, means.T @ vectors.astype(np.float64)).T  # M [D, E]
        filters, wide = self.shapes[f"{CNN}weight"]
        pairs, word_dim = filters // 2, wide // 3
        _, directions = np.linalg.eigh(fitted @ (means.T @ means) @ fitted.T)  # of the guesses, the longest last
        into = directions[:, ::-1][:, :pairs]  # U [D, pairs]
        draw = np.random.default_rng(SEED)
        made = {name: np.zeros(shape) for name, shape in self.shapes.items()}
        middle = slice(word_dim, 2 * word_dim)
        made[f"{CNN}weight"][:pairs, middle] = into.T[:pairs] @ fitted
        made[f"{CNN}weight"][pairs : 2 * pairs, middle] = -(into.T[:pairs] @ fitted)
        made[f"{ATTENTION}value.weight"][:, :pairs] = into
        made[f"{ATTENTION}value.weight"][:, pairs : 2 * pairs] = -into
        for name in (f"{ATTENTION}query.weight", f"{POOLING}hidden.weight"):
            bound = np.sqrt(6 / sum(self.shapes[name]))  # Xavier's
            made[name] = draw.uniform(-bound, bound, self.shapes[name])
        return {name: each.astype(np.float32) for name, each in made.items()}

    def _means(self, words: NDArray[np.int32]) -> NDArray[np.float64]:
        """The mean word vector of each title [n, E], a place in the titles at a time: all at once are half a GB."""
        real = words != PADDING
        sums = np.zeros((len(words), self.table.shape[1]))
        for place in range(words.shape[1]):
            (rows,) = real[:, place].nonzero()
            sums[rows] += self.table[words[rows, place]]
        means: NDArray[np.float64] = sums / np.maximum(real.sum(axis=1), 1)[:, None]
        return means

    def keep(self, parameters: Mapping[str, NDArray[np.float32]]) -> Path:
        """Write the encoder with these weights beside the others; its folder, which is named by its digest and appears
        whole."""
        packed = pack(parameters)
        digest = encoder_digest(self.key, packed)
        target = trained_folder(self._encoder_dir, digest)
        if (target / DESCRIPTION_FILE).is_file():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".making-", dir=target.parent))
        try:
            (scratch / HEAD_FILE).write_bytes(packed)
            about = {
                "digest": digest,
                "dimensions": self.shapes[f"{ATTENTION}value.weight"][0],
                "words": self.key,
                "pieces_limit": WORDS_LIMIT,
                "parameters": {name: list(shape) for name, shape in self.shapes.items()},
                "graph": f"../../{self._folder.name}/{GRAPH_FILE}",
                "tokenizer": f"../../{self._folder.name}/{TOKENIZER_FILE}",
            }
            (scratch / DESCRIPTION_FILE).write_text(json.dumps(about, indent=1), encoding="utf-8")
            os.replace(scratch, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return target


def keep_word_model(
    encoder_dir: Path,
    source: str,
    words: WordVectors,
    shapes: Mapping[str, tuple[int, ...]],
    *,
    gradient: bytes,
    encoder: bytes,
) -> None:
    """Put it into use: from the next round on. source: what the settings call the words. gradient, encoder: graphs, for
    devices and for the embedder."""
    folder = encoder_dir / f"words-{words.key[:16]}"
    scratch = Path(tempfile.mkdtemp(prefix="words-making-", dir=encoder_dir))
    try:
        (scratch / GRADIENT_FILE).write_bytes(gradient)
        (scratch / GRAPH_FILE).write_bytes(encoder)
        save_file({"table": words.table}, scratch / TABLE_FILE)
        words.tokenizer.save(str(scratch / TOKENIZER_FILE))
        if not folder.is_dir():
            os.replace(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    about = {"folder": folder.name, "key": words.key, "source": source, "shapes": dict(shapes)}
    half = encoder_dir / f"{IN_USE_FILE}.half"
    half.write_text(json.dumps(about, indent=1), encoding="utf-8")
    os.replace(half, encoder_dir / IN_USE_FILE)


def word_source(encoder_dir: Path) -> str | None:
    """What the settings called the words in use; None before any."""
    about = _in_use(encoder_dir)
    return None if about is None else str(about["source"])


def word_model_shapes(encoder_dir: Path) -> dict[str, tuple[int, ...]] | None:
    """Of what trains; None before any is prepared."""
    about = _in_use(encoder_dir)
    return None if about is None else {name: tuple(shape) for name, shape in about["shapes"].items()}


def _in_use(encoder_dir: Path) -> dict[str, Any] | None:
    try:
        about: dict[str, Any] = json.loads((encoder_dir / IN_USE_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return about
