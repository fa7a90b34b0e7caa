"""Stores pooled states of titles, the input of the news encoder's head.

With them rounds need neither BERT nor torch.

They are computed from the token states that the embedder stores on disk, by the encoder's own pooling; they stay the
same when the head changes.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from backend.embedding.batch_executor import HERE, ExecutorSettings
from backend.embedding.embedder import (
    HEAD_FILE,
    HEAD_GRADIENT_FILE,
    OnnxEmbedder,
    encoder_folder,
    state_store,
)
from backend.embedding.encoder_files import read_description
from backend.embedding.state_store import STATES_FOLDER, StateBatch, StateStore
from protocol.tensors import pack

BATCH = 256
POOLING, HEAD = "pooling.", "head."


class LayersTrained(ValueError):
    """Rounds have trained layers of this encoder's BERT, so the stored token states aren't its own."""


class PooledStates:
    """The head of one encoder, and the pooled states below it.

    Args:
        encoder_dir: folder of the encoders.
        digest: hash of this encoder.
        threads, executor: used for titles that have to go through BERT again.

    Raises FileNotFoundError if there is no such encoder, or no graph of its head's gradient; LayersTrained.
    """

    def __init__(self, encoder_dir: Path, digest: str, *, threads: int = 1, executor: ExecutorSettings = HERE) -> None:
        self._folder, self._threads, self._executor = encoder_folder(encoder_dir, digest), threads, executor
        about = read_description(self._folder)
        if about.get("layers", 0):
            raise LayersTrained(f"encoder {digest} has {about['layers']} trained layers of BERT")
        parameters: dict[str, NDArray[np.float32]] = load_file(self._folder / HEAD_FILE)
        self.head = {name: each for name, each in parameters.items() if name.startswith(HEAD)}
        self.gradient_graph = (encoder_dir / HEAD_GRADIENT_FILE).read_bytes()
        self._pooling = {n.removeprefix(POOLING): each for n, each in parameters.items() if n.startswith(POOLING)}
        self._tokens = state_store(encoder_dir)
        key = hashlib.sha256(about["bert_sha256"].encode() + pack(self._pooling)).hexdigest()[:16]
        self._kept = StateStore(encoder_dir / STATES_FOLDER / f"pooled-{key}")

    @property
    def width(self) -> int:
        """S."""
        return int(self.head["head.weight"].shape[1])

    def of(self, titles: Sequence[str]) -> NDArray[np.float16]:
        """Pooled states [n, S], one row per title, in order."""
        self._make(self._kept.missing(titles))
        found = np.zeros((len(titles), self.width), dtype=np.float16)
        for batch in self._kept.batches(titles, BATCH):
            found[batch.rows] = batch.states[:, 0]
        return found

    def _make(self, missing: Sequence[str]) -> None:
        if not missing:
            return
        if unread := self._tokens.missing(missing):
            embedder = OnnxEmbedder(
                self._folder, threads=self._threads, store=self._tokens, executor=self._executor.open(self._threads)
            )
            embedder.encode(unread)
        made = np.zeros((len(missing), self.width), dtype=np.float16)
        for batch in self._tokens.batches(missing, BATCH):
            made[batch.rows] = self._pooled(batch)
        self._kept.put(missing, list(made[:, None]))

    def _pooled(self, batch: StateBatch) -> NDArray[np.float32]:
        """Additive attention over word pieces, like `models.layers.attention.AdditiveAttention`."""
        hidden = np.tanh(batch.states @ self._pooling["hidden.weight"].T + self._pooling["hidden.bias"])
        scores = (hidden @ self._pooling["query.weight"].T)[:, :, 0]
        scores = np.where(batch.mask > 0, scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        pooled: NDArray[np.float32] = (weights[:, None, :] @ batch.states)[:, 0]
        return pooled
