"""A trainable form of the small world's stand-in encoder, with the same vectors at its start.

A title's token states are fixed random vectors of its words, pooled to their mean under a head that starts as the
identity.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from backend.embedding.embedder import GRAPH_FILE, HEAD_FILE, HEAD_GRADIENT_FILE, TOKENIZER_FILE, state_store
from backend.embedding.encoder_files import GRAPH, HASHES, TOKENIZER, hashes_of
from backend.embedding.state_store import DESCRIPTION_FILE
from backend.embedding.weights import ALL_MINILM_L6_V2, PACKAGED
from backend.embedding.word_model import PAD, UNKNOWN, WordVectors
from backend.settings import BackendSettings
from protocol.tensors import pack
from tests.doubles.graphs import kept_head_gradient
from tests.doubles.small_world import DIMENSIONS, WordEmbedder, word_vector


def token_states(title: str) -> NDArray[np.float16]:
    """One row for each word, and one for the title's end."""
    return np.stack([word_vector(word) for word in (*title.lower().split(), "")]).astype(np.float16)


def keep_words_encoder(settings: BackendSettings, titles: Sequence[str]) -> None:
    """Write the encoder into a small world's folder, with the states of these titles."""
    folder = settings.encoder_dir
    folder.mkdir(parents=True)
    draw = np.random.default_rng(0)
    hidden = DIMENSIONS // 2
    head: dict[str, NDArray[np.float32]] = {
        "pooling.hidden.weight": draw.normal(scale=0.02, size=(hidden, DIMENSIONS)).astype(np.float32),
        "pooling.hidden.bias": np.zeros(hidden, np.float32),
        "pooling.query.weight": np.zeros((1, hidden), np.float32),
        "pooling.query.bias": np.zeros(1, np.float32),
        "head.weight": np.eye(DIMENSIONS, dtype=np.float32),
        "head.bias": np.zeros(DIMENSIONS, np.float32),
    }
    (folder / HEAD_FILE).write_bytes(pack(head))
    files = {GRAPH: GRAPH_FILE, TOKENIZER: TOKENIZER_FILE}
    for name in files.values():
        (folder / name).write_bytes(b"stand-in")
    about = {
        "digest": WordEmbedder.digest,
        "dimensions": DIMENSIONS,
        "bert": PACKAGED,
        "bert_sha256": ALL_MINILM_L6_V2,
        "parameters": {name: list(value.shape) for name, value in head.items()},
        HASHES: hashes_of(folder, files),
    }
    (folder / DESCRIPTION_FILE).write_text(json.dumps(about), encoding="utf-8")
    (folder / HEAD_GRADIENT_FILE).write_bytes(kept_head_gradient(DIMENSIONS, DIMENSIONS))
    state_store(folder).put(titles, [token_states(title) for title in titles])


def words_of(titles: Sequence[str]) -> WordVectors:
    """Return the words of these titles, with the vectors that the stand-in for BERT uses."""
    known = sorted({word for title in titles for word in title.lower().split()})
    tokenizer = Tokenizer(WordLevel({PAD: 0, UNKNOWN: 1, **{word: 2 + row for row, word in enumerate(known)}}, UNKNOWN))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    vectors = np.stack([np.zeros(DIMENSIONS)] * 2 + [word_vector(word) for word in known])
    return WordVectors(tokenizer, vectors.astype(np.float16))
