"""Title vectors of the frozen language model, computed once and kept in the user's cache.

The file's name is the SHA-256 of the model's weights, the maximum number of word pieces and every title, so any change
leads to another file.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import platformdirs
from numpy.typing import NDArray

from backend.embedding.embedder import BATCH_SIZE, PIECES_LIMIT
from backend.embedding.initial_encoder import FIT_TITLES

BERT = "packaged"

ProgressCallback = Callable[[int, int], None]


def title_vectors(
    titles: Sequence[str], *, cache_dir: Path | None = None, progress: ProgressCallback | None = None
) -> NDArray[np.float32]:
    """Return float32 [n, 384]: the mean of BERT's last states over the title's word pieces, not normalised or centred.

    all-MiniLM-L6-v2 with its own tokenizer, cut at 48 pieces including `[CLS]` and `[SEP]`, as the model was trained.
    One thread. Raises WeightsRefused.
    """
    from backend.embedding.weights import find_weights

    weights = find_weights(BERT)
    folder = cache_dir or platformdirs.user_cache_path("ownfeed") / "laboratory"
    path = folder / f"titles-{_digest(weights.sha256, titles)}.npy"
    if path.is_file():
        found: NDArray[np.float32] = np.load(path)
        if found.shape[0] == len(titles):
            return found
    vectors = _embed(titles, progress)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".part", delete=False) as scratch:
        np.save(scratch, vectors)
    os.replace(scratch.name, path)
    return vectors


def product_vectors(pooled: NDArray[np.float32], dim: int) -> NDArray[np.float32]:
    """Return the product's vectors of pooled states [n, 384]: float32 [n, dim] of length 1.

    The head is fitted on 1,000 titles spread over the pool (models/news/plm.py).
    """
    import torch

    from backend.embedding.torch_encoder import load_bert
    from backend.embedding.weights import find_weights
    from models.news.plm import PlmNewsEncoder

    encoder = PlmNewsEncoder(load_bert(find_weights(BERT)), dim)
    states = torch.from_numpy(pooled)
    encoder.fit_head(states[:: max(1, len(states) // FIT_TITLES)][:FIT_TITLES])
    with torch.no_grad():
        projected = encoder.project(states)
    return np.asarray(projected.numpy(), dtype=np.float32)


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows scaled to length 1; a zero row stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: NDArray[np.float32] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


def _digest(weights_sha256: str, titles: Sequence[str]) -> str:
    digest = hashlib.sha256(f"{weights_sha256} {PIECES_LIMIT}".encode())
    for title in titles:
        text = title.encode()
        digest.update(len(text).to_bytes(8, "big") + text)
    return digest.hexdigest()[:24]


def _embed(titles: Sequence[str], progress: ProgressCallback | None) -> NDArray[np.float32]:
    import torch

    from backend.embedding.embedder import length_buckets
    from backend.embedding.initial_encoder import load_tokenizer
    from backend.embedding.torch_encoder import load_bert
    from backend.embedding.weights import find_weights

    torch.set_num_threads(1)
    weights = find_weights(BERT)
    bert = load_bert(weights)
    width: int = bert.config.hidden_size  # type: ignore[assignment, union-attr]
    vectors = np.zeros((len(titles), width), dtype=np.float32)
    done = 0
    with torch.inference_mode():
        for batch in length_buckets(load_tokenizer(weights), titles, BATCH_SIZE):
            mask = torch.from_numpy(batch.mask)
            states = bert(input_ids=torch.from_numpy(batch.pieces), attention_mask=mask).last_hidden_state
            real = mask[..., None].to(states.dtype)
            vectors[batch.rows] = ((states * real).sum(1) / real.sum(1).clamp_min(1)).numpy()
            done += len(batch.rows)
            if progress is not None:
                progress(done, len(titles))
    return vectors
