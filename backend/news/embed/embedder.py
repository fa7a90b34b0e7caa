"""Titles to news vectors with ONNX Runtime: the news encoder as it serves, without torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from backend.errors import OwnfeedError
from backend.news.embed.batches import PIECES_LIMIT, length_buckets
from backend.settings import BackendSettings
from device_app.wire.tensors import TensorSpec, unpack

Progress = Callable[[int, int], None]
"""Called with (titles done, titles in all)."""

DESCRIPTION_FILE, GRAPH_FILE, HEAD_FILE, TOKENIZER_FILE = (
    "encoder.json",
    "encoder.onnx",
    "head.safetensors",
    "tokenizer.json",
)
HEAD_LIMIT_BYTES = 16 * 1024 * 1024
BATCH_SIZE = 64


class Embedder(Protocol):
    """What the pool needs of a news encoder. `digest` names it: vectors of two digests never mix."""

    digest: str
    dimensions: int

    def encode(self, titles: Sequence[str], *, progress: Progress | None = None) -> NDArray[np.float32]:
        """float32 [n, dimensions], rows of unit length; n = 0 gives an empty array."""
        ...


class EncoderMissing(OwnfeedError):
    """No news encoder has been prepared in this data directory."""

    code, status, title = "encoder-missing", 503, "The news encoder is not prepared"

    def __init__(self) -> None:
        super().__init__("There is no news encoder yet; `ownfeed serve` or `ownfeed demo` prepares it from the pool.")


def load_embedder(settings: BackendSettings) -> OnnxEmbedder:
    """The prepared encoder of this data directory. Raises EncoderMissing before `prepare_encoder` has run."""
    if not (settings.encoder_dir / DESCRIPTION_FILE).is_file():
        raise EncoderMissing
    return OnnxEmbedder(settings.encoder_dir, threads=settings.embed_threads)


class OnnxEmbedder:
    """BERT, attention pooling and the 256-d head as one ONNX graph (ALGORITHMS 3.1).

    Pooling and head are inputs of the graph, so that training them later changes weights and not graphs.
    """

    def __init__(self, folder: Path, *, threads: int) -> None:
        about = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
        self.digest: str = about["digest"]
        self.dimensions: int = about["dimensions"]
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(PIECES_LIMIT)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # Spinning threads would take the cores from the requests that are served meanwhile.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(folder / GRAPH_FILE), options, providers=["CPUExecutionProvider"]
        )
        specs = {name: TensorSpec("float32", tuple(shape)) for name, shape in about["parameters"].items()}
        head = unpack((folder / HEAD_FILE).read_bytes(), specs, limit_bytes=HEAD_LIMIT_BYTES)
        self._parameters = {f"p.{name}": value for name, value in head.items()}

    def encode(self, titles: Sequence[str], *, progress: Progress | None = None) -> NDArray[np.float32]:
        """float32 [n, dimensions], rows of unit length."""
        vectors = np.zeros((len(titles), self.dimensions), dtype=np.float32)
        done = 0
        for batch in length_buckets(self._tokenizer, titles, BATCH_SIZE):
            inputs = {"pieces": batch.pieces, "piece_mask": batch.mask, **self._parameters}
            vectors[batch.rows] = self._session.run(["vectors"], inputs)[0]
            done += len(batch.rows)
            if progress is not None:
                progress(done, len(titles))
        return vectors
